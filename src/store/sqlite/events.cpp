#include "store/sqlite/events.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "store/event_words.h"
#include "store/fire.h"
#include "store/sqlite/event_rows.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

using Kind = PublishReply::Kind;

std::optional<std::int64_t> OrNull(TaskId task) {
    return task.valid() ? std::optional(task.value()) : std::nullopt;
}

// With its parts, instead of those that it had.
void SaveRound(sqlite::Connection& db, const JoinInstance& round) {
    auto id = Sql(db, "round_set")
                  .Scalar(
                      round.key.tenant.value(),
                      round.key.workflow,
                      round.key.join,
                      round.key.key,
                      round.generation,
                      static_cast<std::int64_t>(round.mask),
                      static_cast<int>(round.state),
                      OrNull(round.task),
                      lite::OrNull(round.message),
                      Micros(round.created_at),
                      Micros(round.expires_at),
                      Micros(round.ended_at)
                  );
    CHECK(id.has_value());
    Sql(db, "part_remove").Run(*id);
    for (const JoinPart& part : round.parts) {
        Sql(db, "part_set")
            .Run(
                *id,
                part.member,
                part.type,
                part.task.value(),
                part.output,
                Micros(part.completed_at)
            );
    }
    if (!round.once || !IsOver(round)) return;
    const JoinKey& key = round.key;
    Sql(db, "once_set").Run(key.tenant.value(), key.workflow, key.join, key.key, round.generation);
}

void SaveFiring(sqlite::Connection& db, const FiringTables::Firing& firing) {
    const FiringRecord& record = firing.record;
    // One that follows may be known: the task took a later request over.
    const bool follows = record.kind == FiringRecord::Kind::kFollowed;
    Sql(db, follows ? "firing_add_once" : "firing_add")
        .Run(
            record.event.value(),
            record.workflow,
            record.trigger,
            record.tenant.value(),
            record.version,
            static_cast<int>(record.kind),
            OrNull(record.task),
            firing.depth,
            lite::OrNull(record.message),
            Micros(record.at)
        );
}

// There is one writer: what is read here is locked.
class Tables final : public FiringTables {
public:
    explicit Tables(Ops& ops) : ops_(ops), db_(ops.db()) {}

    PublishReply Publish(const NewEvent& event) override { return EventOps(ops_).Publish(event); }
    std::map<EventNo, Locked> Lock(std::span<const EventOutcome> outcomes) override {
        std::map<EventNo, Locked> locked;
        for (const EventOutcome& outcome : outcomes) {
            auto event = EventReads(db_).GetEvent(outcome.event);
            if (!event) continue;
            Locked& one = locked[event->no];
            one.event = event->no;
            one.tenant = event->tenant;
            one.pending = event->state == EventState::kPending;
            one.depth = event->depth;
            sqlite::Rows fired = Sql(db_, "firing_names").Query(event->no.value());
            while (fired.Next()) one.fired.emplace(fired.String(0), fired.String(1));
        }
        return locked;
    }
    std::map<JoinKey, JoinInstance> Rounds(const std::set<JoinKey>& keys) override {
        std::map<JoinKey, JoinInstance> newest;
        std::optional<std::int64_t> forgotten;
        for (const JoinKey& key : keys) {
            auto rounds = ReadRounds(
                db_,
                Sql(db_, "round_newest").Query(key.tenant.value(), key.workflow, key.join, key.key)
            );
            if (!rounds.empty()) {
                newest[key] = std::move(rounds.front().instance);
                continue;
            }
            auto once =
                Sql(db_, "once_get").Scalar(key.tenant.value(), key.workflow, key.join, key.key);
            if (once) newest[key] = FiredOnce(key, static_cast<int>(*once));
            if (once) continue;
            if (!forgotten) forgotten = Sql(db_, "generation_forgotten").Scalar().value_or(0);
            if (*forgotten > 0) newest[key] = ForgottenRound(key, static_cast<int>(*forgotten));
        }
        return newest;
    }
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        return ops_.Submit(Prepare(tasks));
    }
    Result<State> Finish(const BackgroundFinish& finish) override {
        return ops_.FinishBackground(finish);
    }
    bool IsTerminal(TaskId task) override {
        return !Sql(db_, "task_exists").Scalar(task.value()).has_value();
    }
    Time Now() override { return ops_.now(); }
    void Save(
        std::span<const Ending> endings,
        std::span<const Firing> firings,
        std::span<const JoinInstance> rounds
    ) override {
        for (const Ending& ending : endings) {
            bool pending = ending.state == EventState::kPending;
            std::optional<Time> processed;
            if (!pending) processed = Now();
            Sql(db_, "event_end")
                .Run(
                    static_cast<int>(ending.state),
                    lite::OrNull(ending.reason),
                    Micros(Now() + ending.later),
                    Micros(processed),
                    ending.event.value()
                );
        }
        for (const Firing& firing : firings) SaveFiring(db_, firing);
        for (const JoinInstance& round : rounds) SaveRound(db_, round);
    }

