#include "store/postgres/events.h"

#include <algorithm>

#include "base/check.h"
#include "base/test_point.h"
#include "store/event_words.h"
#include "store/fire.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

namespace {

using Kind = PublishReply::Kind;

// An event that was known when it was added and is forgotten when it is looked at: once more.
constexpr int kPublishTries = 5;
constexpr std::chrono::milliseconds kLockPatience{5'000};

void AddColumns(Params& params, std::initializer_list<ArrayOf*> columns) {
    for (ArrayOf* column : columns) column->AddTo(params);
}

class Tables final : public FiringTables {
public:
    Tables(PostgresStore& store, Transaction& transaction)
        : store_(store), transaction_(transaction), sql_(store.db().sql) {}

    PublishReply Publish(const NewEvent& event) override {
        if (auto good = Validate(event); !good) {
            return {.kind = Kind::kInvalid, .no = {}, .message = good.error().message};
        }
        return EventTables(store_).PublishIn(transaction_, {&event, 1}, {0}).at(0);
    }
    std::map<EventNo, Locked> Lock(std::span<const EventOutcome> outcomes) override {
        std::vector<std::int64_t> numbers;
        for (const EventOutcome& outcome : outcomes) numbers.push_back(outcome.event.value());
        numbers = Sorted(std::move(numbers));
        Params lock, look;
        AddInts(lock, numbers);
        AddInts(look, numbers);
        std::map<EventNo, Locked> locked;
        Rows rows = transaction_.Query(sql_.events_lock, lock);
        for (int i = 0; i < rows.size(); ++i) {
            Locked& one = locked[EventNo(rows.Int(i, 0))];
            one.event = EventNo(rows.Int(i, 0));
            one.tenant = TenantId(rows.Int(i, 1));
            one.pending = static_cast<EventState>(rows.Int(i, 2)) == EventState::kPending;
            one.depth = static_cast<int>(rows.Int(i, 3));
        }
        base::TestPoint("store_postgres.events_locked");
        // In a statement of its own: what somebody wrote while we waited for the lock is seen.
        Rows fired = transaction_.Query(sql_.events_fired, look);
        now_ = fired.At(0, 0);
        for (int i = 0; i < fired.size(); ++i) {
            auto event = locked.find(EventNo(fired.Int(i, 1)));
            if (event != locked.end())
                event->second.fired.emplace(fired.Text(i, 2), fired.Text(i, 3));
        }
        return locked;
    }
    std::map<JoinKey, JoinInstance> Rounds(const std::set<JoinKey>& keys) override {
        return pg::Rounds(store_, transaction_).LockNewest(keys);
    }
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        return store_.SubmitIn(transaction_, tasks);
    }
    Result<State> Finish(const BackgroundFinish& finish) override {
        return store_.FinishBackgroundIn(transaction_, finish);
    }
    bool IsTerminal(TaskId task) override {
        std::vector<TaskRecord> records = store_.RecordsIn(transaction_, {&task, 1});
        return records.empty() || model::IsTerminal(records.front().state);
    }
    Time Now() override { return now_; }
    void Save(
        std::span<const Ending> endings,
        std::span<const Firing> firings,
        std::span<const JoinInstance> rounds
    ) override {
        SaveFirings(firings);
        if (!rounds.empty()) pg::Rounds(store_, transaction_).Save(rounds);
        SaveEndings(endings);
    }

private:
    void SaveFirings(std::span<const Firing> firings) {
        if (firings.empty()) return;
        ArrayOf event(oid::kInt8), workflow(oid::kText), name(oid::kText), tenant(oid::kInt8),
            version(oid::kInt4), kind(oid::kInt2), task(oid::kInt8), depth(oid::kInt4),
            message(oid::kText);
        for (const Firing& firing : firings) {
            const FiringRecord& record = firing.record;
            event.Int(record.event.value());
            workflow.Text(record.workflow);
            name.Text(record.trigger);
            tenant.Int(record.tenant.value());
            version.Int(record.version);
            kind.Int(static_cast<int>(record.kind));
            record.task.valid() ? task.Int(record.task.value()) : task.Null();
            depth.Int(firing.depth);
            message.TextOrNull(record.message);
        }
        Params params;
        AddColumns(
            params, {&event, &workflow, &name, &tenant, &version, &kind, &task, &depth, &message}
        );
        transaction_.Query(sql_.firings_add, params);
    }

    void SaveEndings(std::span<const Ending> endings) {
        if (endings.empty()) return;
        ArrayOf no(oid::kInt8), state(oid::kInt2), reason(oid::kText), later(oid::kInt8);
        for (const Ending& ending : endings) {
            no.Int(ending.event.value());
            state.Int(static_cast<int>(ending.state));
            reason.TextOrNull(ending.reason);
            later.Int(ending.later.count());
        }
        Params params;
        AddColumns(params, {&no, &state, &reason, &later});
        transaction_.Defer(sql_.events_end, std::move(params));
    }

    PostgresStore& store_;
    Transaction& transaction_;
    const Sql& sql_;
    Time now_{};
};

}  // namespace

