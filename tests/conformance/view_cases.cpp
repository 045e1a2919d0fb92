// The read contract: every store with SQL has the views of view_columns.h, with these columns, in
// this order, of these types, and they tell what the store tells.
#include <set>

#include "conformance/conformance.h"
#include "conformance/view_columns.h"
#include "store/resources.h"

namespace stint::conformance {
namespace {

using Kind = Settlement::Kind;
using nlohmann::json;

std::vector<Backend> BackendsWithViews() {
    std::vector<Backend> with = Backends();
    std::erase_if(with, [](const Backend& backend) { return !backend.has_views; });
    return with;
}

// A text that begins like the pattern, where 9 is any digit and f any hexadecimal one.
bool Begins(const json& value, std::string_view pattern) {
    if (!value.is_string() || value.get_ref<const std::string&>().size() < pattern.size())
        return false;
    const auto& text = value.get_ref<const std::string&>();
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        bool letter = text[i] >= 'a' && text[i] <= 'f';
        bool fits = pattern[i] == '9'   ? digit
                    : pattern[i] == 'f' ? digit || letter
                                        : text[i] == pattern[i];
        if (!fits) return false;
    }
    return true;
}

bool IsInstant(const json& value) {
    if (!Begins(value, "9999-99-99T99:99:99")) return false;
    const auto& text = value.get_ref<const std::string&>();
    return text.ends_with("Z") || text.ends_with("+00:00");
}

bool IsUuid(const json& value) {
    std::string_view uuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    return Begins(value, uuid) && value.get_ref<const std::string&>().size() == uuid.size();
}

// JSON in a text where the store has no type for it.
json Unpacked(const json& value) {
    return value.is_string() ? json::parse(value.get<std::string>(), nullptr, false) : value;
}

bool HasType(const json& value, const std::string& type) {
    if (type.starts_with("int") && type != "interval") return value.is_number_integer();
    if (type == "bool") return value.is_boolean() || value == 0 || value == 1;
    if (type == "jsonb") return !Unpacked(value).is_discarded();
    if (type == "_text") return Unpacked(value).is_array();
    if (type == "uuid") return IsUuid(value);
    if (type == "timestamptz") return IsInstant(value);
    if (type == "interval") return value.is_number_float() || Begins(value, "99:99:99");
    return value.is_string();
}

// A view's rows by their first column, each a map from the column's name.
using Row = std::map<std::string, json>;
std::map<std::int64_t, Row> ById(const ViewRows& view) {
    std::map<std::int64_t, Row> rows;
    for (const json& values : view.rows) {
        Row row;
        for (std::size_t i = 0; i < view.columns.size(); ++i) row[view.columns[i]] = values.at(i);
        rows[row.at("id").get<std::int64_t>()] = row;
    }
    return rows;
}

json OrNull(bool there, json value) {
    return there ? std::move(value) : json();
}

bool Truth(const json& value) {
    return value == true || value == 1;
}

// Whether a view's instant is this one; stores show at least milliseconds.
testing::AssertionResult IsAt(const json& value, std::optional<Time> at) {
    if (value.is_null() != !at.has_value())
        return testing::AssertionFailure() << value << " instead of " << (at ? "a time" : "null");
    if (!at) return testing::AssertionSuccess();
    std::tm parts{};
    const auto& text = value.get_ref<const std::string&>();
    const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (rest == nullptr) return testing::AssertionFailure() << value;
    double fraction = *rest == '.' ? std::stod(rest) : 0;
    double shown = static_cast<double>(timegm(&parts)) + fraction;
    double expected = std::chrono::duration<double>(at->time_since_epoch()).count();
    if (std::abs(shown - expected) < 0.002) return testing::AssertionSuccess();
    return testing::AssertionFailure() << value << " is not " << std::fixed << expected;
}

std::string Dashed(SessionId id) {
    std::string text = id.ToString();
    for (std::size_t at : {20, 16, 12, 8}) text.insert(at, "-");
    return text;
}

class Views : public Conformance {
protected:
    // One task in each state and with everything that a column can show.
    void Populate() {
        TaskId parent = Make({.input = R"({"a":[1,"é"]})", .tags = {"x", "y"}, .parent = {}});
        Make(
            {.tenant = TenantId(7),
             .type = "u",
             .queue = "slow",
             .priority = 9,
             .retry = Fixed(0, 1s),
             .delay = 1h,
             .start_by = store.Now() + 5h,
             .unique_key = "k",
             .parent = parent}
        );
        SettleAs(ClaimOne({.types = {"t"}}), Kind::kRetry, 1h);
        Complete(MakeClaimed({.type = "v"}));
        SettleAs(MakeClaimed({.type = "v"}), Kind::kDead);
        Settlement outside = Outcome(MakeClaimed({.type = "v"}), Kind::kBackground, 1h);
        outside.reason = "elsewhere";
        Settle(outside);
        Settlement warned = Outcome(MakeClaimed({.type = "v"}), Kind::kComplete);
        warned.warning = true;
        Advance(2s);
        Settle(warned);
        Cancel(Make({.type = "v"}));
        Cancel(MakeClaimed({.type = "v"}).task);  // asked to stop, still running
        Make({.type = "v"});
    }