private:
    Ops& ops_;
    sqlite::Connection& db_;
};

}  // namespace

PublishReply EventOps::Publish(const NewEvent& event) {
    if (auto valid = Validate(event); !valid) {
        return {.kind = Kind::kInvalid, .no = {}, .message = valid.error().message};
    }
    if (!event.id.empty()) {
        sqlite::Rows known = Sql("event_known").Query(event.tenant.value(), event.source, event.id);
        if (known.Next()) {
            EventNo before(known.Int(0));
            if (SaysTheSame(event, known.Text(1), known.Text(2))) {
                return {.kind = Kind::kExisting, .no = before, .message = {}};
            }
            return {.kind = Kind::kConflict, .no = before, .message = SaidBefore(event, before)};
        }
    }
    return Add(event);
}

PublishReply EventOps::Add(const NewEvent& event) {
    const int depth = OriginOf(event.cause).depth;
    std::string reason = TooDeep(depth);
    bool refused = !reason.empty();
    std::optional<Time> processed;
    if (refused) processed = now_;
    auto no = Sql("event_add")
                  .Scalar(
                      event.tenant.value(),
                      event.source,
                      lite::OrNull(event.id),
                      event.type,
                      event.data,
                      Micros(event.time.value_or(now_)),
                      OrNull(event.cause),
                      depth,
                      static_cast<int>(refused ? EventState::kRefused : EventState::kPending),
                      lite::OrNull(reason),
                      Micros(now_),
                      Micros(now_),
                      Micros(processed)
                  );
    CHECK(no.has_value());
    return {.kind = Kind::kAccepted, .no = EventNo(*no), .message = reason, .refused = refused};
}

TaskId EventOps::ParentOf(TaskId task) {
    {
        sqlite::Rows live = Sql("task_parent").Query(task.value());
        if (live.Next()) return TaskId(live.Int(0));
    }
    PeriodList periods;
    periods.Refresh(db_);
    for (const Period& period : periods.Of(PeriodKind::kHistory)) {
        sqlite::Rows finished = lite::Sql(db_, "history_parent", period.id).Query(task.value());
        if (finished.Next()) return TaskId(finished.Int(0));
    }
    return {};
}

// One more than the event that led to the cause, or to what the cause is part of, finished or not.
EventOps::Origin EventOps::OriginOf(TaskId cause) {
    Origin origin;
    for (int up = 0; up < limits::kEventAncestors; ++up) {
        if (!cause.valid()) return origin;
        {
            sqlite::Rows before = Sql("event_before").Query(cause.value());
            if (before.Next() && before.Int(1) >= origin.depth) {
                origin = {EventNo(before.Int(0)), static_cast<int>(before.Int(1)) + 1};
            }
        }
        cause = ParentOf(cause);
    }
    origin.depth = limits::kEventDepth + 1;
    return origin;
}

void EventOps::Follow(TaskId cause, TaskId task, TenantId tenant) {
    Origin origin = OriginOf(cause);
    if (origin.depth == 0) return;
    // Its record goes with an event; of one below too many tasks nobody knows which.
    if (!origin.event.valid()) origin.event = EventNo(Sql("event_newest").Scalar().value_or(0));
    if (!origin.event.valid()) return;
    SaveFiring(db_, FollowedBy(origin.event, origin.depth - 1, task, tenant, now_));
}

