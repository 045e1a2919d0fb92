// Items that could not be written are kept, or the attempt says so.
#include "engine/findings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <stint/outcome.h>

#include <map>

namespace stint::engine {
namespace {

using model::limits::kItemBatch;

class ShakyDesk final : public Desk {
public:
    TaskId TakeId() override { return {}; }
    std::vector<model::WaitMember> Waited(TaskId) override { return {}; }
    std::vector<store::FinishedTask> Finished(std::span<const TaskId>) override { return {}; }
    std::optional<ItemCounts> WriteResults(const store::ResultWrite& write) override {
        if (down) throw Retryable("the store is away");
        EXPECT_LE(write.items.size(), kItemBatch);
        for (const ItemResult& item : write.items) items[item.key] = item;
        if (write.checkpoint) checkpoint = *write.checkpoint;
        return ItemCounts{static_cast<std::int64_t>(items.size()), 0};
    }
    model::ResultSummary Results(TaskId) override { return {}; }

    bool down = false;
    std::map<std::string, ItemResult> items;
    std::string checkpoint;
};

struct FindingsTest : testing::Test {
    // Adds so many, and goes on when that is refused.
    int AddMany(int from, int count) {
        int refused = 0;
        for (int i = from; i < from + count; ++i) {
            try {
                findings.Add({.key = fmt::format("{:06}", i)});
            } catch (const Retryable&) {
                ++refused;
            }
        }
        return refused;
    }
    std::shared_ptr<ShakyDesk> desk = std::make_shared<ShakyDesk>();
    Findings findings{desk, store::Lease{}};
    const int batch = static_cast<int>(kItemBatch);
};

TEST_F(FindingsTest, ABatchThatCouldNotBeWrittenIsWrittenLater) {
    desk->down = true;
    EXPECT_EQ(AddMany(0, batch), 1) << "the one that fills the batch";
    EXPECT_TRUE(findings.unwritten());
    desk->down = false;
    EXPECT_EQ(findings.Flush().total, batch);
    EXPECT_EQ(AddMany(batch, 3), 0);
    findings.Flush();
    EXPECT_EQ(desk->items.size(), kItemBatch + 3);
}

TEST_F(FindingsTest, ACheckpointTakesThemAlong) {
    desk->down = true;
    AddMany(0, 3);
    EXPECT_THROW(findings.SaveCheckpoint("1"), Retryable);
    EXPECT_TRUE(findings.unwritten());
    desk->down = false;
    findings.SaveCheckpoint("2");
    EXPECT_EQ(desk->items.size(), 3u);
    EXPECT_EQ(desk->checkpoint, "2");
    EXPECT_FALSE(findings.unwritten());
}

TEST_F(FindingsTest, AnItemThatWasRefusedIsNotForgotten) {
    desk->down = true;
    AddMany(0, batch);
    EXPECT_EQ(AddMany(batch, 2), 2) << "there is no room for them";
    desk->down = false;
    EXPECT_EQ(AddMany(batch + 2, 1), 0) << "others find room again";
    EXPECT_TRUE(findings.unwritten());
    EXPECT_THROW(findings.Flush(), Retryable) << "the attempt cannot complete without them";
}

TEST_F(FindingsTest, OneThatIsAddedAgainIsThere) {
    desk->down = true;
    AddMany(0, batch + 1);
    desk->down = false;
    EXPECT_EQ(AddMany(batch, 1), 0);
    EXPECT_EQ(findings.Flush().total, batch + 1);
}

}  // namespace
}  // namespace stint::engine
