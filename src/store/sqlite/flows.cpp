#include "store/sqlite/flows.h"

#include "base/check.h"
#include "sqlite/transaction.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/row.h"

namespace stint::store::lite {

namespace {

std::optional<std::string> TextOrNull(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}
std::optional<std::int64_t> MicrosOrNull(const std::optional<Time>& time) {
    return time ? std::optional(Micros(*time)) : std::nullopt;
}
std::optional<Time> TimeOrNone(const sqlite::Rows& rows, int column) {
    return rows.IsNull(column) ? std::nullopt : std::optional(FromMicros(rows.Int(column)));
}

FlowRecord ReadFlow(const sqlite::Rows& rows) {
    FlowRecord flow;
    flow.task = TaskId(rows.Int(0));
    flow.tenant = TenantId(rows.Int(1));
    flow.steps = static_cast<int>(rows.Int(2));
    flow.bytes = rows.Int(3);
    flow.signals = static_cast<int>(rows.Int(4));
    flow.waiting = static_cast<int>(rows.Int(5));
    flow.awaits = rows.String(6);
    flow.came = rows.Int(7) != 0;
    flow.started_at = FromMicros(rows.Int(8));
    return flow;
}

FlowStep ReadStep(const sqlite::Rows& rows) {
    FlowStep step;
    step.no = static_cast<int>(rows.Int(0));
    step.name = rows.String(1);
    step.occurrence = static_cast<int>(rows.Int(2));
    step.kind = static_cast<StepKind>(rows.Int(3));
    step.state = static_cast<StepState>(rows.Int(4));
    step.about = rows.String(5);
    step.hash = rows.String(6);
    step.result = rows.String(7);
    step.task = TaskId(rows.Int(8));
    step.due_at = TimeOrNone(rows, 9);
    step.late = rows.Int(10) != 0;
    step.at = FromMicros(rows.Int(11));
    step.ended_at = TimeOrNone(rows, 12);
    return step;
}

FlowSignal ReadSignal(const sqlite::Rows& rows) {
    FlowSignal signal;
    signal.no = static_cast<int>(rows.Int(0));
    signal.name = rows.String(1);
    signal.id = rows.String(2);
    signal.payload = rows.String(3);
    signal.at = FromMicros(rows.Int(4));
    signal.step = static_cast<int>(rows.Int(5));
    return signal;
}

template <class Read>
auto All(sqlite::Rows rows, Read read) {
    std::vector<decltype(read(rows))> all;
    while (rows.Next()) all.push_back(read(rows));
    return all;
}
template <class Read>
auto First(sqlite::Rows rows, Read read) {
    std::optional<decltype(read(rows))> first;
    if (rows.Next()) first = read(rows);
    return first;
}

class Tables final : public FlowTables {
public:
    explicit Tables(Ops& ops) : ops_(ops) {}

    Time Now() override { return ops_.now(); }
    Hold Holds(TaskId task, LeaseToken token) override { return ops_.Holds(task, token); }
    std::optional<TaskState> StateOf(TaskId task) override { return ops_.StateAndTenant(task); }
    std::optional<FlowRecord> Find(TaskId task) override {
        return First(Sql("flow_find").Query(task.value()), ReadFlow);
    }
    FlowRecord Make(TaskId task, TenantId tenant) override {
        Sql("flow_make")
            .Run(task.value(), tenant.value(), Micros(Now()), Micros(Now() + limits::kFlowLook));
        return Find(task).value();
    }
    void Save(const FlowRecord& flow) override {
        Sql("flow_save")
            .Run(
                flow.steps,
                flow.bytes,
                flow.signals,
                flow.waiting,
                TextOrNull(flow.awaits),
                flow.came,
                flow.task.value()
            );
    }
    std::vector<FlowStep> Steps(TaskId task) override {
        return All(Sql("flow_steps").Query(task.value()), ReadStep);
    }
    std::optional<FlowStep> Step(TaskId task, std::string_view name, int occurrence) override {
        return First(Sql("flow_step").Query(task.value(), name, occurrence), ReadStep);
    }
    void Add(TaskId task, const FlowStep& step) override {
        Sql("flow_step_add")
            .Run(
                task.value(),
                step.no,
                step.name,
                step.occurrence,
                static_cast<int>(step.kind),
                static_cast<int>(step.state),
                TextOrNull(step.about),
                TextOrNull(step.hash),
                TextOrNull(step.result),
                step.task.valid() ? std::optional(step.task.value()) : std::nullopt,
                MicrosOrNull(step.due_at),
                step.late,
                Micros(step.at),
                MicrosOrNull(step.ended_at)
            );
    }
    void End(TaskId task, const FlowStep& step) override {
        Sql("flow_step_end")
            .Run(
                task.value(),
                step.no,
                static_cast<int>(step.state),
                TextOrNull(step.result),
                MicrosOrNull(step.ended_at)
            );
    }
    std::optional<FlowSignal> NextSignal(TaskId task, std::string_view name) override {
        return First(Sql("flow_signal_next").Query(task.value(), name), ReadSignal);
    }
    std::optional<FlowSignal> SignalById(TaskId task, std::string_view id) override {
        return First(Sql("flow_signal_by_id").Query(task.value(), id), ReadSignal);
    }
    void Add(TaskId task, const FlowSignal& signal) override {
        Sql("flow_signal_add")
            .Run(
                task.value(),
                signal.no,
                signal.name,
                TextOrNull(signal.id),
                signal.payload,
                Micros(signal.at)
            );
    }
    void Take(TaskId task, const FlowSignal& signal) override {
        Sql("flow_signal_take").Run(task.value(), signal.no, signal.step);
    }
    SubmitReply Submit(const NewTask& task) override {
        return ops_.Submit(Prepare({&task, 1})).front();
    }
    std::optional<std::string> Wake(TaskId task, std::string_view actor, const std::string& reason)
        override {
        return ops_.WakeSleeper(task, actor, reason);
    }

private:
    sqlite::Statement& Sql(std::string_view name) { return lite::Sql(ops_.db(), name); }

