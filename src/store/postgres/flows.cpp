#include "store/postgres/flows.h"

#include "base/check.h"
#include "base/test_point.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

namespace {

FlowRecord ReadFlow(const Rows& rows, int i) {
    FlowRecord flow;
    flow.task = TaskId(rows.Int(i, 0));
    flow.tenant = TenantId(rows.Int(i, 1));
    flow.steps = static_cast<int>(rows.Int(i, 2));
    flow.bytes = rows.Int(i, 3);
    flow.signals = static_cast<int>(rows.Int(i, 4));
    flow.waiting = static_cast<int>(rows.Int(i, 5));
    if (!rows.IsNull(i, 6)) flow.awaits = rows.Text(i, 6);
    flow.came = rows.Bool(i, 7);
    flow.started_at = rows.At(i, 8);
    return flow;
}

FlowStep ReadStep(const Rows& rows, int i) {
    FlowStep step;
    step.no = static_cast<int>(rows.Int(i, 0));
    step.name = rows.Text(i, 1);
    step.occurrence = static_cast<int>(rows.Int(i, 2));
    step.kind = static_cast<StepKind>(rows.Int(i, 3));
    step.state = static_cast<StepState>(rows.Int(i, 4));
    if (!rows.IsNull(i, 5)) step.about = rows.Text(i, 5);
    if (!rows.IsNull(i, 6)) step.hash = rows.Text(i, 6);
    if (!rows.IsNull(i, 7)) step.result = rows.Text(i, 7);
    if (!rows.IsNull(i, 8)) step.task = TaskId(rows.Int(i, 8));
    if (!rows.IsNull(i, 9)) step.due_at = rows.At(i, 9);
    step.late = rows.Bool(i, 10);
    step.at = rows.At(i, 11);
    if (!rows.IsNull(i, 12)) step.ended_at = rows.At(i, 12);
    return step;
}

FlowSignal ReadSignal(const Rows& rows, int i) {
    FlowSignal signal;
    signal.no = static_cast<int>(rows.Int(i, 0));
    signal.name = rows.Text(i, 1);
    if (!rows.IsNull(i, 2)) signal.id = rows.Text(i, 2);
    signal.payload = rows.Text(i, 3);
    signal.at = rows.At(i, 4);
    if (!rows.IsNull(i, 5)) signal.step = static_cast<int>(rows.Int(i, 5));
    return signal;
}

template <class Read>
auto All(const Rows& rows, Read read) {
    std::vector<decltype(read(rows, 0))> all;
    for (int i = 0; i < rows.size(); ++i) all.push_back(read(rows, i));
    return all;
}
template <class Read>
auto First(const Rows& rows, Read read) {
    std::optional<decltype(read(rows, 0))> first;
    if (!rows.empty()) first = read(rows, 0);
    return first;
}

std::optional<std::string> TextOrNull(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

class Tables final : public FlowTables {
public:
    Tables(PostgresStore& store, Transaction& transaction)
        : store_(store), transaction_(transaction), sql_(store.db().sql) {}

    Time Now() override {
        // After the locks that this transaction had to wait for.
        if (!now_) now_ = transaction_.Query(sql_.now).At(0, 0);
        return *now_;
    }
    Hold Holds(TaskId task, LeaseToken token) override {
        if (!token.valid()) return Hold::kLost;
        Params params;
        params.Number(task).Int(KeyOf(token)).Int(SecretOf(token));
        Rows held = transaction_.Query(sql_.flow_holds, params);
        if (held.empty()) return Hold::kLost;
        return (held.Int(0, 0) & kCancelAsked) != 0 ? Hold::kStopping : Hold::kHeld;
    }
    std::optional<TaskState> StateOf(TaskId task) override {
        std::vector<TaskRecord> records = store_.RecordsIn(transaction_, {&task, 1});
        if (records.empty()) return std::nullopt;
        return TaskState{records.front().state, records.front().tenant};
    }
    std::optional<FlowRecord> Find(TaskId task) override {
        auto flow = First(transaction_.Query(sql_.flow_find, Params().Number(task)), ReadFlow);
        base::TestPoint("store_postgres.flow_locked");
        return flow;
    }
    FlowRecord Make(TaskId task, TenantId tenant) override {
        Params params;
        params.Number(task).Number(tenant).Int(limits::kFlowLook.count());
        transaction_.Defer(sql_.flow_make, std::move(params));
        return Find(task).value();
    }
    void Save(const FlowRecord& flow) override {
        Params params;
        params.Number(flow.task)
            .Int4(flow.steps)
            .Int(flow.bytes)
            .Int4(flow.signals)
            .Int4(flow.waiting)
            .TextOrNull(TextOrNull(flow.awaits))
            .Bool(flow.came);
        transaction_.Defer(sql_.flow_save, std::move(params));
    }
    std::vector<FlowStep> Steps(TaskId task) override {
        return All(transaction_.Query(sql_.flow_steps, Params().Number(task)), ReadStep);
    }
    std::optional<FlowStep> Step(TaskId task, std::string_view name, int occurrence) override {
        Params params;
        params.Number(task).Text(name).Int4(occurrence);
        return First(transaction_.Query(sql_.flow_step, params), ReadStep);
    }
    void Add(TaskId task, const FlowStep& step) override {
        Params params;
        params.Number(task)
            .Int4(step.no)
            .Text(step.name)
            .Int4(step.occurrence)
            .Int4(static_cast<int>(step.kind))
            .Int4(static_cast<int>(step.state))
            .TextOrNull(TextOrNull(step.about))
            .TextOrNull(TextOrNull(step.hash))
            .TextOrNull(TextOrNull(step.result));
        step.task.valid() ? params.Number(step.task) : params.Null(oid::kInt8);
        params.AtOrNull(step.due_at).Bool(step.late).At(step.at).AtOrNull(step.ended_at);
        transaction_.Defer(sql_.flow_step_add, std::move(params));
    }
    void End(TaskId task, const FlowStep& step) override {
        Params params;
        params.Number(task)
            .Int4(step.no)
            .Int4(static_cast<int>(step.state))
            .TextOrNull(TextOrNull(step.result))
            .AtOrNull(step.ended_at);
        transaction_.Defer(sql_.flow_step_end, std::move(params));
    }
    std::optional<FlowSignal> NextSignal(TaskId task, std::string_view name) override {
        Params params;
        params.Number(task).Text(name);
        return First(transaction_.Query(sql_.flow_signal_next, params), ReadSignal);
    }
    std::optional<FlowSignal> SignalById(TaskId task, std::string_view id) override {
        Params params;
        params.Number(task).Text(id);
        return First(transaction_.Query(sql_.flow_signal_by_id, params), ReadSignal);
    }
    void Add(TaskId task, const FlowSignal& signal) override {
        Params params;
        params.Number(task)
            .Int4(signal.no)
            .Text(signal.name)
            .TextOrNull(TextOrNull(signal.id))
            .Text(signal.payload)
            .At(signal.at);
        transaction_.Defer(sql_.flow_signal_add, std::move(params));
    }
    void Take(TaskId task, const FlowSignal& signal) override {
        Params params;
        params.Number(task).Int4(signal.no).Int4(signal.step);
        transaction_.Defer(sql_.flow_signal_take, std::move(params));
    }
    SubmitReply Submit(const NewTask& task) override {
        return store_.SubmitIn(transaction_, {&task, 1}).front();
    }
    std::optional<std::string> Wake(TaskId task, std::string_view actor, const std::string& reason)
        override;

private:
    PostgresStore& store_;
    Transaction& transaction_;
    const Sql& sql_;
    std::optional<Time> now_;
};

std::optional<std::string> Tables::Wake(
    TaskId task, std::string_view actor, const std::string& reason
) {
    std::vector<Facts> taken = store_.TakeWaiting(transaction_, {task.value()}, {State::kOpen});
    if (taken.empty()) return std::nullopt;
    Facts& facts = taken.front();
    const bool sleeps = facts.due_at > facts.now;
    Lane lane = store_.catalog().LaneOf(facts.lane);
    Changes changes(store_.catalog());
    if (sleeps) {
        changes.AddAudit(
            {task,
             lane.tenant,
             Event::kEdit,
             facts.state,
             facts.state,
             facts.attempt,
             facts.generation,
             {},
             std::string(actor),
             reason}
        );
    }
    changes.AddWaiting({facts, std::min(facts.due_at, facts.now)});
    store_.Apply(transaction_, changes);
    return sleeps ? std::optional(lane.queue) : std::nullopt;
}

}  // namespace

// What submits may have to learn of new task types first.
template <class Work>
auto PostgresFlows::Change(Work&& work) {
    TransactionOptions options;
    options.lock_timeout = std::chrono::seconds{5};
    for (int tries = 1;; ++tries) {
        try {
            return store_.db().Run(
                [&](Transaction& transaction) {
                    Tables tables(store_, transaction);
                    return work(tables);
                },
                options
            );
        } catch (const OutdatedTypes& outdated) {
            if (tries == kTypeTries) throw Unavailable(outdated.what());
            store_.catalog().ReloadTypes();
        }
    }
}

std::set<TaskId> PostgresFlows::Awake(Transaction& transaction, std::vector<std::int64_t> tasks) {
    std::set<TaskId> awake;
    if (tasks.empty()) return awake;
    Params params;
    AddInts(params, Sorted(std::move(tasks)));
    Rows rows = transaction.Query(store_.db().sql.flow_came, params);
    base::TestPoint("store_postgres.flow_lies_down");
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.Bool(i, 1)) awake.insert(TaskId(rows.Int(i, 0)));
    }
    return awake;
}

