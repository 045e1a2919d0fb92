// The engine on a PostgreSQL server that comes and goes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <stint/stint.h>

#include <semaphore>

#include "support/cut_proxy.h"
#include "support/postgres_schema.h"

namespace stint {
namespace {

constexpr Task<int, int> kSquare{"square"};

TEST(EngineOnPostgres, StartsWhileTheServerIsAwayAndWorksOnceItIsBack) {
    SKIP_WITHOUT_POSTGRES();
    testing::PostgresSchema schema("engine");
    testing::CutProxy proxy(std::atoi(PQport(schema.connection().native())));
    Engine engine({
        .store = testing::WithParameter(
            testing::TestPostgresUrl(),
            fmt::format(
                "host=127.0.0.1&port={}&sslmode=disable&stint_schema={}",
                proxy.port(),
                schema.name()
            )
        ),
        .slots = 2,
    });
    engine.Handle(kSquare, [](Context&, int n) { return n * n; });
    auto run = engine.Submit(kSquare, 3);
    ASSERT_TRUE(run.has_value()) << run.error().message;
    proxy.GoDown();
    engine.Start();
    EXPECT_FALSE(engine.Submit(kSquare, 4).has_value()) << "the server is away";
    proxy.ComeUp();
    EXPECT_EQ(run->Wait().value(), 9);
}

// Of two nodes that share a resource of one unit: when it is free on one, what waits for it on the
// other starts, though both look for work by themselves only once an hour.
TEST(EngineOnPostgres, WhatIsFreeOnOneNodeStartsWhatWaitsOnTheOther) {
    SKIP_WITHOUT_POSTGRES();
    using std::chrono::hours;
    testing::PostgresSchema schema("hint");
    auto options = [&](const std::string& queue) {
        Options one{
            .store =
                testing::WithParameter(testing::TestPostgresUrl(), "stint_schema=" + schema.name()),
            .slots = 1,
            .queues = {queue},
        };
        one.poll = {.min = hours{1}, .max = hours{1}};
        one.node_name = queue;
        return one;
    };
    constexpr Task<int, int> kLeft{"left"}, kRight{"right"};
    std::binary_semaphore running{0}, go{0};
    Engine left(options("left")), right(options("right"));
    left.Handle(kLeft, [&](Context&, int n) {
        running.release();
        go.acquire();
        return n;
    });
    right.Handle(kRight, [](Context&, int n) { return n; });
    ASSERT_TRUE(left.resources().Set("gpu", {.capacity = 1}).has_value());
    left.Start();
    right.Start();
    SubmitOptions at_left, at_right;
    at_left.queue = "left";
    at_right.queue = "right";
    at_left.needs = std::vector<ResourceNeed>{{"gpu", 1}};
    at_right.needs = std::vector<ResourceNeed>{{"gpu", 1}};
    auto first = left.Submit(kLeft, 1, at_left);
    ASSERT_TRUE(first.has_value()) << first.error().message;
    running.acquire();
    auto second = left.Submit(kRight, 2, at_right);
    ASSERT_TRUE(second.has_value()) << second.error().message;
    go.release();
    auto answer = second->WaitFor(std::chrono::minutes{1});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(*answer, 2);
}

}  // namespace
}  // namespace stint