    Ops& ops_;
};

}  // namespace

// ---- what flows ask of tasks -------------------------------------------------------------------

FlowTables::Hold Ops::Holds(TaskId task, LeaseToken token) {
    TaskRow row;
    bool held =
        token.valid() && Load(task, row) && row.state == State::kInProgress && row.token == token;
    if (!held) return FlowTables::Hold::kLost;
    return row.Has(kCancelRequested) ? FlowTables::Hold::kStopping : FlowTables::Hold::kHeld;
}

std::optional<std::string> Ops::WakeSleeper(
    TaskId task, std::string_view actor, const std::string& reason
) {
    TaskRow row;
    if (!Load(task, row) || row.state != State::kOpen || row.due_at <= now_) return std::nullopt;
    Move(row, Event::kEdit, {.actor = actor, .reason = reason, .session = {}});
    ToWaiting(row, now_);
    Persist(row);
    return lanes_.At(row.lane).queue;
}

bool Ops::SignalCame(TaskId task) {
    return Sql("flow_came").Scalar(task.value()).value_or(0) != 0;
}

int Ops::ForgetFlows(int limit) {
    std::vector<std::int64_t> tasks =
        All(Sql("flow_look").Query(Micros(now_), limit),
            [](const sqlite::Rows& rows) { return rows.Int(0); });
    for (std::int64_t task : tasks) {
        if (auto later = KeptUntil(TaskId(task), limits::kFlowLook)) {
            Sql("flow_look_later").Run(task, Micros(*later));
            continue;
        }
        Sql("flow_forget_steps").Run(task);
        Sql("flow_forget_signals").Run(task);
        Sql("flow_forget").Run(task);
    }
    return static_cast<int>(tasks.size());
}

// ---- the door ----------------------------------------------------------------------------------

template <class Work>
auto DirectFlows::Change(Work&& work) {
    std::optional<decltype(work(std::declval<FlowTables&>()))> reply;
    writer_.Run([&](Ops& ops) {
        Tables tables(ops);
        reply.emplace(work(tables));
    });
    return std::move(*reply);
}

template <class Question>
auto DirectFlows::Ask(Question&& question) {
    writer_.RequireSound();
    return readers_.With([&](Reads& reads) {
        sqlite::ReadTransaction view(reads.db());
        return question(reads.db());
    });
}

std::optional<FlowHistory> DirectFlows::Begin(TaskId task, LeaseToken token) {
    return Change([&](FlowTables& tables) { return BeginFlow(tables, task, token); });
}

FlowReply DirectFlows::Record(const FlowWrite& write) {
    return Change([&](FlowTables& tables) { return RecordStep(tables, write); });
}

FlowReply DirectFlows::AwaitSignal(const FlowWrite& write) {
    return Change([&](FlowTables& tables) { return store::AwaitSignal(tables, write); });
}

SignalReply DirectFlows::Signal(const NewSignal& signal) {
    return Change([&](FlowTables& tables) { return SignalFlow(tables, signal); });
}

ForkReply DirectFlows::Fork(const FlowFork& fork) {
    return Change([&](FlowTables& tables) { return ForkFlow(tables, fork); });
}

std::optional<FlowHistory> DirectFlows::Get(TaskId task) {
    return Ask([&](sqlite::Connection& db) -> std::optional<FlowHistory> {
        auto flow = First(Sql(db, "flow_find").Query(task.value()), ReadFlow);
        if (!flow) return std::nullopt;
        return FlowHistory{
            *flow,
            All(Sql(db, "flow_steps").Query(task.value()), ReadStep),
            All(Sql(db, "flow_signals").Query(task.value()), ReadSignal),
            clock_.WallTime()};
    });
}

std::vector<FlowRecord> DirectFlows::List(const FlowListRequest& request) {
    std::int64_t before = request.before ? request.before->value() : INT64_MAX;
    auto tenant = request.tenant ? std::optional(request.tenant->value()) : std::nullopt;
    return Ask([&](sqlite::Connection& db) {
        return All(Sql(db, "flow_list").Query(before, tenant, request.limit), ReadFlow);
    });
}

int DirectFlows::Tidy(int limit) {
    int looked = 0;
    writer_.Run([&](Ops& ops) { looked = ops.ForgetFlows(limit); });
    return looked;
}

}  // namespace stint::store::lite
