// What is broken in the tables is found by the self-check; and the upkeep of resources where it
// needs more of them than a suite for every store makes.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "model/limits.h"
#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/resources.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Rows;
using postgres::Statement;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CheckTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("check");
        schema_ = &one;
        schema_->Empty();
        PostgresOptions options;
        options.url = stint::testing::TestPostgresUrl();
        options.schema = schema_->name();
        options.migrate = false;
        store_ = OpenPostgresStore(options);
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession({.id = session_, .hostname = "h", .lease = std::chrono::hours{24}});
    }
    Rows Ask(std::string text) {
        for (std::size_t at; (at = text.find("$s.")) != std::string::npos;)
            text.replace(at, 3, schema_->name() + ".");
        return schema_->connection().Query(Statement{"", text}, {}, Commits::kNo);
    }
    std::vector<std::string> Broken() {
        std::vector<std::string> broken;
        for (const CheckFinding& finding : store_->Check()) {
            if (!finding.ok) broken.push_back(finding.what + ": " + finding.detail);
        }
        return broken;
    }
    void Limit(const std::string& name, int capacity) {
        ResourceChange change{.name = name};
        change.capacity = capacity;
        ASSERT_TRUE(store_->Resources().Change(change, "ann"));
    }
    TaskId Submit(const std::string& need) {
        NewTask task{.type = "t", .needs = Needs{{need, 1}}};
        return store_->Submit({&task, 1}).at(0).id;
    }
    std::size_t Claim() {
        return store_->Claim({.session = session_, .limit = 10, .types = {"t"}}).leases.size();
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

TEST_F(CheckTest, FindsWhatIsBroken) {
    Limit("gpu", 1);
    TaskId first = Submit("gpu");
    NewTask second{.type = "t"};
    second.after = WaitOn{.on = {first}};
    store_->Submit({&second, 1});
    ASSERT_EQ(Claim(), 1u);
    ASSERT_THAT(Broken(), IsEmpty());
    Ask("UPDATE $s.slot SET units = 2");
    EXPECT_THAT(Broken(), Contains(HasSubstr("gpu: capacity 1, 2 held")));
    EXPECT_THAT(Broken(), Contains(HasSubstr("held by running tasks that need it")));
    Ask("UPDATE $s.resource SET state = '{\"over\":2}'");
    EXPECT_THAT(Broken(), Not(Contains(HasSubstr("capacity 1"))));
    Ask("DELETE FROM $s.slot");
    EXPECT_THAT(Broken(), Contains(HasSubstr("running tasks count for what they need")));
    store_->Housekeep({});
    EXPECT_THAT(Broken(), IsEmpty()) << "housekeeping counts what was overlooked";
    Ask("UPDATE $s.wait SET pending = 7");
    EXPECT_THAT(Broken(), Contains(HasSubstr("counts 7 of 1 pending")));
    Ask("INSERT INTO $s.flow VALUES (1, 1, 3, 0, 0, 0, NULL, false, now(), now())");
    EXPECT_THAT(Broken(), Contains(HasSubstr("flow 1 counts 3 of 0 steps")));
    Ask("DELETE FROM $s.flow");
}

TEST_F(CheckTest, ThereAreNoMoreNamesOfPatternsThanTheLimit) {
    Limit("host:*", 1);
    Submit("host:a");
    ASSERT_EQ(Claim(), 1u);
    Ask(fmt::format(
        "INSERT INTO $s.resource(name, pattern, settings, state) SELECT 'host:' || n, 'host:*', "
        "'{{}}', '{{\"opened\":true}}' FROM generate_series(2, {}) n",
        limits::kPatternNames
    ));
    TaskId one_more = Submit("host:b"), known = Submit("host:7"), other = Submit("disk");
    (void)known;
    (void)other;
    EXPECT_EQ(Claim(), 2u);
    std::vector<Explanation> why =
        store_->Explain(one_more, {.session = session_, .limit = 1, .types = {"t"}});
    ASSERT_EQ(why.size(), 1u);
    EXPECT_EQ(why[0].condition, Condition::kResourceFull);
    EXPECT_THAT(why[0].detail, AllOf(HasSubstr("\"host:b\""), HasSubstr("which is the limit")));
    Ask("DELETE FROM $s.resource WHERE name = 'host:9'");
    EXPECT_EQ(Claim(), 1u);
}

TEST_F(CheckTest, ReportsMakeNoMoreNamesThanTheLimit) {
    NewTask task{.type = "t"};
    std::vector<NewTask> tasks(3, task);
    store_->Submit(tasks);
    auto leases = store_->Claim({.session = session_, .limit = 3, .types = {"t"}}).leases;
    auto report = [&](std::size_t i, const std::string& name) {
        Settlement settlement{
            .task = leases.at(i).task, .token = leases[i].token, .session = session_};
        settlement.kind = Settlement::Kind::kRelease;
        settlement.end = AttemptEnd::kReleased;
        settlement.unavailable = name;
        EXPECT_EQ(store_->Settle({&settlement, 1}).at(0).kind, SettleReply::Kind::kAccepted);
        return Ask("SELECT FROM $s.resource WHERE name = '" + name + "'").size();
    };
    EXPECT_EQ(report(0, "first"), 1);
    Ask(fmt::format(
        "INSERT INTO $s.resource(name, settings) SELECT 'host-' || n, '{{}}' FROM "
        "generate_series(2, {}) n",
        limits::kPatternNames
    ));
    EXPECT_EQ(report(1, "second"), 0);
    Ask("DELETE FROM $s.resource WHERE name = 'host-9'");
    EXPECT_EQ(report(2, "second"), 1);
}

// Those who claim look for patterns; they find them without looking at the names they have made.
TEST_F(CheckTest, PatternsAreFoundByAnIndex) {
    Ask("INSERT INTO $s.resource(name, pattern, settings) SELECT 'host:' || n, 'host:*', '{}' FROM "
        "generate_series(1, 20000) n");
    Ask("ANALYZE $s.resource");
    pg::Sql sql(schema_->name());
    schema_->connection().Script("PREPARE look AS " + sql.resources.sql);
    Rows rows = Ask("EXPLAIN (COSTS OFF) EXECUTE look('{host:1,gpu}', false)");
    schema_->connection().Script("DEALLOCATE look");
    std::string plan;
    for (int i = 0; i < rows.size(); ++i) plan += rows.Text(i, 0) + "\n";
    EXPECT_THAT(plan, HasSubstr("resource_pattern"));
    EXPECT_THAT(plan, Not(HasSubstr("Seq Scan on resource")));
}

}  // namespace
}  // namespace stint::store