// ---- publish -----------------------------------------------------------------------------------

std::vector<PublishReply> EventTables::Publish(std::span<const NewEvent> events) {
    if (events.size() > limits::kPublishBatch) return TooManyEvents(events.size());
    std::vector<PublishReply> replies(events.size());
    std::vector<std::size_t> valid;
    for (std::size_t i = 0; i < events.size(); ++i) {
        auto good = Validate(events[i]);
        if (good) {
            valid.push_back(i);
        } else {
            replies[i] = {.kind = Kind::kInvalid, .no = {}, .message = good.error().message};
        }
    }
    if (valid.empty()) return replies;
    std::vector<PublishReply> published = store_.db().Run([&](Transaction& transaction) {
        return PublishIn(transaction, events, valid);
    });
    for (std::size_t i = 0; i < valid.size(); ++i) replies[valid[i]] = published[i];
    return replies;
}

namespace {

std::vector<int> DepthsOf(
    Transaction& transaction,
    const Sql& sql,
    std::span<const NewEvent> events,
    const std::vector<std::size_t>& which
) {
    std::vector<int> depths(which.size(), 0);
    ArrayOf causes(oid::kInt8);
    std::vector<std::size_t> caused;
    for (std::size_t i = 0; i < which.size(); ++i) {
        if (!events[which[i]].cause.valid()) continue;
        caused.push_back(i);
        causes.Int(events[which[i]].cause.value());
    }
    if (caused.empty()) return depths;
    Params params;
    causes.AddTo(params);
    Rows rows = transaction.Query(sql.events_depth, params);
    for (std::size_t i = 0; i < caused.size(); ++i) {
        depths[caused[i]] = static_cast<int>(rows.Int(static_cast<int>(i), 0));
    }
    return depths;
}

Params NewEventParams(
    std::span<const NewEvent> events,
    const std::vector<std::size_t>& which,
    const std::vector<int>& depths
) {
    ArrayOf tenant(oid::kInt8), source(oid::kText), id(oid::kText), type(oid::kText),
        data(oid::kText), time(oid::kTimestamptz), cause(oid::kInt8), depth(oid::kInt4),
        state(oid::kInt2), reason(oid::kText);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const NewEvent& event = events[which[i]];
        tenant.Int(event.tenant.value());
        source.Text(event.source);
        id.TextOrNull(event.id);
        type.Text(event.type);
        data.Text(event.data);
        event.time ? time.At(*event.time) : time.Null();
        event.cause.valid() ? cause.Int(event.cause.value()) : cause.Null();
        depth.Int(depths[i]);
        std::string why = TooDeep(depths[i]);
        state.Int(static_cast<int>(why.empty() ? EventState::kPending : EventState::kRefused));
        reason.TextOrNull(why);
    }
    Params params;
    AddColumns(
        params, {&tenant, &source, &id, &type, &data, &time, &cause, &depth, &state, &reason}
    );
    return params;
}

}  // namespace

