// Submitting from SQL what waits, is limited, or has its turn: the same as through the store.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/resources.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::SqlError;
using postgres::Statement;
using ::testing::HasSubstr;
using Kind = Settlement::Kind;

class SubmitSqlTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("submit_sql");
        schema_ = &one;
        schema_->Empty();
        PostgresOptions options;
        options.url = stint::testing::TestPostgresUrl();
        options.schema = schema_->name();
        options.migrate = false;
        store_ = OpenPostgresStore(options);
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession({.id = session_, .hostname = "h", .lease = std::chrono::hours{1}});
    }
    void TearDown() override {
        if (!store_) return;
        for (const CheckFinding& finding : store_->Check()) {
            EXPECT_TRUE(finding.ok) << finding.detail;
        }
    }

    Rows AskOn(Connection& connection, const std::string& request) {
        std::string text = fmt::format(
            "SELECT r ->> 'id', r ->> 'kind' FROM (SELECT {}.submit($1::jsonb) AS r) x",
            schema_->name()
        );
        return connection.Query(Statement{"", text}, Params().Text(request), Commits::kNo);
    }
    TaskId FromSql(const std::string& request) {
        return TaskId::Parse(AskOn(schema_->connection(), request).View(0, 0)).value();
    }
    std::string Refusal(const std::string& request) {
        try {
            AskOn(schema_->connection(), request);
        } catch (const SqlError& error) {
            return error.what();
        }
        return "accepted";
    }
    TaskId Submit(const NewTask& task) {
        SubmitReply reply = store_->Submit({&task, 1}).at(0);
        EXPECT_TRUE(reply.accepted()) << reply.message;
        return reply.id;
    }
    TaskId Plain(const std::string& type = "t") { return Submit({.type = type}); }
    // Claims the next task of a type and ends it.
    TaskId End(Kind kind, const std::string& type = "t") {
        auto leases = store_->Claim({.session = session_, .limit = 1, .types = {type}}).leases;
        if (leases.empty()) return {};
        Settlement outcome{
            .task = leases[0].task, .token = leases[0].token, .session = session_, .kind = kind};
        if (kind != Kind::kComplete) outcome.error = TaskError{"broke", "io", "", false};
        if (kind != Kind::kComplete) outcome.end = AttemptEnd::kFailed;
        EXPECT_EQ(store_->Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kAccepted);
        return leases[0].task;
    }
    State StateOf(TaskId task) { return store_->Get(task).value().state; }
    // What happened to a task, without when and who; others by their place among `others`.
    std::vector<std::string> Story(TaskId task, const std::vector<TaskId>& others) {
        std::vector<std::string> story;
        for (const AuditEntry& entry : store_->Audit({.task = task})) {
            std::string line =
                fmt::format("{} {} {}", EventName(entry.event), StateName(entry.to), entry.reason);
            for (std::size_t i = 0; i < others.size(); ++i) {
                std::string id = std::to_string(others[i].value());
                if (std::size_t at = line.find(id); at != line.npos)
                    line.replace(at, id.size(), "#" + std::to_string(i));
            }
            story.push_back(line);
        }
        return story;
    }
    struct Outcome {
        State at_first{}, at_last{};
        std::vector<State> others;
        std::vector<std::string> story;
    };

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

TEST_F(SubmitSqlTest, ATaskWaitsForOthersAndGoesOnBehindThem) {
    TaskId first = Plain("a"), second = FromSql(R"({"type": "b"})");
    TaskId waits = FromSql(
        fmt::format(R"({{"type": "t", "after": ["{}", {}]}})", first.value(), second.value())
    );
    EXPECT_EQ(StateOf(waits), State::kBlocked);
    EXPECT_EQ(store_->Get(waits)->waiting_for, 2);
    EXPECT_EQ(End(Kind::kComplete, "b"), second);
    EXPECT_EQ(StateOf(waits), State::kBlocked);
    EXPECT_EQ(End(Kind::kComplete, "a"), first);
    EXPECT_EQ(StateOf(waits), State::kOpen);
    EXPECT_EQ(End(Kind::kComplete), waits);
}

