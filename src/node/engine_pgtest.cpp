// The engine on a PostgreSQL server that comes and goes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <stint/stint.h>

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

}  // namespace
}  // namespace stint