std::optional<FlowHistory> PostgresFlows::Begin(TaskId task, LeaseToken token) {
    return Change([&](FlowTables& tables) { return BeginFlow(tables, task, token); });
}

FlowReply PostgresFlows::Record(const FlowWrite& write) {
    return Change([&](FlowTables& tables) { return RecordStep(tables, write); });
}

FlowReply PostgresFlows::AwaitSignal(const FlowWrite& write) {
    return Change([&](FlowTables& tables) { return store::AwaitSignal(tables, write); });
}

SignalReply PostgresFlows::Signal(const NewSignal& signal) {
    return Change([&](FlowTables& tables) { return SignalFlow(tables, signal); });
}

ForkReply PostgresFlows::Fork(const FlowFork& fork) {
    return Change([&](FlowTables& tables) { return ForkFlow(tables, fork); });
}

std::optional<FlowHistory> PostgresFlows::Get(TaskId task) {
    return store_.db().Run([&](Transaction& transaction) -> std::optional<FlowHistory> {
        const Sql& sql = store_.db().sql;
        Params params;
        params.Number(task);
        auto flow = First(transaction.Query(sql.flow_read, params), ReadFlow);
        if (!flow) return std::nullopt;
        return FlowHistory{
            *flow,
            All(transaction.Query(sql.flow_steps, params), ReadStep),
            All(transaction.Query(sql.flow_signals, params), ReadSignal),
            transaction.Query(sql.now).At(0, 0)};
    });
}

std::vector<FlowRecord> PostgresFlows::List(const FlowListRequest& request) {
    Params params;
    params.Int(request.before ? request.before->value() : INT64_MAX);
    request.tenant ? params.Number(*request.tenant) : params.Null(oid::kInt8);
    params.Int4(request.limit);
    return All(store_.db().Read(store_.db().sql.flow_list, params), ReadFlow);
}

int PostgresFlows::Tidy(int limit) {
    return store_.db().Run([&](Transaction& transaction) {
        const Sql& sql = store_.db().sql;
        Rows rows = transaction.Query(sql.flow_look, Params().Int4(limit));
        std::vector<TaskId> tasks;
        for (int i = 0; i < rows.size(); ++i) tasks.emplace_back(rows.Int(i, 0));
        if (tasks.empty()) return 0;
        std::map<TaskId, Time> kept = store_.KeptUntil(transaction, tasks, limits::kFlowLook);
        Params params;
        AddInts(params, WithoutThose(tasks, kept));
        AddLooks(params, kept);
        transaction.Defer(sql.flow_forget, std::move(params));
        return static_cast<int>(tasks.size());
    });
}

}  // namespace stint::store::pg