// Whatever the state of what it waits for and whatever it asks: the task from SQL becomes what the
// one through the store becomes, then and when all is over.
TEST_F(SubmitSqlTest, WaitsAreDecidedAsTheStoreDecidesThem) {
    const std::vector<std::string> endings = {"", "c", "d", "cc", "cd", "dd", "co", "do", "oo"};
    const std::vector<std::string> policies = {"wait_for_all", "fail_fast", "cancel_rest"};
    for (const std::string& ending : endings) {
        for (int on_failure = 0; on_failure < 3; ++on_failure) {
            for (int bits = 0; bits < 4; ++bits) {
                const bool any = (bits & 1) != 0, need = (bits & 2) != 0;
                if (any && on_failure != 0) continue;
                SCOPED_TRACE(fmt::format("{} {} any {} need {}", ending, on_failure, any, need));
                std::vector<Outcome> outcomes;
                for (bool sql : {false, true}) {
                    WaitOn wait{
                        .on_failure = static_cast<OnFailure>(on_failure),
                        .any = any,
                        .need_success = need};
                    for (char end : ending) {
                        wait.on.push_back(Plain("dep"));
                        if (end != 'o') End(end == 'c' ? Kind::kComplete : Kind::kDead, "dep");
                    }
                    std::vector<std::string> ids;
                    for (TaskId id : wait.on) ids.push_back(fmt::format("\"{}\"", id.value()));
                    std::string request = fmt::format(
                        R"({{"type": "t", "unique_key": "sql", "after": {{"on": [{}],
                             "on_failure": "{}", "any": {}, "need_success": {}}}}})",
                        fmt::join(ids, ","),
                        policies[static_cast<std::size_t>(on_failure)],
                        any,
                        need
                    );
                    TaskId task = sql ? FromSql(request)
                                      : Submit({.type = "t", .unique_key = "store", .after = wait});
                    Outcome& outcome = outcomes.emplace_back();
                    outcome.at_first = StateOf(task);
                    store_->Reclaim({});  // what is to be cancelled beside it
                    for (TaskId id : wait.on) outcome.others.push_back(StateOf(id));
                    // What is still open ends badly.
                    while (End(Kind::kDead, "dep").valid()) {
                    }
                    outcome.at_last = StateOf(task);
                    outcome.story = Story(task, wait.on);
                    while (End(Kind::kComplete).valid()) {
                    }
                }
                EXPECT_EQ(outcomes[0].at_first, outcomes[1].at_first);
                EXPECT_EQ(outcomes[0].at_last, outcomes[1].at_last);
                EXPECT_EQ(outcomes[0].others, outcomes[1].others);
                EXPECT_EQ(outcomes[0].story, outcomes[1].story);
            }
        }
    }
}

TEST_F(SubmitSqlTest, NeedsLabelsAndTurnsAreThoseOfTheStore) {
    TypeDefaults type{.type = "typed", .needs = {{"db", 2}}, .labels = {"eu"}};
    store_->PublishTypes({&type, 1});
    auto placement = [&](const std::string& rest) {
        return store_->Get(FromSql(R"({"type": )" + rest + "}"))->placement;
    };
    Placement full{.needs = {{"gpu", 1}, {"license", 5}}, .labels = {"b", "eu"}};
    EXPECT_EQ(
        placement(R"("t", "needs": ["License=2", "GPU", "license=3"], "labels": ["eu", "b", "b"])"),
        full
    );
    EXPECT_EQ(placement(R"("t", "needs": {"License": 5, "gpu": 1}, "labels": ["eu", "b"])"), full);
    EXPECT_EQ(placement(R"("typed")"), (Placement{.needs = {{"db", 2}}, .labels = {"eu"}}));
    EXPECT_EQ(placement(R"("typed", "needs": {}, "labels": ["x"])"), (Placement{.labels = {"x"}}));
    Placement turn{.order_key = "k", .on_failed_head = OnFailedHead::kDeadLetter};
    EXPECT_EQ(placement(R"("t", "order_key": "k", "on_failed_head": "dead_letter")"), turn);

    // One lane for the same placement, whichever way it came.
    TaskId stored = Submit({.type = "t", .needs = full.needs, .labels = full.labels});
    auto lanes = schema_->connection().Query(
        Statement{
            "",
            fmt::format(
                "SELECT count(DISTINCT lane) FROM {0}.live v JOIN {0}.lane l ON l.id = v.lane "
                "WHERE l.placement = (SELECT k.placement FROM {0}.lane k JOIN {0}.live u ON "
                "u.lane = k.id WHERE u.id = {1})",
                schema_->name(),
                stored.value()
            )},
        {},
        Commits::kNo
    );
    EXPECT_EQ(lanes.Int(0, 0), 1);
}