std::vector<PublishReply> EventTables::PublishIn(
    Transaction& transaction, std::span<const NewEvent> events, std::vector<std::size_t> which
) {
    const Sql& sql = store_.db().sql;
    std::vector<PublishReply> replies(which.size());
    std::vector<std::size_t> places(which.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (int tries = 1; !which.empty(); ++tries) {
        if (tries > kPublishTries) throw Unavailable("events are being forgotten right now");
        std::vector<int> depths = DepthsOf(transaction, sql, events, which);
        Rows added = transaction.Query(sql.events_add, NewEventParams(events, which, depths));
        ArrayOf tenant(oid::kInt8), source(oid::kText), id(oid::kText);
        std::vector<std::size_t> known;
        for (std::size_t i = 0; i < which.size(); ++i) {
            const NewEvent& event = events[which[i]];
            if (added.Bool(static_cast<int>(i), 1)) {
                std::string why = TooDeep(depths[i]);
                EventNo no(added.Int(static_cast<int>(i), 0));
                replies[places[i]] = {Kind::kAccepted, no, why, !why.empty()};
                continue;
            }
            known.push_back(i);
            tenant.Int(event.tenant.value());
            source.Text(event.source);
            id.Text(event.id);
        }
        if (known.empty()) return replies;
        Params params;
        AddColumns(params, {&tenant, &source, &id});
        Rows before = transaction.Query(sql.events_known, params);
        std::set<std::size_t> found;
        for (int row = 0; row < before.size(); ++row) {
            std::size_t i = known.at(static_cast<std::size_t>(before.Int(row, 0) - 1));
            found.insert(i);
            const NewEvent& event = events[which[i]];
            EventNo no(before.Int(row, 1));
            bool same = SaysTheSame(event, before.View(row, 2), before.View(row, 3));
            replies[places[i]] =
                same ? PublishReply{.kind = Kind::kExisting, .no = no, .message = {}}
                     : PublishReply{
                           .kind = Kind::kConflict, .no = no, .message = SaidBefore(event, no)};
        }
        std::vector<std::size_t> again, again_places;
        for (std::size_t i : known) {
            if (found.contains(i)) continue;
            again.push_back(which[i]);
            again_places.push_back(places[i]);
        }
        which = std::move(again);
        places = std::move(again_places);
    }
    return replies;
}

// ---- definitions -------------------------------------------------------------------------------

namespace {

WorkflowRecord ReadWorkflow(const Rows& rows, int row, int from) {
    WorkflowRecord record = ReadWorkflowText(
        TenantId(rows.Int(row, from)), rows.View(row, from + 1), rows.View(row, from + 3)
    );
    record.version = static_cast<int>(rows.Int(row, from + 2));
    record.updated_at = rows.At(row, from + 4);
    record.updated_by = rows.Text(row, from + 5);
    return record;
}

}  // namespace

Result<WorkflowRecord> EventTables::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    if (auto valid = Validate(definition); !valid) return valid.error();
    const Sql& sql = store_.db().sql;
    using Reply = Result<WorkflowRecord>;
    return store_.db().Run([&](Transaction& transaction) -> Reply {
        transaction.Query(sql.workflow_lock);
        Params which;
        which.Number(definition.tenant).Text(definition.name);
        Rows rows = transaction.Query(sql.workflow_of, which);
        WorkflowRecord record;
        if (!rows.IsNull(0, 1)) record = ReadWorkflow(rows, 0, 1);
        bool known = record.version > 0 && record.unreadable.empty();
        if (known && record.definition == definition) return record;
        if (record.version == 0 && rows.Int(0, 0) >= limits::kWorkflows) return TooManyWorkflows();
        record.definition = definition;
        record.unreadable.clear();
        ++record.version;
        record.updated_by = actor;
        Params params;
        params.Number(definition.tenant).Text(definition.name).Int4(record.version);
        params.Text(WorkflowToJson(definition)).Text(actor);
        AddTexts(params, MemberTypes(definition));
        AddTexts(params, OnceJoins(definition.joins));
        record.updated_at = transaction.Query(sql.workflow_set, params).At(0, 0);
        return record;
    });
}

