// Resources and order keys in every order: two claims at the last free unit, two tasks of one key,
// the end of the first and the coming of the next.
#include "store/resources.h"
#include "interleave/fixture.h"

namespace stint::interleave {
namespace {

class ResourceOrders : public Interleave {
protected:
    // Two units, of which one is held.
    void OneIsFree() {
        Fresh();
        ResourceChange change{.name = "gpu"};
        change.capacity = 2;
        ASSERT_TRUE(store_->Resources().Change(change, "ann").has_value());
        NewTask task;
        task.needs = Needs{{"gpu", 1}};
        for (int i = 0; i < 3; ++i) Submit(task);
        Claim();
        ASSERT_EQ(Held(), 1);
        counted_.clear();
    }
    std::int64_t Held() { return Ask("SELECT count(*) FROM $s.slot"); }

    // The statements of a claim by plan, one by one: lock, count, take what is free.
    Step BeginLocked() {
        return {"lock", [this](Connection& connection) {
                    connection.Query(Statement{"", "BEGIN"}, {}, Commits::kNo);
                    Params names;
                    AddTexts(names, {"gpu"});
                    connection.Query(sql_->resource_lock, names, Commits::kNo);
                }};
    }
    Step Count(const std::string& who, bool begin = false) {
        return {"count", [this, who, begin](Connection& connection) {
                    if (begin) connection.Query(Statement{"", "BEGIN"}, {}, Commits::kNo);
                    Params params;
                    AddTexts(params, {"gpu"});
                    params.Bool(false).Bool(false);
                    Rows rows = connection.Query(sql_->resources, params, Commits::kNo);
                    std::lock_guard guard(mutex_);
                    counted_[who] = rows.Int(0, 5);
                }};
    }
    Step Take(const std::string& who, std::int64_t task) {
        return {"take", [this, who, task](Connection& connection) {
                    {
                        std::lock_guard guard(mutex_);
                        if (counted_.at(who) >= 2) return;
                    }
                    std::string text = In(fmt::format(
                        "INSERT INTO $s.slot(task, resource, units) SELECT {}, id, 1 FROM "
                        "$s.resource",
                        task
                    ));
                    connection.Query(Statement{"", text}, {}, Commits::kNo);
                }};
    }
    Step CountAndTake(const std::string& who, std::int64_t task) {
        return {"take", [this, who, task](Connection& connection) {
                    Count(who).run(connection);
                    Take(who, task).run(connection);
                }};
    }
    static void AddTexts(Params& params, const std::vector<std::string>& texts) {
        postgres::ArrayOf array(postgres::oid::kText);
        for (const std::string& text : texts) array.Text(text);
        array.AddTo(params);
    }
    Outcome Run(const Scenario& scenario) {
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
    static NewTask Keyed() {
        NewTask task{.type = "t"};
        task.order_key = "k";
        return task;
    }
    std::size_t Claimable() {
        ClaimRequest request{.session = session_, .limit = 10, .types = {"t"}};
        return store_->Claim(request).leases.size();
    }

    std::map<std::string, std::int64_t> counted_;  // guarded by mutex_
};

TEST_F(ResourceOrders, TwoClaimsNeverTakeTheSameUnit) {
    Scenario scenario;
    scenario.prepare = [&] { OneIsFree(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {BeginLocked(), CountAndTake("A", 1001), Commit()}},
            {"B", {BeginLocked(), CountAndTake("B", 1002), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        return Held() == 2 ? "" : fmt::format("{} of 2 are held", Held());
    };
    Outcome outcome = Run(scenario);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

TEST_F(ResourceOrders, WithoutTheLockTheyDo) {
    Scenario scenario;
    scenario.prepare = [&] { OneIsFree(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Count("A", true), Take("A", 1001), Commit()}},
            {"B", {Count("B", true), Take("B", 1002), Commit()}}};
    };
    scenario.check = [&]() -> std::string { return Held() <= 2 ? "" : "three of two are held"; };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
}

TEST_F(ResourceOrders, TwoStoresClaimTheLastUnitOnce) {
    Scenario scenario;
    scenario.prepare = [&] { OneIsFree(); };
    scenario.scripts = [&] {
        auto claim = [this](const std::string& who) {
            return Step{
                "claim", [this, who](Connection&) {
                    stores_.at(who)->Claim({.session = session_, .limit = 5, .types = {"t"}});
                }};
        };
        return std::vector<Script>{
            {"A", {claim("A"), claim("A")}}, {"B", {claim("B"), claim("B")}}};
    };
    scenario.check = [&]() -> std::string {
        if (Held() != 2) return fmt::format("{} of 2 are held", Held());
        return Sound();
    };
    Outcome outcome = Run(scenario);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
}

// A claim that waits for the lock of one resource while another, which it found full, is let go of
// and taken by somebody else: of what it has not locked it takes nothing.
class TwoResources : public ResourceOrders {
protected:
    // "full" has one unit, held by leases_[0]; "other" has room. Of the types "a" and "c" one task
    // each waits, for the one and for the other.
    void FullAndOther() {
        Fresh();
        for (const char* name : {"full", "other"}) {
            ResourceChange change{.name = name};
            change.capacity = 1;
            ASSERT_TRUE(store_->Resources().Change(change, "ann").has_value());
        }
        auto submit = [&](const char* type, const char* resource) {
            NewTask task{.type = type};
            task.needs = Needs{{resource, 1}};
            ASSERT_TRUE(store_->Submit({&task, 1}).at(0).accepted());
        };
        submit("t", "full");
        leases_ = {Claim()};
        submit("a", "full");
        submit("c", "other");
    }
    std::int64_t HeldOf(const std::string& name) {
        return Ask(fmt::format(
            "SELECT coalesce(sum(s.units), 0)::bigint FROM $s.slot s JOIN $s.resource r ON r.id = "
            "s.resource WHERE r.name = '{}'",
            name
        ));
    }
    static Step Together(std::string name, std::vector<Step> steps) {
        return {std::move(name), [steps = std::move(steps)](Connection& connection) {
                    for (const Step& step : steps) step.run(connection);
                }};
    }
    Step LockOf(const std::string& name) {
        return {"lock " + name, [this, name](Connection& connection) {
                    Params names;
                    AddTexts(names, {name});
                    connection.Query(sql_->resource_lock, names, Commits::kNo);
                }};
    }
    // Takes it if nobody has it.
    Step TakeOf(const std::string& name, std::int64_t task) {
        return Sql(
            "take " + name,
            In(fmt::format(
                "INSERT INTO $s.slot(task, resource, units) SELECT {}, r.id, 1 FROM $s.resource r "
                "WHERE r.name = '{}' AND NOT EXISTS (SELECT FROM $s.slot s WHERE s.resource = "
                "r.id)",
                task,
                name
            ))
        );
    }
    // One keeps "other" locked for a while; one lets go of "full" and takes it for another task.
    Scenario While(Script claim) {
        Scenario scenario;
        scenario.prepare = [&] { FullAndOther(); };
        scenario.scripts = [this, claim = std::move(claim)] {
            return std::vector<Script>{
                {"H", {Together("lock", {Begin(), LockOf("other")}), Commit()}},
                claim,
                {"B",
                 {Together("end", {Begin(), SettleStep("B"), Commit()}),
                  Together("take", {Begin(), LockOf("full"), TakeOf("full", 1001)}),
                  Commit()}}};
        };
        scenario.check = [&]() -> std::string {
            return HeldOf("full") <= 1 ? "" : fmt::format("{} of 1 are held", HeldOf("full"));
        };
        return scenario;
    }
};

TEST_F(TwoResources, OfWhatIsNotLockedNothingIsTaken) {
    Script claim{
        "A", {{"claim", [this](Connection&) {
                   stores_.at("A")->Claim({.session = session_, .limit = 5, .types = {"a", "c"}});
               }}}};
    Outcome outcome = Run(While(std::move(claim)));
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

// Two tasks end that each try one resource and say that the other does not work: whoever locks
// several resources locks them in one order.
TEST_F(TwoResources, EndsThatConcernBothDoNotBlockEachOther) {
    auto unavailable = [this](const Lease& lease, const std::string& name) {
        Settlement settlement{.task = lease.task, .token = lease.token, .session = session_};
        settlement.kind = Settlement::Kind::kRelease;
        settlement.end = AttemptEnd::kReleased;
        settlement.unavailable = name;
        settlement.error = TaskError{"down", "down", {}, true};
        return settlement;
    };
    auto end = [&](const std::string& who, std::size_t lease, const std::string& name) {
        return Step{"end", [=, this](Connection& connection) {
                        std::shared_ptr<Store> store = Open(who);
                        auto joined = store->Borrow(connection.native()).value();
                        joined->Settle(unavailable(leases_.at(lease), name));
                    }};
    };
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession({.id = session_, .hostname = "h", .lease = std::chrono::hours{24}});
        for (const char* name : {"a", "b"}) {
            NewTask task{.type = name};
            task.needs = Needs{{name, 1}};
            store_->Submit({&task, 1});
        }
        ClaimRequest request{.session = session_, .limit = 5, .types = {"a", "b"}};
        for (const Lease& lease : store_->Claim(request).leases) {
            Settlement down = unavailable(lease, lease.type);
            store_->Settle({&down, 1});
        }
        schema_->AdvanceTime(std::chrono::minutes{2});
        // One by one: what one claim takes is in one lease, and waits for each other.
        for (const char* type : {"b", "a"}) {
            request.types = {type};
            leases_.push_back(store_->Claim(request).leases.at(0));
        }
    };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"H", {Together("lock", {Begin(), LockOf("b")}), Commit()}},
            {"A", {Together("end", {Begin(), end("A", 0, "a"), Commit()})}},
            {"B", {Together("end", {Begin(), end("B", 1, "b"), Commit()})}}};
    };
    scenario.check = [&]() -> std::string { return Sound(); };
    Outcome outcome = Run(scenario);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

TEST_F(TwoResources, WhoCountsWhatItHasNotLockedTakesTooMuch) {
    Script claim{
        "A", {Together("lock", {Begin(), LockOf("other")}), TakeOf("full", 1002), Commit()}};
    EXPECT_THAT(Run(While(std::move(claim))).violations, Not(IsEmpty()));
}

TEST_F(ResourceOrders, TwoFirstTasksOfAKeyAreNotBothFirst) {
    Scenario scenario;
    scenario.prepare = [&] { Fresh(); };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), SubmitStep("A", Keyed()), Commit()}},
            {"B", {Begin(), SubmitStep("B", Keyed()), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        std::string unsound = Sound();
        if (!unsound.empty()) return unsound;
        std::size_t claimable = Claimable();
        return claimable == 1 ? "" : fmt::format("{} can be claimed", claimable);
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

TEST_F(ResourceOrders, WithoutLockingTheKeyTheyAre) {
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        Ask("WITH d AS (DELETE FROM $s.ordered) SELECT 1::bigint");
    };
    scenario.scripts = [&] {
        auto join = [&](std::int64_t task) {
            return std::vector<Step>{
                Begin(),
                Sql("join",
                    In(fmt::format(
                        "INSERT INTO $s.ordered(task, tenant, key, turn, on_failed) VALUES ({}, 1, "
                        "'k', nextval('$s.order_seq'), 0)",
                        task
                    ))),
                Sql("go if first",
                    In(fmt::format(
                        "INSERT INTO $s.past(task, state, attempt, claim_no, generation, "
                        "crash_count, updated_at) SELECT {0}, 0, 0, 0, 1, 0, now() WHERE NOT "
                        "EXISTS (SELECT FROM $s.ordered WHERE task <> {0})",
                        task
                    ))),
                Commit()};
        };
        return std::vector<Script>{{"A", join(1)}, {"B", join(2)}};
    };
    scenario.check = [&]() -> std::string {
        return Ask("SELECT count(*) FROM $s.past") <= 1 ? "" : "two are first";
    };
    EXPECT_THAT(Run(scenario).violations, Not(IsEmpty()));
}

TEST_F(ResourceOrders, TheNextOfAKeyGoesWhenTheFirstEndsMeanwhile) {
    Scenario scenario;
    scenario.prepare = [&] {
        Fresh();
        NewTask first = Keyed();
        store_->Submit({&first, 1});
        leases_ = {Claim()};
    };
    scenario.scripts = [&] {
        return std::vector<Script>{
            {"A", {Begin(), SubmitStep("A", Keyed()), Commit()}},
            {"B", {Begin(), SettleStep("B"), Commit()}}};
    };
    scenario.check = [&]() -> std::string {
        std::string unsound = Sound();
        if (!unsound.empty()) return unsound;
        std::size_t claimable = Claimable();
        return claimable == 1 ? "" : fmt::format("{} can be claimed", claimable);
    };
    Outcome outcome = Run(scenario);
    EXPECT_EQ(outcome.orders, 20);
    EXPECT_THAT(outcome.violations, IsEmpty());
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_GT(outcome.waits, 0) << "they did meet";
}

}  // namespace
}  // namespace stint::interleave
