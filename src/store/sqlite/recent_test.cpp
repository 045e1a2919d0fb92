#include "store/sqlite/recent.h"

#include <gtest/gtest.h>

namespace stint::store::lite {
namespace {

TaskRow Row(std::int64_t id, std::size_t input = 2) {
    TaskRow row;
    row.id = TaskId(id);
    row.input = std::string(input, '1');
    return row;
}

TEST(RecentRows, KeepsARowUntilItIsDropped) {
    RecentRows rows;
    EXPECT_EQ(rows.Find(TaskId(7)), nullptr);
    rows.Keep(Row(7));
    ASSERT_NE(rows.Find(TaskId(7)), nullptr);
    EXPECT_EQ(rows.Find(TaskId(7))->input, "11");
    rows.Drop(TaskId(7 + 2048));  // another in its place
    EXPECT_NE(rows.Find(TaskId(7)), nullptr);
    rows.Drop(TaskId(7));
    EXPECT_EQ(rows.Find(TaskId(7)), nullptr);
}

TEST(RecentRows, GivesItsPlaceToTheNext) {
    RecentRows rows;
    rows.Keep(Row(7));
    rows.Keep(Row(7 + 2048));
    EXPECT_EQ(rows.Find(TaskId(7)), nullptr);
    EXPECT_NE(rows.Find(TaskId(7 + 2048)), nullptr);
    rows.Clear();
    EXPECT_EQ(rows.Find(TaskId(7 + 2048)), nullptr);
}

TEST(RecentRows, KeepsNoLargeInputNorWhatWasThereBefore) {
    RecentRows rows;
    rows.Keep(Row(7));
    rows.Keep(Row(7, 1 << 20));
    EXPECT_EQ(rows.Find(TaskId(7)), nullptr);
}

TEST(RecentRows, KeepsNoLongErrorEither) {
    RecentRows rows;
    TaskRow failed = Row(7);
    failed.error = std::string(8000, 'e');
    rows.Keep(failed);
    EXPECT_EQ(rows.Find(TaskId(7)), nullptr);
}

}  // namespace
}  // namespace stint::store::lite
