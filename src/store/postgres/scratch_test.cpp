#include "store/postgres/scratch.h"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

TEST(Scratch, OnlyWhatBenchmarksNameThemselvesIsTheirs) {
    EXPECT_TRUE(IsScratchName("stint_bench_12_0a1b2c3d"));
    for (const char* other :
         {"stint",
          "stint_bench",
          "stint_bench_12",
          "stint_bench_12_",
          "stint_bench__0a1b2c3d",
          "stint_bench_12_0a1b2c3",
          "stint_bench_12_0a1b2c3d4",
          "stint_bench_12_0a1b2c3g",
          "stint_bench_mine_0a1b2c3d",
          "my_stint_bench_12_0a1b2c3d"}) {
        EXPECT_FALSE(IsScratchName(other)) << other;
    }
}

}  // namespace
}  // namespace stint::store
