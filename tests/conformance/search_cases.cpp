// Lists, searches and counts. Newest first by id, paged by id, over live and finished tasks alike;
// a filter means what model::Matches says.
#include <algorithm>
#include <set>

#include "conformance/conformance.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
using Op = InputMatch::Op;

CONFORMANCE_SUITE(Searches);

TEST_P(Searches, NewestFirstInPagesWithoutGapsOrRepeats) {
    std::vector<TaskId> ids = MakeMany(25);
    for (const Lease& lease : ClaimMany(10)) Complete(lease);
    std::sort(ids.begin(), ids.end(), std::greater<>());
    EXPECT_EQ(Ids(ListAll({}, 7)), ids);
    EXPECT_EQ(Ids(ListAll({}, 25)), ids);
    EXPECT_EQ(Ids(ListAll({}, 1)), ids);
}

TEST_P(Searches, APageBeforeAnIdStartsBelowIt) {
    MakeMany(5);
    std::vector<TaskId> ids = Ids(ListAll());
    TaskPage page = store.List({.before = ids[1], .limit = 2});
    EXPECT_THAT(Ids(page.tasks), ElementsAre(ids[2], ids[3]));
    EXPECT_EQ(page.next, ids[3]);
    EXPECT_THAT(store.List({.before = ids[4]}).tasks, IsEmpty());
}

TEST_P(Searches, AnEmptyStoreIsAnEmptyPage) {
    TaskPage page = store.List({});
    EXPECT_THAT(page.tasks, IsEmpty());
    EXPECT_EQ(page.next, std::nullopt);
    EXPECT_THAT(store.Counts({}), IsEmpty());
    EXPECT_EQ(store.Get(store.ReserveIds(1)), std::nullopt);
}

TEST_P(Searches, AListedTaskIsTheTask) {
    Lease lease = MakeClaimed({.input = "[1]", .tags = {"x"}});
    auto same = [](const TaskRecord& a, const TaskRecord& b) {
        EXPECT_EQ(a.id, b.id);
        EXPECT_EQ(a.state, b.state);
        EXPECT_EQ(a.input, b.input);
        EXPECT_EQ(a.output, b.output);
        EXPECT_EQ(a.tags, b.tags);
        EXPECT_EQ(a.attempt, b.attempt);
        EXPECT_EQ(a.session, b.session);
        EXPECT_EQ(a.created_at, b.created_at);
        EXPECT_EQ(a.finished_at, b.finished_at);
        EXPECT_EQ(a.due_at, b.due_at);
    };
    same(ListAll().at(0), Get(lease.task));
    Complete(lease);
    same(ListAll().at(0), Get(lease.task));
}

// A population of all sorts of tasks; every filter is compared with the model's meaning of it.
class Population : public Conformance {
protected:
    void Populate() {
        for (int i = 0; i < 60; ++i) {
            NewTask task{
                .tenant = TenantId(1 + i % 2),
                .type = i % 3 == 0   ? "mail.send"
                        : i % 3 == 1 ? "mail.read"
                                     : "t",
                .input = Input(i),
                .queue = i % 4 == 0 ? "a" : "b",
                .priority = i % 256,
                .tags = Tags(i),
                .parent = i % 10 == 0 ? TaskId(77) : TaskId(),
            };
            Make(task);
            if (i % 15 == 14) Advance(1h);
        }
        Kind kinds[] = {
            Kind::kComplete,
            Kind::kDead,
            Kind::kCancelled,
            Kind::kRetry,
            Kind::kBackground,
            Kind::kSnooze};
        std::vector<Lease> leases = ClaimMany(40, {.types = {"mail.send", "mail.read", "t"}});
        ASSERT_THAT(leases, SizeIs(40));
        for (std::size_t i = 0; i < 36; ++i) {
            SettleAs(leases[i], kinds[i % 6], 24h);
            if (i % 12 == 11) Advance(1h);
        }
        all_ = ListAll();
        ASSERT_THAT(all_, SizeIs(60));
    }
    static std::string Input(int i) {
        switch (i % 6) {
            case 0:
                return R"({"n":)" + std::to_string(i) + R"(,"who":{"name":"ann","age":3.5}})";
            case 1:
                return R"({"n":")" + std::to_string(i) + R"(","who":{"name":"bob"}})";
            case 2:
                return R"({"n":null,"flag":true,"list":[1,2]})";
            case 3:
                return "[1,2,3]";
            case 4:
                return R"({"n":)" + std::to_string(i) + R"(.0,"flag":false,"who":"ann"})";
            default:
                return "null";
        }
    }
    static std::vector<std::string> Tags(int i) {
        std::vector<std::string> tags;
        if (i % 2 == 0) tags.push_back("even");
        if (i % 3 == 0) tags.push_back("third");
        if (i % 7 == 0) tags.push_back("a b,c");
        return tags;
    }
    void Expect(const TaskFilter& filter) {
        ASSERT_TRUE(Validate(filter)) << Validate(filter).error().message;
        std::vector<TaskId> expected;
        for (const TaskRecord& task : all_) {
            if (Matches(filter, task)) expected.push_back(task.id);
        }
        EXPECT_EQ(Ids(ListAll(filter)), expected);
        EXPECT_EQ(Ids(ListAll(filter, 3)), expected);
        hits_ += expected.size();
    }

