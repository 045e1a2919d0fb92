// Events in every order: publish × publish of one id, two nodes with one event, two members of one
// join, the last member × the end of the round's time. Beside each the naive variant, which must
// still fail.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "interleave/interleave.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/store_impl.h"
#include "support/postgres_schema.h"

namespace stint::interleave {
namespace {

using namespace stint::store;
using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;
using ::testing::IsEmpty;
using ::testing::Not;

class EventInterleave : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("interleave_events");
        schema_ = &one;
        schema_->Empty();
        store_ = Open("setup");
        for (const char* who : {"A", "B"}) stores_[who] = Open(who);
    }

    // Its connections call themselves like the script that uses them: so the runner sees them wait.
    std::shared_ptr<Store> Open(const std::string& name) {
        PostgresOptions options;
        options.url = stint::testing::WithParameter(
            stint::testing::TestPostgresUrl(), "application_name=" + name
        );
        options.schema = schema_->name();
        options.migrate = false;
        return OpenPostgresStore(options);
    }

    std::string In(std::string text) {
        for (std::size_t at; (at = text.find("$s.")) != std::string::npos;)
            text.replace(at, 3, schema_->name() + ".");
        return text;
    }
    std::int64_t Ask(const std::string& text) {
        return schema_->connection().Query(Statement{"", In(text)}, {}, Commits::kNo).Int(0, 0);
    }
    Step Sql(std::string name, const std::string& text) {
        return {std::move(name), [text = In(text)](Connection& connection) {
                    connection.Query(Statement{"", text}, {}, Commits::kNo);
                }};
    }
    Step Begin() { return Sql("begin", "BEGIN"); }
    Step Commit() { return Sql("commit", "COMMIT"); }

    EventNo Publish() {
        NewEvent event{.type = "e"};
        return store_->Events().Publish({&event, 1}).at(0).no;
    }
    static EventOutcome Submits(EventNo event) {
        EventOutcome outcome;
        outcome.event = event;
        Action& action = outcome.actions.emplace_back();
        action.workflow = "w";
        action.trigger = "t";
        action.what = NewTask{.type = "t"};
        return outcome;
    }
    static EventOutcome Arrives(EventNo event, int member) {
        EventOutcome outcome;
        outcome.event = event;
        Action& action = outcome.actions.emplace_back();
        action.workflow = "w";
        action.trigger = "j";
        JoinArrival arrival;
        arrival.key = {kDefaultTenant, "w", "j", "k"};
        arrival.types = {"u", "v"};
        arrival.ttl = std::chrono::hours{1};
        arrival.submit.type = "t";
        arrival.part = {member, member == 0 ? "u" : "v", TaskId(member + 1), "1", store_time_};
        action.what = std::move(arrival);
        return outcome;
    }
    // The store's own processing, in the script's own transaction.
    Step FireStep(const std::string& who, EventOutcome outcome) {
        return {"fire", [this, who, outcome = std::move(outcome)](Connection& connection) {
                    auto& store = dynamic_cast<pg::PostgresStore&>(*stores_.at(who));
                    auto& events = dynamic_cast<pg::EventTables&>(store.Events());
                    pg::Transaction transaction(connection, pg::Transaction::Joined{});
                    events.FireIn(transaction, {&outcome, 1});
                    transaction.Commit();
                }};
    }
    Step PublishStep(const std::string& who) {
        return {"publish", [this, who](Connection& connection) {
                    auto& store = dynamic_cast<pg::PostgresStore&>(*stores_.at(who));
                    auto& events = dynamic_cast<pg::EventTables&>(store.Events());
                    pg::Transaction transaction(connection, pg::Transaction::Joined{});
                    NewEvent event{.source = "s", .id = "1", .type = "e"};
                    PublishReply reply = events.PublishIn(transaction, {&event, 1}, {0}).at(0);
                    transaction.Commit();
                    std::lock_guard guard(mutex_);
                    replies_.push_back(reply);
                }};
    }
    Outcome Run(
        const std::function<std::vector<Script>()>& scripts,
        const std::function<std::string()>& check
    ) {
        Scenario scenario;
        scenario.prepare = [this] {
            schema_->Clear();
            replies_.clear();
        };
        scenario.scripts = scripts;
        scenario.check = check;
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }

    inline static const Time store_time_{std::chrono::hours{1'000}};
    stint::testing::PostgresSchema* schema_ = nullptr;
    std::shared_ptr<Store> store_;
    std::map<std::string, std::shared_ptr<Store>> stores_;
    std::mutex mutex_;
    std::vector<PublishReply> replies_;  // guarded by mutex_
};

// ---- publish × publish -------------------------------------------------------------------------

TEST_F(EventInterleave, OneIdPublishedTwiceAtOnceIsOneEvent) {
    Outcome outcome = Run(
        [&] {
            return std::vector<Script>{
                {"A", {Begin(), PublishStep("A"), Commit()}},
                {"B", {Begin(), PublishStep("B"), Commit()}}};
        },
        [&]() -> std::string {
            std::int64_t events = Ask("SELECT count(*) FROM $s.published");
            if (events != 1) return fmt::format("{} events", events);
            if (replies_.at(0).no != replies_.at(1).no) return "two numbers for one event";
            return {};
        }
    );
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
}

TEST_F(EventInterleave, LookingBeforePublishingIsNotEnough) {
    Outcome outcome = Run(
        [&] {
            auto script = [&] {
                auto known = std::make_shared<bool>(false);
                return std::vector<Step>{
                    Begin(),
                    {"look",
                     [this, known](Connection& connection) {
                         Statement look{"", In("SELECT 1 FROM $s.published WHERE source = 's'")};
                         *known = !connection.Query(look, {}, Commits::kNo).empty();
                     }},
                    {"add",
                     [this, known](Connection& connection) {
                         if (*known) return;
                         Statement add{
                             "",
                             In("INSERT INTO $s.published(tenant, source, type, data, time, depth, "
                                "state, tries, published_at, due_at) SELECT 1, 's', 'e', 'null', "
                                "t, "
                                "0, 0, 0, t, t FROM $s.now_() t")};
                         connection.Query(add, {}, Commits::kNo);
                     }},
                    Commit()};
            };
            return std::vector<Script>{{"A", script()}, {"B", script()}};
        },
        [&]() -> std::string {
            std::int64_t events = Ask("SELECT count(*) FROM $s.published");
            return events == 1 ? "" : fmt::format("{} events", events);
        }
    );
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- two nodes with one event ------------------------------------------------------------------

TEST_F(EventInterleave, TwoNodesWithOneEventFireEachTriggerOnce) {
    Outcome outcome = Run(
        [&] {
            EventNo event = Publish();
            return std::vector<Script>{
                {"A", {Begin(), FireStep("A", Submits(event)), Commit()}},
                {"B", {Begin(), FireStep("B", Submits(event)), Commit()}}};
        },
        [&]() -> std::string {
            std::int64_t tasks = Ask("SELECT count(*) FROM $s.live");
            std::int64_t firings = Ask("SELECT count(*) FROM $s.firing");
            if (tasks != 1 || firings != 1)
                return fmt::format("{} tasks, {} firings", tasks, firings);
            return Ask("SELECT state FROM $s.published") == 1 ? "" : "the event is not done";
        }
    );
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
}

TEST_F(EventInterleave, WithoutTheLockAndTheRecordATriggerFiresTwice) {
    Outcome outcome = Run(
        [&] {
            EventNo event = Publish();
            auto script = [&](const std::string& who) {
                auto pending = std::make_shared<bool>(false);
                return std::vector<Step>{
                    Begin(),
                    {"look",
                     [this, pending](Connection& connection) {
                         Statement look{"", In("SELECT 1 FROM $s.published WHERE state = 0")};
                         *pending = !connection.Query(look, {}, Commits::kNo).empty();
                     }},
                    {"fire",
                     [this, who, pending, event](Connection& connection) {
                         if (!*pending) return;
                         auto joined = stores_.at(who)->Borrow(connection.native()).value();
                         NewTask task{.type = "t"};
                         joined->Submit({&task, 1});
                         Statement end{"", In("UPDATE $s.published SET state = 1 WHERE no = $1")};
                         connection.Query(end, Params().Number(event), Commits::kNo);
                     }},
                    Commit()};
            };
            return std::vector<Script>{{"A", script("A")}, {"B", script("B")}};
        },
        [&]() -> std::string {
            std::int64_t tasks = Ask("SELECT count(*) FROM $s.live");
            return tasks == 1 ? "" : fmt::format("{} tasks", tasks);
        }
    );
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- two members of one join -------------------------------------------------------------------

TEST_F(EventInterleave, TwoMembersAtOnceFireTheJoinOnce) {
    Outcome outcome = Run(
        [&] {
            EventNo left = Publish();
            EventNo right = Publish();
            return std::vector<Script>{
                {"A", {Begin(), FireStep("A", Arrives(left, 0)), Commit()}},
                {"B", {Begin(), FireStep("B", Arrives(right, 1)), Commit()}}};
        },
        [&]() -> std::string {
            std::int64_t tasks = Ask("SELECT count(*) FROM $s.live");
            std::int64_t rounds = Ask("SELECT count(*) FROM $s.join_round WHERE state = 1");
            std::int64_t parts = Ask("SELECT count(*) FROM $s.join_part");
            if (tasks == 1 && rounds == 1 && parts == 2) return {};
            return fmt::format("{} tasks, {} fired rounds, {} parts", tasks, rounds, parts);
        }
    );
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
}

TEST_F(EventInterleave, AMaskThatIsReadAndWrittenWithoutALockLosesAMember) {
    Outcome outcome = Run(
        [&] {
            schema_->connection().Script(In(
                "INSERT INTO $s.join_round(tenant, workflow, name, key, generation, mask, state, "
                "created_at, expires_at) SELECT 1, 'w', 'j', 'k', 1, 0, 0, t, t FROM $s.now_() t"
            ));
            auto script = [&](std::int64_t bit) {
                auto mask = std::make_shared<std::int64_t>(0);
                return std::vector<Step>{
                    Begin(),
                    {"look",
                     [this, mask](Connection& connection) {
                         Statement look{"", In("SELECT mask FROM $s.join_round")};
                         *mask = connection.Query(look, {}, Commits::kNo).Int(0, 0);
                     }},
                    {"write",
                     [this, mask, bit](Connection& connection) {
                         Statement write{"", In("UPDATE $s.join_round SET mask = $1")};
                         connection.Query(write, Params().Int(*mask | bit), Commits::kNo);
                     }},
                    Commit()};
            };
            return std::vector<Script>{{"A", script(1)}, {"B", script(2)}};
        },
        [&]() -> std::string {
            std::int64_t mask = Ask("SELECT mask FROM $s.join_round");
            return mask == 3 ? "" : fmt::format("mask {}", mask);
        }
    );
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

// ---- the last member × the end of the round's time ---------------------------------------------

// The last member comes while another node ends what has waited too long: the join has fired, or it
// has expired and the member is the first of the next round. Which of them depends on the order.
class ExpiryInterleave : public EventInterleave {
protected:
    EventNo OneMemberIsThere() {
        EventOutcome first = Arrives(Publish(), 0);
        store_->Events().Fire({&first, 1});
        return Publish();
    }
    Step AdvanceStep() {
        return {"advance", [this](Connection&) { schema_->AdvanceTime(std::chrono::hours{2}); }};
    }
    std::string OneOrTheOther() {
        auto rounds = [&](const std::string& which) {
            return Ask("SELECT count(*) FROM $s.join_round WHERE " + which);
        };
        std::int64_t tasks = Ask("SELECT count(*) FROM $s.live");
        std::int64_t fired = rounds("state = 1");
        std::int64_t expired = rounds("state = 2");
        std::int64_t open = rounds("state = 0");
        std::int64_t parts = Ask("SELECT count(*) FROM $s.join_part");
        std::int64_t pending = Ask("SELECT count(*) FROM $s.published WHERE state = 0");
        bool whole = tasks == 1 && fired == 1 && expired == 0 && open == 0;
        bool over = tasks == 0 && fired == 0 && expired == 1 && open == 1;
        fired_ += whole ? 1 : 0;
        expired_ += over ? 1 : 0;
        if ((whole || over) && parts == 2 && pending == 0) return {};
        return fmt::format(
            "{} tasks; {} rounds fired, {} expired, {} open; {} parts, {} events pending",
            tasks,
            fired,
            expired,
            open,
            parts,
            pending
        );
    }
    int fired_ = 0;
    int expired_ = 0;
};

TEST_F(ExpiryInterleave, ARoundFiresOrExpires) {
    Outcome outcome = Run(
        [&] {
            EventNo last = OneMemberIsThere();
            auto lapsed = std::make_shared<std::set<JoinKey>>();
            auto events = [this](const char* who) -> pg::EventTables& {
                auto& store = dynamic_cast<pg::PostgresStore&>(*stores_.at(who));
                return dynamic_cast<pg::EventTables&>(store.Events());
            };
            Step look{"look", [=](Connection&) { *lapsed = events("B").LapsedJoins(10); }};
            Step expire{"expire", [=](Connection& connection) {
                            if (lapsed->empty()) return;
                            pg::Transaction transaction(connection, pg::Transaction::Joined{});
                            events("B").ExpireIn(transaction, *lapsed);
                            transaction.Commit();
                        }};
            return std::vector<Script>{
                {"A", {Begin(), FireStep("A", Arrives(last, 1)), Commit()}},
                {"B", {AdvanceStep(), look, Begin(), expire, Commit()}}};
        },
        [&] { return OneOrTheOther(); }
    );
    EXPECT_EQ(outcome.orders, 56);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0);
    EXPECT_GT(fired_, 0);
    EXPECT_GT(expired_, 0);
}

TEST_F(ExpiryInterleave, ARoundThatIsFoundAndEndedWithoutALockIsBoth) {
    Outcome outcome = Run(
        [&] {
            EventNo last = OneMemberIsThere();
            auto round = std::make_shared<std::int64_t>(0);
            Step look{"look", [this, round](Connection& connection) {
                          Statement text{
                              "",
                              In("SELECT id FROM $s.join_round WHERE state = 0 AND expires_at <= "
                                 "$s.now_()")};
                          Rows rows = connection.Query(text, {}, Commits::kNo);
                          *round = rows.empty() ? 0 : rows.Int(0, 0);
                      }};
            Step expire{
                "expire", [this, round](Connection& connection) {
                    Statement text{
                        "",
                        In("UPDATE $s.join_round SET state = 2, ended_at = $s.now_() WHERE id = "
                           "$1")};
                    connection.Query(text, Params().Int(*round), Commits::kNo);
                }};
            return std::vector<Script>{
                {"A", {Begin(), FireStep("A", Arrives(last, 1)), Commit()}},
                {"B", {AdvanceStep(), look, Begin(), expire, Commit()}}};
        },
        [&] { return OneOrTheOther(); }
    );
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

}  // namespace
}  // namespace stint::interleave