    void ExpectSame(const TaskRecord& task, const Row& row);
    void ExpectSame(const AuditEntry& entry, const Row& row);
    void ExpectSameTimes(const TaskRecord& task, const Row& row);
};
INSTANTIATE_TEST_SUITE_P(Store, Views, testing::ValuesIn(BackendsWithViews()), &BackendName);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Views);

TEST_P(Views, HaveTheColumnsOfTheContractInOrder) {
    for (const ViewContract& contract : ViewContracts()) {
        std::vector<std::string> names;
        for (const ViewColumn& column : contract.columns) names.push_back(column.name);
        EXPECT_EQ(fixture_->ReadView(contract.name).columns, names) << contract.name;
    }
}

TEST_P(Views, ShowWhatATaskWaitsForUntilItIsFinished) {
    TaskId first = Make({.type = "a"}), second = Make({.type = "b"});
    TaskId waiter = Make({.type = "w", .after = WaitOn{.on = {first, second}}});
    std::set<json> shown;
    for (const json& row : fixture_->ReadView("task_task_dep").rows) shown.insert(row);
    EXPECT_EQ(
        shown,
        (std::set<json>{
            {waiter.value(), first.value()},
            {waiter.value(), second.value()},
        })
    );
    for (const char* type : {"a", "b", "w"}) Complete(ClaimOne({.types = {type}}));
    EXPECT_TRUE(fixture_->ReadView("task_task_dep").rows.empty());
}

TEST_P(Views, ShowWhichResourcesATaskNeedsUntilItIsFinished) {
    for (const char* name : {"gpu", "disk"}) {
        ResourceChange change{.name = name};
        change.capacity = name == std::string_view("gpu") ? 2 : 3;
        ASSERT_TRUE(store.Resources().Change(change, "ann"));
    }
    std::map<std::string, json> ids;
    for (const json& row : fixture_->ReadView("task_resource").rows) {
        ids[row.at(1).get<std::string>()] = row.at(0);
        EXPECT_EQ(row.at(2), row.at(1) == "gpu" ? 2 : 3);
    }
    NewTask both{.type = "both"}, one{.type = "one"};
    both.needs = Needs{{"disk", 1}, {"gpu", 2}};
    one.needs = Needs{{"gpu", 1}};
    TaskId first = Make(both), second = Make(one);
    Make({.type = "none"});
    std::set<json> shown;
    for (const json& row : fixture_->ReadView("task_resource_dep").rows) shown.insert(row);
    EXPECT_EQ(
        shown,
        (std::set<json>{
            {first.value(), ids["disk"]},
            {first.value(), ids["gpu"]},
            {second.value(), ids["gpu"]},
        })
    );
    for (const char* type : {"both", "one"}) Complete(ClaimOne({.types = {type}}));
    EXPECT_TRUE(fixture_->ReadView("task_resource_dep").rows.empty());
}

