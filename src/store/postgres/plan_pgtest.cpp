// How the server goes about our statements: by what it finds in indexes, whatever it believes about
// the size of a table.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Rows;
using postgres::Statement;

// Meant to see everything: checks, lists, counts.
bool SeesEverything(std::string_view name) {
    for (std::string_view start : {"check_", "list_", "counts_", "audit_all", "queues"}) {
        if (name.starts_with(start)) return true;
    }
    return false;
}

// Tables that grow with the work. The tallies are folded, sessions and leases are few.
bool Grows(std::string_view table) {
    if (table.starts_with("history_change") || table.starts_with("history_tally")) return false;
    for (std::string_view large :
         {"live",
          "ready",
          "later",
          "past",
          "history",
          "audit",
          "attempt",
          "idem_key",
          "schedule",
          "visit",
          "published",
          "firing",
          "progress",
          "task_result",
          "join_"}) {
        if (table.starts_with(large)) return true;
    }
    return false;
}

class PlanTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("plan");
        schema_ = &one;
        schema_->Empty();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = schema_->name();
        options_.migrate = false;
        connection_ = Connect();
        connection_->Script(
            "SET enable_seqscan = off; SET enable_bitmapscan = off;"
            "SET plan_cache_mode = force_generic_plan"
        );
    }
    std::unique_ptr<Connection> Connect() {
        postgres::ConnectOptions connect;
        connect.url = options_.url;
        return Connection::Open(connect);
    }

    std::vector<std::string> PlanOf(const Statement& statement) {
        // What stands for the claimer has the same types everywhere; others name theirs.
        bool claimer = statement.sql.find("$1 session, $2 queues") != std::string::npos;
        connection_->Script(fmt::format(
            "PREPARE look{} AS {}", claimer ? "(uuid, text[], text[], boolean)" : "", statement.sql
        ));
        int most = claimer ? 4 : 0;
        while (statement.sql.find(fmt::format("${}::", most + 1)) != std::string::npos) ++most;
        std::string nothing = most == 0 ? "" : "(NULL";
        for (int i = 1; i < most; ++i) nothing += ", NULL";
        if (most > 0) nothing += ")";
        Rows rows = connection_->Query(
            Statement{"", "EXPLAIN (COSTS OFF) EXECUTE look" + nothing}, {}, Commits::kNo
        );
        connection_->Script("DEALLOCATE look");
        std::vector<std::string> lines;
        for (int i = 0; i < rows.size(); ++i) lines.push_back(rows.Text(i, 0));
        return lines;
    }

    // Calls `look` with the name and plan of every statement that does not see everything.
    template <class F>
    void ForEach(F look) {
        pg::Sql sql(schema_->name());
#define X(name) \
    if (!SeesEverything(#name)) look(#name, PlanOf(sql.name));
        STINT_PG_QUERIES(X)
#undef X
    }

    // As many tasks as dead rows that an old snapshot keeps.
    void FillWithDeadRows(int tasks) {
        auto store = OpenPostgresStore(options_);
        SessionId session = base::SystemRandom().MakeId<SessionId>();
        store->OpenSession(
            {.id = session, .hostname = "h", .lease = std::chrono::hours{1}, .types = {"t"}}
        );
        constexpr int kAtOnce = 500;
        for (int done = 0; done < tasks; done += kAtOnce) {
            store->Submit(std::vector<NewTask>(kAtOnce, NewTask{.type = "t"}));
            std::vector<Settlement> outcomes;
            for (const Lease& lease :
                 store->Claim({.session = session, .limit = kAtOnce, .types = {"t"}}).leases) {
                outcomes.push_back({.task = lease.task, .token = lease.token, .session = session});
            }
            store->Settle(outcomes);
        }
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    PostgresOptions options_;
    std::unique_ptr<Connection> connection_;
};

TEST_F(PlanTest, TasksAndHistoryAreFoundByIndexesAlone) {
    int looked_at = 0;
    ForEach([&](std::string_view name, const std::vector<std::string>& plan) {
        ++looked_at;
        for (const std::string& line : plan) {
            std::size_t at = line.find("Seq Scan on ");
            if (at == std::string::npos) continue;
            EXPECT_FALSE(Grows(std::string_view(line).substr(at + 12))) << name << ": " << line;
        }
    });
    EXPECT_GT(looked_at, 50);
}

TEST_F(PlanTest, ATableFullOfDeadRowsIsNotReadAsAWholeInsteadOfByKey) {
    auto old = Connect();
    old->Script("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    FillWithDeadRows(20'000);
    // Now the planner believes that next to nothing is there, and that each row is far apart.
    for (const char* table : {"live", "ready", "later", "past", "lease", "history"}) {
        connection_->Script(fmt::format("ANALYZE {}.{}", schema_->name(), table));
    }
    ForEach([&](std::string_view name, const std::vector<std::string>& plan) {
        for (std::size_t i = 0; i < plan.size(); ++i) {
            std::size_t scan = plan[i].find("Scan "), on = plan[i].find(" on ", scan);
            if (plan[i].find(" using ") == std::string::npos || on == std::string::npos) continue;
            if (!Grows(std::string_view(plan[i]).substr(on + 4))) continue;
            // The first or last of an index is asked for by max(), on 18 without a condition.
            bool by_key = i > 0 && plan[i - 1].find("->  Limit") != std::string::npos;
            for (std::size_t k = i + 1; k < plan.size(); ++k) {
                if (plan[k].find("->") != std::string::npos) break;
                by_key |= plan[k].find("Index Cond: ") != std::string::npos;
            }
            EXPECT_TRUE(by_key) << name << ": " << plan[i];
        }
    });
    old->Script("ROLLBACK");
}

// A full join that the planner sees through becomes a plain one, which it may do by comparing each
// with each when it believes that there are few.
TEST_F(PlanTest, FullJoinsStayFullJoins) {
    pg::Sql sql(schema_->name());
    auto count = [](const std::string& text, std::string_view word) {
        int found = 0;
        for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++found;
        return found;
    };
    for (const Statement* statement :
         {&sql.claim, &sql.claim_picked, &sql.complete, &sql.complete_plain}) {
        int written = count(statement->sql, " FULL JOIN "), planned = 0;
        for (const std::string& line : PlanOf(*statement)) {
            planned += count(line, "Hash Full Join") + count(line, "Merge Full Join");
        }
        EXPECT_GE(written, 3) << statement->name;
        EXPECT_EQ(planned, written) << statement->name;
    }
}

// It is written out once more because a view cannot choose how it is read.
TEST_F(PlanTest, TheQueryOfLiveTasksHasTheColumnsOfTheView) {
    pg::Sql sql(schema_->name());
    connection_->Script(fmt::format(
        "CREATE TEMP TABLE of_view AS SELECT * FROM {}.record_live_ WITH NO DATA;"
        "PREPARE look AS {}; CREATE TEMP TABLE of_query AS EXECUTE look(NULL) WITH NO DATA",
        schema_->name(),
        sql.live_of.sql
    ));
    auto columns = [&](const char* table) {
        return connection_
            ->Query(
                Statement{
                    "",
                    "SELECT array_agg(column_name || ' ' || udt_name ORDER BY ordinal_position) "
                    "FROM information_schema.columns WHERE table_name = $1"},
                postgres::Params().Text(table),
                Commits::kNo
            )
            .Texts(0, 0);
    };
    EXPECT_GT(columns("of_view").size(), 20u);
    EXPECT_EQ(columns("of_view"), columns("of_query"));
}

}  // namespace
}  // namespace stint::store
