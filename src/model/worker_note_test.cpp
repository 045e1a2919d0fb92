#include "model/worker_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/limits.h"

namespace stint::model {
namespace {

TEST(WorkerNote, AWorkerThatTakesEverythingOnlySaysWhatItDoes) {
    EXPECT_EQ(NoteText({.doing = "polling"}), "polling");
    EXPECT_EQ(NoteOf("polling"), WorkerNote{.doing = "polling"});
    EXPECT_EQ(NoteOf(""), WorkerNote{});
}

TEST(WorkerNote, WhatItWouldNotTakeIsReadAsItWasSaid) {
    WorkerNote note{.doing = "processing", .withheld = {"gpu", "mail-api"}};
    note.queue_room = {{"slow", 1}};
    note.type_room = {{"render", 0}};
    note.resource_room = {{"host:*", 2}, {"host:a", 0}};
    std::string text = NoteText(note);
    EXPECT_EQ(
        text, "processing; withheld gpu mail-api; room queue:slow=1 type:render=0 host:*=2 host:a=0"
    );
    EXPECT_EQ(NoteOf(text), note);
    note.withheld.clear();
    EXPECT_EQ(NoteOf(NoteText(note)), note);
}

TEST(WorkerNote, WhatDoesNotFitIsLeftOut) {
    WorkerNote note{.doing = "polling"};
    for (int i = 0; i < 1000; ++i) note.withheld.push_back("resource-" + std::to_string(i));
    EXPECT_LE(NoteText(note).size(), limits::kWorkerNote);
    EXPECT_THAT(NoteOf(NoteText(note)).withheld, ::testing::Contains("resource-99"));
}

}  // namespace
}  // namespace stint::model