TEST_P(Views, ShowEveryColumnAsItsType) {
    Populate();
    for (const ViewContract& contract : ViewContracts()) {
        ViewRows view = fixture_->ReadView(contract.name);
        ASSERT_EQ(view.columns.size(), contract.columns.size()) << contract.name;
        for (std::size_t i = 0; i < contract.columns.size(); ++i) {
            const ViewColumn& column = contract.columns[i];
            bool seen = false;
            for (const json& row : view.rows) {
                if (row.at(i).is_null()) continue;
                seen = true;
                EXPECT_TRUE(HasType(row.at(i), column.type))
                    << contract.name << "." << column.name << " is " << row.at(i) << ", not a "
                    << column.type;
            }
            EXPECT_TRUE(seen || view.rows.empty())
                << contract.name << "." << column.name << " is always NULL";
        }
    }
}

TEST_P(Views, TheStatusCodesAreThoseOfTheModel) {
    std::map<std::int64_t, Row> rows = ById(fixture_->ReadView("task_status"));
    EXPECT_THAT(rows, SizeIs(kStateCount));
    for (int i = 0; i < kStateCount; ++i)
        EXPECT_EQ(rows[i]["code"], StateCode(static_cast<State>(i)));
}

void Views::ExpectSame(const TaskRecord& task, const Row& row) {
    EXPECT_EQ(row.at("tenant_id"), task.tenant.value());
    EXPECT_EQ(row.at("parent_id"), OrNull(task.parent.valid(), task.parent.value()));
    EXPECT_EQ(row.at("type"), task.type);
    EXPECT_EQ(row.at("queue"), task.queue);
    EXPECT_EQ(row.at("status"), static_cast<int>(task.state));
    EXPECT_EQ(row.at("priority"), task.priority);
    EXPECT_EQ(Unpacked(row.at("input")), json::parse(task.input));
    EXPECT_EQ(row.at("retry_count"), std::max(task.attempt - 1, 0));
    EXPECT_EQ(row.at("try_count"), task.attempt);
    EXPECT_EQ(row.at("attempt"), task.attempt);
    EXPECT_EQ(row.at("claim_no"), task.claim_no);
    EXPECT_EQ(row.at("generation"), task.generation);
    EXPECT_EQ(row.at("max_tries"), OrNull(task.max_attempts > 0, task.max_attempts));
    EXPECT_EQ(row.at("executor"), OrNull(task.node.valid(), task.node.value()));
    EXPECT_EQ(row.at("lease_owner"), OrNull(task.session.valid(), Dashed(task.session)));
    EXPECT_EQ(row.at("unique_key"), OrNull(!task.unique_key.empty(), task.unique_key));
    EXPECT_EQ(Unpacked(row.at("tags")), OrNull(!task.tags.empty(), task.tags));
    EXPECT_EQ(row.at("reason"), task.reason);
    EXPECT_EQ(Truth(row.at("warning")), task.warning);
    EXPECT_EQ(Truth(row.at("cancel_requested")), task.cancel_requested);
    json error = Unpacked(row.at("error"));
    EXPECT_EQ(error.is_null(), !task.error.has_value());
    if (task.error) {
        EXPECT_EQ(error.at("message"), task.error->message);
        EXPECT_EQ(Truth(row.at("retryable")), task.error->retryable);
    } else {
        EXPECT_TRUE(row.at("retryable").is_null());
    }
    EXPECT_EQ(Unpacked(row.at("output")), task.output.empty() ? error : json::parse(task.output));
    const char* worker = task.state == State::kInProgress ? "running"
                         : task.state == State::kComplete ? "done"
                         : IsTerminal(task.state)         ? "error"
                                                          : "pending";
    EXPECT_EQ(row.at("worker_status"), worker);
}