    std::vector<TaskRecord> all_;
    std::size_t hits_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Store, Population, testing::ValuesIn(Backends()), &BackendName);

TEST_P(Population, FiltersByColumns) {
    Populate();
    for (int tenant : {1, 2, 3}) Expect({.tenant = TenantId(tenant)});
    for (int s = 0; s < kStateCount; ++s) Expect({.states = {static_cast<State>(s)}});
    Expect({.states = {State::kOpen, State::kComplete}});
    for (const char* type : {"mail.send", "mail.*", "mail", "*", "t*", "m*", "x"})
        Expect({.types = {type}});
    Expect({.types = {"t", "mail.r*"}});
    for (const char* queue : {"a", "b", "c"}) Expect({.queues = {queue}});
    Expect({.queues = {"a", "b"}});
    for (const char* tag : {"even", "third", "a b,c", "odd", "eve"}) Expect({.tags = {tag}});
    Expect({.tags = {"even", "third"}});
    Expect({.parent = TaskId(77)});
    Expect({.parent = TaskId(78)});
    Expect(
        {.tenant = TenantId(1),
         .states = {State::kComplete},
         .types = {"mail.*"},
         .queues = {"a"},
         .tags = {"even"}}
    );
    EXPECT_GT(hits_, 300u);
}

TEST_P(Population, FiltersByTime) {
    Populate();
    Time first = all_.back().created_at;
    for (Duration offset : {-1h, 0h, 1h, 2h, 3h, 6h}) {
        Expect({.created_from = first + offset});
        Expect({.created_to = first + offset});
        Expect({.finished_from = first + offset});
        Expect({.finished_to = first + offset});
        Expect({.created_from = first + offset, .created_to = first + offset + 1h});
    }
    Time exact = all_[20].created_at;
    Expect({.created_from = exact});
    Expect({.created_to = exact});
    EXPECT_GT(hits_, 100u);
}

TEST_P(Population, FiltersByInput) {
    Populate();
    for (Op op :
         {Op::kEqual, Op::kNotEqual, Op::kLess, Op::kLessEqual, Op::kGreater, Op::kGreaterEqual}) {
        for (const char* value :
             {"12", "12.0", "16", "\"13\"", "\"2\"", "null", "true", "-1", "1e1"}) {
            Expect({.input = {{"n", op, value}}});
        }
        Expect({.input = {{"who.name", op, "\"ann\""}}});
        Expect({.input = {{"who.age", op, "3.5"}}});
        Expect({.input = {{"who", op, "\"ann\""}}});
        Expect({.input = {{"flag", op, "true"}}});
        Expect({.input = {{"flag", op, "false"}}});
        Expect({.input = {{"list", op, "1"}}});
        Expect({.input = {{"list.0", op, "1"}}});
        Expect({.input = {{"missing", op, "null"}}});
        Expect({.input = {{"who.name.x", op, "1"}}});
    }
    Expect(
        {.states = {State::kComplete},
         .input = {{"n", Op::kGreater, "10"}, {"who.name", Op::kEqual, "\"ann\""}}}
    );
    EXPECT_GT(hits_, 300u);
}

TEST_P(Population, CountsByStateQueueAndType) {
    Populate();
    auto expect = [&](const TaskFilter& filter) {
        std::map<CountKey, std::int64_t> expected;
        for (const TaskRecord& task : all_) {
            if (Matches(filter, task)) ++expected[{task.state, task.queue, task.type}];
        }
        std::map<CountKey, std::int64_t> counts = store.Counts(filter);
        std::erase_if(counts, [](const auto& item) { return item.second == 0; });
        EXPECT_EQ(counts, expected);
    };
    expect({});
    expect({.tenant = TenantId(2)});
    expect({.states = {State::kComplete, State::kDead}});
    expect({.types = {"mail.*"}});
    expect({.queues = {"a"}});
    expect({.tenant = TenantId(1), .states = {State::kOpen}, .types = {"t"}, .queues = {"b"}});
    expect({.tenant = TenantId(9)});
}

TEST_P(Searches, OddNamesAreNotPatterns) {
    Make({.type = "a_b"});
    Make({.type = "axb"});
    EXPECT_THAT(ListAll({.types = {"a_b"}}), SizeIs(1));
    EXPECT_THAT(ListAll({.types = {"a_*"}}), SizeIs(1));
    Make({.input = R"({"a.b":1,"a":{"b":2}})"});
    EXPECT_THAT(ListAll({.input = {{"a.b", Op::kEqual, "1"}}}), IsEmpty());
    EXPECT_THAT(ListAll({.input = {{"a.b", Op::kEqual, "2"}}}), SizeIs(1));
    Make({.input = R"({"it's":1,"x y":2,"$":3,"ü":4})"});
    for (auto [path, value] :
         {std::pair{"it's", "1"},
          std::pair{"x y", "2"},
          std::pair{"$", "3"},
          std::pair{"ü", "4"}}) {
        EXPECT_THAT(ListAll({.input = {{path, Op::kEqual, value}}}), SizeIs(1)) << path;
    }
}

}  // namespace
}  // namespace stint::conformance