TEST_F(SubmitSqlTest, TasksOfAnOrderKeyGoOneByOneWhicheverWayTheyCame) {
    TaskId first = FromSql(R"({"type": "t", "order_key": "k", "on_failed_head": "skip"})");
    TaskId second = Submit({.type = "t", .order_key = "k"});
    TaskId third = FromSql(R"({"type": "t", "order_key": "k"})");
    auto only = store_->Claim({.session = session_, .limit = 9, .types = {"t"}}).leases;
    ASSERT_EQ(only.size(), 1u);
    EXPECT_EQ(only[0].task, first);
    Settlement outcome{
        .task = first, .token = only[0].token, .session = session_, .kind = Kind::kComplete};
    store_->Settle({&outcome, 1});
    EXPECT_EQ(End(Kind::kComplete), second);
    EXPECT_EQ(End(Kind::kComplete), third);
}

TEST_F(SubmitSqlTest, OneThatEndsAtOnceKeepsNobodyOfItsOrderKeyWaiting) {
    Plain("dep");
    TaskId dead = End(Kind::kDead, "dep");
    TaskId ended =
        FromSql(fmt::format(R"({{"type": "t", "order_key": "k", "after": [{}]}})", dead.value()));
    EXPECT_EQ(StateOf(ended), State::kCancelled);
    NewTask same{.type = "t", .order_key = "k"};
    same.after.emplace().on = {dead};
    EXPECT_EQ(StateOf(Submit(same)), State::kCancelled);
    TaskId next = FromSql(R"({"type": "t", "order_key": "k"})");
    EXPECT_EQ(End(Kind::kComplete), next);
}

TEST_F(SubmitSqlTest, AKeyMeansTheSameForEveryField) {
    TaskId dep = Plain("dep");
    NewTask task{.type = "t", .idempotency_key = "key"};
    task.after.emplace() = {.on = {dep}, .on_failure = OnFailure::kFailFast, .need_success = false};
    task.needs = Needs{{"GPU", 2}, {"db", 1}};
    task.labels = {"b", "a"};
    task.order_key = "line é";
    task.on_failed_head = OnFailedHead::kSkip;
    std::string request = fmt::format(
        R"({{"type": "t", "idempotency_key": "KEY", "after": {{"on": ["{}"],
            "on_failure": "fail_fast", "need_success": false}}, "needs": ["db", "gpu=2"],
            "labels": ["a", "b"], "order_key": "line é", "on_failed_head": "skip"}})",
        dep.value()
    );
    auto keyed = [&](const std::string& key) {
        std::string one = request;
        return one.replace(one.find("KEY"), 3, key);
    };
    EXPECT_EQ(FromSql(keyed("key")), Submit(task));
    task.idempotency_key = "other";
    EXPECT_EQ(Submit(task), FromSql(keyed("other")));
    task.order_key = "another";
    EXPECT_EQ(store_->Submit({&task, 1}).at(0).kind, SubmitReply::Kind::kConflict);
    // Nothing given and nothing asked for are not the same.
    NewTask none{.type = "t", .idempotency_key = "none"};
    none.needs.emplace(), none.labels.emplace(), none.after.emplace();
    EXPECT_EQ(
        Submit(none),
        FromSql(
            R"({"type": "t", "idempotency_key": "none", "needs": {}, "labels": [], "after": []})"
        )
    );
}

