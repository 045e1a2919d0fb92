// A limit is set, changed or removed while a claim is under way: what the claim takes is counted,
// or the claim sees the limit.
#include "interleave/fixture.h"
#include "store/resources.h"

namespace stint::interleave {
namespace {

using ::testing::HasSubstr;

// Eight tasks wait, and one claim wants three of them. Then there is one unit for all of them, and
// another claim comes: three run, or one.
class Limits : public Interleave {
protected:
    static constexpr int kWanted = 3;

    // Fresh stores: what they know of earlier orders would send them other ways.
    void Prepare(const Needs& needs) {
        Fresh();
        for (const char* who : {"A", "B"}) stores_[who] = Open(who);
        NewTask task;
        task.needs = needs;
        if (!needs.empty()) {
            // A knows that it has to plan.
            Submit(task);
            Lease lease = Claim("A", 1).at(0);
            Settlement done{.task = lease.task, .token = lease.token, .session = session_};
            done.output = "1";
            stores_.at("A")->Settle({&done, 1});
        }
        for (int i = 0; i < 8; ++i) Submit(task);
    }
    std::vector<Lease> Claim(const std::string& who, int limit) {
        ClaimRequest request{.session = session_, .limit = limit, .types = {"t"}, .hinted = true};
        return stores_.at(who)->Claim(request).leases;
    }
    void Set(Store& store, const std::string& name, int capacity) {
        ResourceChange change{.name = name};
        change.capacity = capacity;
        ASSERT_TRUE(store.Resources().Change(change, "ann").has_value());
    }
    Step SetStep(const std::string& name) {
        return {"set", [this, name](Connection&) { Set(*stores_.at("B"), name, 1); }};
    }
    // Counts who runs, as the store does, and waits for nobody.
    Step NaiveSet(const std::string& name) {
        return Sql(
            "set",
            In(fmt::format(
                "WITH r AS (INSERT INTO $s.resource(name, settings, matches) VALUES ('{0}', "
                "'{{\"capacity\": 1}}', '{0}') RETURNING id) INSERT INTO $s.slot(task, resource, "
                "units) SELECT u.task, r.id, 1 FROM r, $s.lease e, unnest(e.ids) u(task)",
                name
            ))
        );
    }

    // Whoever has planned can take nothing as long as H holds the leases; whoever has not begun to
    // look for limits does not begin as long as it holds the session.
    static Step Together(std::string name, std::vector<Step> steps) {
        return {std::move(name), [steps = std::move(steps)](Connection& connection) {
                    for (const Step& step : steps) step.run(connection);
                }};
    }
    Script HoldLeases() {
        Step lock = Sql("lock", In("LOCK TABLE $s.lease IN SHARE MODE"));
        return {"H", {Together("hold", {Begin(), lock}), Commit()}};
    }
    Script HoldSession() {
        Step lock = Sql("lock", In("SELECT FROM $s.session FOR UPDATE"));
        return {"H", {Together("hold", {Begin(), lock}), Commit()}};
    }

    Outcome Run(std::function<void()> prepare, const Script& holder, const Step& set) {
        Scenario scenario;
        scenario.prepare = std::move(prepare);
        scenario.scripts = [=, this] {
            auto claim = [this](const std::string& who, int limit) {
                return Step{"claim", [=, this](Connection&) { Claim(who, limit); }};
            };
            return std::vector<Script>{
                holder,
                {"A", {claim("A", kWanted)}},
                {"B", {Together("set and claim", {set, claim("B", 5)})}}};
        };
        scenario.check = [this]() -> std::string {
            auto run = Ask("SELECT coalesce(sum(cardinality(ids)), 0)::bigint FROM $s.lease");
            auto held = Ask("SELECT count(*) FROM $s.slot");
            if (run != 1 && run != kWanted) return fmt::format("{} run where one may", run);
            if (held != run) return fmt::format("{} run, {} are counted", run, held);
            return Sound();
        };
        return RunAllOrders(stint::testing::TestPostgresUrl(), scenario);
    }
    static void ExpectNone(const Outcome& outcome) {
        EXPECT_EQ(outcome.orders, 12);
        EXPECT_THAT(outcome.violations, IsEmpty());
        EXPECT_THAT(outcome.errors, IsEmpty());
        EXPECT_GT(outcome.waits, 0) << "they did meet";
    }
};

const Needs kLamp = {{"lamp", 1}};

TEST_F(Limits, TheFirstOfAResourceCountsWhatAClaimByPlanTakes) {
    ExpectNone(Run([&] { Prepare(kLamp); }, HoldLeases(), SetStep("lamp")));
}

TEST_F(Limits, TheFirstOfAQueueCountsWhatAPlainClaimTakes) {
    ExpectNone(Run([&] { Prepare({}); }, HoldSession(), SetStep("queue:default")));
}

TEST_F(Limits, ThatOfAPatternCountsWhatAClaimByPlanTakes) {
    ExpectNone(Run([&] { Prepare(kLamp); }, HoldLeases(), SetStep("lam*")));
}

TEST_F(Limits, ThatIsLeftWhenAnotherIsRemovedCountsWhatAClaimTakes) {
    auto prepare = [&] {
        Prepare(kLamp);
        Set(*store_, "lamp", kWanted);
        Set(*store_, "lam*", 1);
    };
    Step remove{"remove", [this](Connection&) {
                    EXPECT_TRUE(stores_.at("B")->Resources().Remove("lamp", "ann"));
                }};
    ExpectNone(Run(prepare, HoldLeases(), remove));
}

TEST_F(Limits, SetWithoutWaitingForTheClaimByPlanMissesWhatItTakes) {
    Outcome outcome = Run([&] { Prepare(kLamp); }, HoldLeases(), NaiveSet("lamp"));
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

TEST_F(Limits, SetWithoutWaitingForThePlainClaimMissesWhatItTakes) {
    Outcome outcome = Run([&] { Prepare({}); }, HoldSession(), NaiveSet("queue:default"));
    EXPECT_THAT(outcome.violations, Not(IsEmpty()));
}

TEST_F(Limits, AClaimThatDoesNotEndIsWaitedForForAWhileAndTheRestGoesOn) {
    Prepare(kLamp);
    Connection& claimer = schema_->connection();
    ClaimRequest request{.session = session_, .limit = 1, .types = {"t"}};
    claimer.Query(Statement{"", "BEGIN"}, {}, Commits::kNo);
    claimer.Query(Statement{"", sql_->promote.sql}, pg::PromoteParams(request, 1), Commits::kNo);
    std::string refused;
    try {
        Set(*store_, "lamp", 1);
    } catch (const Unavailable& error) {
        refused = error.what();
    }
    EXPECT_THAT(refused, HasSubstr("a claim"));
    EXPECT_THAT(refused, HasSubstr("try again"));
    EXPECT_FALSE(store_->Resources().Find("lamp").has_value());
    EXPECT_EQ(Claim("B", 1).size(), 1U) << "claims do not wait for each other";
    claimer.Query(Statement{"", "COMMIT"}, {}, Commits::kYes);
    Set(*store_, "lamp", 1);
    EXPECT_EQ(store_->Resources().Find("lamp")->held, 1);
}

}  // namespace
}  // namespace stint::interleave