// ---- definitions ----

void EventOps::Changed() {
    Sql("counter_take").Scalar(1, "workflow");
    ops_.ForgetMembers();
}

Result<WorkflowRecord> EventOps::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    WorkflowRecord record;
    {
        sqlite::Rows rows = Sql("workflow_get").Query(definition.tenant.value(), definition.name);
        if (rows.Next()) record = ReadWorkflow(rows);
    }
    bool known = record.version > 0 && record.unreadable.empty();
    if (known && record.definition == definition) return record;
    if (record.version == 0 && Sql("workflow_count").Scalar().value_or(0) >= limits::kWorkflows) {
        return TooManyWorkflows();
    }
    record.definition = definition;
    record.unreadable.clear();
    ++record.version;
    record.updated_at = now_;
    record.updated_by = actor;
    const std::int64_t tenant = definition.tenant.value();
    Sql("workflow_set")
        .Run(
            tenant,
            definition.name,
            record.version,
            WorkflowToJson(definition),
            Micros(now_),
            record.updated_by
        );
    Sql("member_clear").Run(tenant, definition.name);
    for (const std::string& type : MemberTypes(definition)) {
        Sql("member_add").Run(tenant, definition.name, type);
    }
    Sql("once_clear").Run(tenant, definition.name, base::JsonList(OnceJoins(definition.joins)));
    Changed();
    return record;
}

bool EventOps::RemoveWorkflow(TenantId tenant, std::string_view name) {
    if (Sql("workflow_remove").Run(tenant.value(), name) == 0) return false;
    Sql("member_clear").Run(tenant.value(), name);
    Sql("once_clear").Run(tenant.value(), name, "[]");
    Changed();
    return true;
}

// ---- processing ----

NextEventsReply EventOps::NextEvents(const NextEventsRequest& request) {
    NextEventsReply reply;
    reply.now = now_;
    reply.revision = Sql("workflow_revision").Scalar().value_or(0);
    std::vector<std::int64_t> due;
    {
        sqlite::Rows rows = Sql("event_due").Query(Micros(now_), request.limit);
        while (rows.Next()) due.push_back(rows.Int(0));
    }
    std::sort(due.begin(), due.end());
    std::size_t bytes = 0;
    for (std::int64_t no : due) {
        if (bytes >= limits::kEventBytes) break;
        Sql("event_take").Run(Micros(now_ + request.taken), no);
        reply.events.push_back(*EventReads(db_).GetEvent(EventNo(no)));
        bytes += reply.events.back().data.size();
    }
    return reply;
}

std::vector<FireReply> EventOps::Fire(std::span<const EventOutcome> outcomes) {
    Tables tables(ops_);
    return FireAll(tables, outcomes);
}

// ---- what is over ----

TidyReply EventOps::Tidy(const TidyRequest& request) {
    TidyReply reply;
    for (Round& round : ReadRounds(db_, Sql("round_lapsed").Query(Micros(now_), request.limit))) {
        Expire(round.instance, now_);
        SaveRound(db_, round.instance);
        reply.expired.push_back(std::move(round.instance));
    }
    auto numbers = [&](std::string_view query) {
        std::vector<std::int64_t> old;
        sqlite::Rows rows = Sql(query).Query(Micros(now_ - request.kept), request.limit);
        while (rows.Next()) old.push_back(rows.Int(0));
        return old;
    };
    for (std::int64_t no : numbers("event_old")) {
        Sql("firing_remove").Run(no);
        Sql("event_remove").Run(no);
        ++reply.forgotten_events;
    }
    for (std::int64_t id : numbers("round_old")) {
        Sql("generation_forget").Run(id);
        Sql("part_remove").Run(id);
        Sql("round_remove").Run(id);
        ++reply.forgotten_joins;
    }
    reply.more = static_cast<int>(reply.expired.size()) >= request.limit ||
                 reply.forgotten_events >= request.limit || reply.forgotten_joins >= request.limit;
    return reply;
}

}  // namespace stint::store::lite