TEST_F(SubmitSqlTest, WhatIsWrongNamesTheFieldAndTheCure) {
    store_->SetQueue({.name = "q"}, "ann");
    auto refusal = [&](const std::string& rest) {
        return Refusal(R"({"type": "t", )" + rest + "}");
    };
    EXPECT_THAT(refusal(R"("id": 7)"), HasSubstr("id is given; it is assigned here"));
    EXPECT_THAT(refusal(R"("prio": 7)"), HasSubstr("the fields are type, input"));
    EXPECT_THAT(refusal(R"("after": "x")"), HasSubstr("after is \"x\"; give an array of ids"));
    EXPECT_THAT(refusal(R"("after": ["x"])"), HasSubstr("after is \"x\""));
    EXPECT_THAT(refusal(R"("after": [0])"), HasSubstr("after has the id 0; ids are 1 and more"));
    EXPECT_THAT(refusal(R"("after": [7, "7"])"), HasSubstr("after names task 7 twice"));
    EXPECT_THAT(
        refusal(R"("after": [999])"), HasSubstr("after names task 999, which is not there")
    );
    EXPECT_THAT(refusal(R"("after": {"of": []})"), HasSubstr("after.of is unknown"));
    EXPECT_THAT(
        refusal(R"("after": {"on": [], "on_failure": "x"})"), HasSubstr("after.on_failure is \"x\"")
    );
    EXPECT_THAT(
        refusal(R"("after": {"on": [], "any": 1})"), HasSubstr("after.any is 1; give true or false")
    );
    EXPECT_THAT(
        refusal(R"("after": {"on": [], "any": true, "on_failure": "fail_fast"})"),
        HasSubstr("where one failure does not matter")
    );
    EXPECT_THAT(
        refusal(R"("after": [], "debounce": {"key": "k", "wait": "1s"})"),
        HasSubstr("after and debounce cannot be given together")
    );
    EXPECT_THAT(
        refusal(R"("after": [], "unique_key": "k", "unique_policy": "replace_if_not_started")"),
        HasSubstr("cancel the other task instead")
    );
    EXPECT_THAT(refusal(R"("needs": "gpu")"), HasSubstr("needs is \"gpu\""));
    EXPECT_THAT(refusal(R"("needs": ["gpu=x"])"), HasSubstr("NAME=UNITS"));
    EXPECT_THAT(refusal(R"("needs": ["a b"])"), HasSubstr("needs is \"a b\""));
    EXPECT_THAT(refusal(R"("needs": {"": 1})"), HasSubstr("needs is empty"));
    EXPECT_THAT(refusal(R"("needs": {"a": 0})"), HasSubstr("needs asks for 0 units of \"a\""));
    EXPECT_THAT(refusal(R"("needs": {"a": 1.5})"), HasSubstr("asks for 1.5 units"));
    EXPECT_THAT(refusal(R"("needs": {"a": 99999})"), HasSubstr("between 1 and 10000"));
    EXPECT_THAT(
        refusal(R"("needs": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15",)"
                R"("16","17"])"),
        HasSubstr("needs names 17 resources; the limit is 16")
    );
    EXPECT_THAT(refusal(R"("labels": "x")"), HasSubstr("labels is \"x\""));
    EXPECT_THAT(refusal(R"("labels": [1])"), HasSubstr("labels has 1"));
    EXPECT_THAT(refusal(R"("labels": ["a b"])"), HasSubstr("labels is \"a b\""));
    EXPECT_THAT(
        refusal(R"("order_key": ")" + std::string(300, 'x') + "\""),
        HasSubstr("order_key is 300 bytes; the limit is 256 bytes")
    );
    EXPECT_THAT(refusal(R"("on_failed_head": "go")"), HasSubstr("block, skip or dead_letter"));
    // Of another tenant is not there.
    TaskId other = Submit({.tenant = TenantId(2), .type = "t"});
    EXPECT_THAT(
        refusal(fmt::format("\"after\": [{}]", other.value())), HasSubstr("which is not there")
    );
    EXPECT_EQ(store_->List({}).tasks.size(), 1u);
}

TEST_F(SubmitSqlTest, WhatIsWaitedForCannotEndUnnoticedWhileTheCallersTransactionIsOpen) {
    TaskId dep = Plain("dep");
    auto held = store_->Claim({.session = session_, .limit = 1, .types = {"dep"}}).leases.at(0);
    Connection& host = schema_->connection();
    host.Script("BEGIN");
    TaskId waits = FromSql(fmt::format(R"({{"type": "t", "after": [{}]}})", dep.value()));
    Settlement outcome{
        .task = dep, .token = held.token, .session = session_, .kind = Kind::kComplete};
    EXPECT_EQ(store_->Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kBusy);
    host.Script("COMMIT");
    EXPECT_EQ(StateOf(waits), State::kBlocked);
    EXPECT_EQ(store_->Settle({&outcome, 1}).at(0).kind, SettleReply::Kind::kAccepted);
    EXPECT_EQ(StateOf(waits), State::kOpen);
}

TEST_F(SubmitSqlTest, OneThatIsWaitedForIsStillWaitedForWhenItIsReplaced) {
    const std::string request =
        R"({"type": "t", "unique_key": "u", "unique_policy": "replace_if_not_started"})";
    TaskId replaced = FromSql(request);
    NewTask after{.type = "behind"};
    after.after.emplace().on = {replaced};
    TaskId waits = Submit(after);
    EXPECT_EQ(FromSql(request), replaced);
    EXPECT_EQ(End(Kind::kComplete), replaced);
    EXPECT_EQ(StateOf(waits), State::kOpen);
}

TEST_F(SubmitSqlTest, ANeedFromSqlCountsAtTheClaim) {
    ASSERT_TRUE(store_->Resources().Change({.name = "gpu", .capacity = 1}, "ann"));
    TaskId first = FromSql(R"({"type": "t", "needs": ["gpu"]})");
    FromSql(R"({"type": "t", "needs": ["gpu"]})");
    auto leases = store_->Claim({.session = session_, .limit = 9, .types = {"t"}}).leases;
    ASSERT_EQ(leases.size(), 1u);
    EXPECT_EQ(leases[0].task, first);
}

}  // namespace
}  // namespace stint::store