bool EventTables::RemoveWorkflow(TenantId tenant, std::string_view name) {
    const Sql& sql = store_.db().sql;
    return store_.db().Run([&](Transaction& transaction) {
        transaction.Defer(sql.workflow_lock);
        Params params;
        params.Number(tenant).Text(name);
        return transaction.Query(sql.workflow_remove, params).Bool(0, 0);
    });
}

std::vector<WorkflowRecord> EventTables::Workflows() {
    Rows rows = store_.db().Read(store_.db().sql.workflows);
    std::vector<WorkflowRecord> records;
    for (int i = 0; i < rows.size(); ++i) records.push_back(ReadWorkflow(rows, i, 0));
    return records;
}

// ---- processing --------------------------------------------------------------------------------

NextEventsReply EventTables::NextEvents(const NextEventsRequest& request) {
    const Sql& sql = store_.db().sql;
    return store_.db().Run([&](Transaction& transaction) {
        Params params;
        params.Int4(request.limit).Int(request.taken.count()).Int(limits::kEventBytes);
        Rows rows = transaction.Query(sql.events_take, params);
        NextEventsReply reply;
        reply.revision = rows.Int(0, 14);
        reply.now = rows.At(0, 15);
        for (int i = 0; i < rows.size(); ++i) {
            if (!rows.IsNull(i, 0)) reply.events.push_back(ReadEvent(rows, i));
        }
        return reply;
    });
}

std::vector<FireReply> EventTables::FireIn(
    Transaction& transaction, std::span<const EventOutcome> outcomes
) {
    Tables tables(store_, transaction);
    return FireAll(tables, outcomes);
}

std::vector<FireReply> EventTables::Fire(std::span<const EventOutcome> outcomes) {
    TransactionOptions options;
    options.lock_timeout = kLockPatience;
    for (int tries = 1;; ++tries) {
        try {
            return store_.db().Run(
                [&](Transaction& transaction) { return FireIn(transaction, outcomes); }, options
            );
        } catch (const OutdatedTypes& outdated) {
            if (tries == kTypeTries) throw Unavailable(outdated.what());
            store_.catalog().ReloadTypes();
        }
    }
}

// ---- what is over ------------------------------------------------------------------------------

std::set<JoinKey> EventTables::LapsedJoins(int limit) {
    Rows lapsed = store_.db().Read(store_.db().sql.rounds_lapsed, Params().Int4(limit));
    std::set<JoinKey> keys;
    for (int i = 0; i < lapsed.size(); ++i) {
        keys.insert(
            {TenantId(lapsed.Int(i, 0)), lapsed.Text(i, 1), lapsed.Text(i, 2), lapsed.Text(i, 3)}
        );
    }
    return keys;
}

std::vector<JoinInstance> EventTables::ExpireIn(
    Transaction& transaction, const std::set<JoinKey>& keys
) {
    Rounds rounds(store_, transaction);
    std::vector<JoinInstance> expired;
    std::map<JoinKey, JoinInstance> newest = rounds.LockNewest(keys);
    Time now = transaction.Query(store_.db().sql.now).At(0, 0);
    for (auto& [key, round] : newest) {
        // It may have been completed meanwhile.
        if (round.state != JoinState::kOpen || round.expires_at > now) continue;
        Expire(round, now);
        expired.push_back(round);
    }
    rounds.Save(expired);
    return expired;
}

TidyReply EventTables::Tidy(const TidyRequest& request) {
    TidyReply reply;
    if (std::set<JoinKey> keys = LapsedJoins(request.limit); !keys.empty()) {
        reply.expired =
            store_.db().Run([&](Transaction& transaction) { return ExpireIn(transaction, keys); });
    }
    auto forget = [&](const postgres::Statement& statement) {
        Params params;
        params.Int(request.kept.count()).Int4(request.limit);
        return static_cast<int>(store_.db().Once(statement, params).Int(0, 0));
    };
    reply.forgotten_events = forget(store_.db().sql.events_forget);
    reply.forgotten_joins = forget(store_.db().sql.rounds_forget);
    reply.more = static_cast<int>(reply.expired.size()) >= request.limit ||
                 reply.forgotten_events >= request.limit || reply.forgotten_joins >= request.limit;
    return reply;
}

}  // namespace stint::store::pg