void Views::ExpectSameTimes(const TaskRecord& task, const Row& row) {
    EXPECT_TRUE(IsAt(row.at("created_at"), task.created_at));
    EXPECT_TRUE(IsAt(row.at("claimed_at"), task.claimed_at));
    EXPECT_TRUE(IsAt(row.at("completed_at"), task.finished_at));
    EXPECT_TRUE(IsAt(row.at("expires_at"), task.expires_at));
    EXPECT_TRUE(IsAt(row.at("due_at"), task.due_at));
    EXPECT_TRUE(IsAt(row.at("start_by"), task.start_by));
    EXPECT_TRUE(IsAt(row.at("updated_at"), task.updated_at));
    bool runs = task.state == State::kInProgress;
    EXPECT_TRUE(IsAt(row.at("lease_timeout"), runs ? task.expires_at : std::nullopt));
    EXPECT_EQ(row.at("run_time").is_null(), !task.finished_at || !task.claimed_at);
}

TEST_P(Views, TellOfEveryTaskWhatTheStoreTells) {
    Populate();
    std::map<std::int64_t, Row> rows = ById(fixture_->ReadView("task"));
    std::vector<TaskRecord> tasks = ListAll();
    EXPECT_EQ(rows.size(), tasks.size());
    for (const TaskRecord& task : tasks) {
        SCOPED_TRACE(std::string(StateCode(task.state)) + " task " + task.id.ToString());
        ASSERT_EQ(rows.count(task.id.value()), 1u);
        ExpectSame(task, rows[task.id.value()]);
        ExpectSameTimes(task, rows[task.id.value()]);
    }
}

void Views::ExpectSame(const AuditEntry& entry, const Row& row) {
    EXPECT_EQ(row.at("task_id"), entry.task.value());
    EXPECT_EQ(row.at("tenant_id"), entry.tenant.value());
    EXPECT_EQ(row.at("from_status"), entry.from ? json(StateCode(*entry.from)) : json());
    EXPECT_EQ(row.at("to_status"), StateCode(entry.to));
    EXPECT_EQ(row.at("event"), EventName(entry.event));
    EXPECT_EQ(row.at("attempt"), entry.attempt);
    EXPECT_EQ(row.at("generation"), entry.generation);
    EXPECT_EQ(row.at("session"), OrNull(entry.session.valid(), Dashed(entry.session)));
    EXPECT_EQ(row.at("actor"), entry.actor);
    EXPECT_EQ(row.at("reason"), entry.reason);
    EXPECT_TRUE(IsAt(row.at("created_at"), entry.at));
}

TEST_P(Views, TellOfEveryTransitionWhatTheStoreTells) {
    Populate();
    std::map<std::int64_t, Row> rows = ById(fixture_->ReadView("audit_logs"));
    std::vector<AuditEntry> entries = store.Audit({});
    EXPECT_EQ(rows.size(), entries.size());
    for (const AuditEntry& entry : entries) {
        SCOPED_TRACE("entry " + std::to_string(entry.seq));
        ASSERT_EQ(rows.count(entry.seq), 1u);
        ExpectSame(entry, rows[entry.seq]);
    }
}

TEST_P(Views, NameEveryNode) {
    OpenSession(1h, "Host-B");
    std::vector<NodeRecord> nodes = store.Nodes();
    std::map<std::int64_t, Row> rows = ById(fixture_->ReadView("node"));
    EXPECT_EQ(rows.size(), nodes.size());
    for (const NodeRecord& node : nodes) {
        EXPECT_EQ(rows[node.id.value()]["hostname"], node.hostname);
        EXPECT_TRUE(IsAt(rows[node.id.value()]["last_seen"], node.last_seen));
    }
}

}  // namespace
}  // namespace stint::conformance
