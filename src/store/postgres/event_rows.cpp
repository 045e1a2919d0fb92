// Rows of the event tables, and the questions about them.
#include <fmt/format.h>

#include <algorithm>

#include "store/event_words.h"
#include "store/postgres/events.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

EventRecord ReadEvent(const Rows& rows, int row) {
    EventRecord record;
    record.no = EventNo(rows.Int(row, 0));
    record.tenant = TenantId(rows.Int(row, 1));
    record.source = rows.Text(row, 2);
    record.id = rows.Text(row, 3);
    record.type = rows.Text(row, 4);
    record.data = rows.Text(row, 5);
    record.time = rows.At(row, 6);
    record.cause = TaskId(rows.Int(row, 7));
    record.depth = static_cast<int>(rows.Int(row, 8));
    record.state = static_cast<EventState>(rows.Int(row, 9));
    record.reason = rows.Text(row, 10);
    record.tries = static_cast<int>(rows.Int(row, 11));
    record.published_at = rows.At(row, 12);
    record.processed_at = rows.MaybeAt(row, 13);
    return record;
}

std::vector<JoinInstance> ReadRounds(const Rows& rows, std::vector<std::int64_t>& ids) {
    std::vector<JoinInstance> rounds;
    for (int i = 0; i < rows.size(); ++i) {
        ids.push_back(rows.Int(i, 0));
        JoinInstance& round = rounds.emplace_back();
        round.no = rows.Int(i, 0);
        round.key = {TenantId(rows.Int(i, 1)), rows.Text(i, 2), rows.Text(i, 3), rows.Text(i, 4)};
        round.generation = static_cast<int>(rows.Int(i, 5));
        round.mask = static_cast<std::uint64_t>(rows.Int(i, 6));
        round.state = static_cast<JoinState>(rows.Int(i, 7));
        round.task = TaskId(rows.Int(i, 8));
        round.message = rows.Text(i, 9);
        round.created_at = rows.At(i, 10);
        round.expires_at = rows.At(i, 11);
        round.ended_at = rows.MaybeAt(i, 12);
    }
    return rounds;
}

void AddParts(
    const Rows& parts, std::span<const std::int64_t> ids, std::vector<JoinInstance>& rounds
) {
    std::map<std::int64_t, std::size_t> places;
    for (std::size_t i = 0; i < ids.size(); ++i) places[ids[i]] = i;
    for (int i = 0; i < parts.size(); ++i) {
        rounds.at(places.at(parts.Int(i, 0)))
            .parts.push_back(
                {static_cast<int>(parts.Int(i, 1)),
                 parts.Text(i, 2),
                 TaskId(parts.Int(i, 3)),
                 parts.Text(i, 4),
                 parts.At(i, 5)}
            );
    }
}

// ---- rounds ------------------------------------------------------------------------------------

std::map<JoinKey, JoinInstance> Rounds::LockNewest(const std::set<JoinKey>& keys) {
    const Sql& sql = store_.db().sql;
    std::vector<std::string> names;
    ArrayOf tenant(oid::kInt8), workflow(oid::kText), name(oid::kText), key(oid::kText);
    for (const JoinKey& one : keys) {
        names.push_back(
            fmt::format("join {} {} {} {}", one.tenant.value(), one.workflow, one.join, one.key)
        );
        tenant.Int(one.tenant.value());
        workflow.Text(one.workflow);
        name.Text(one.join);
        key.Text(one.key);
    }
    Params lock, look;
    AddTexts(lock, names);
    for (ArrayOf* column : {&tenant, &workflow, &name, &key}) column->AddTo(look);
    transaction_.Defer(sql.keys_lock, std::move(lock));
    std::vector<std::int64_t> ids;
    std::vector<JoinInstance> rounds = ReadRounds(transaction_.Query(sql.rounds_newest, look), ids);
    std::map<JoinKey, JoinInstance> newest;
    if (rounds.empty()) return newest;
    Params which;
    AddInts(which, ids);
    AddParts(transaction_.Query(sql.parts_of, which), ids, rounds);
    for (JoinInstance& round : rounds) newest[round.key] = std::move(round);
    return newest;
}

namespace {

Params RoundParams(std::span<const JoinInstance> rounds) {
    ArrayOf tenant(oid::kInt8), workflow(oid::kText), name(oid::kText), key(oid::kText),
        generation(oid::kInt4), mask(oid::kInt8), state(oid::kInt2), task(oid::kInt8),
        message(oid::kText), created(oid::kTimestamptz), expires(oid::kTimestamptz),
        ended(oid::kTimestamptz), once(oid::kBool);
    for (const JoinInstance& round : rounds) {
        tenant.Int(round.key.tenant.value());
        workflow.Text(round.key.workflow);
        name.Text(round.key.join);
        key.Text(round.key.key);
        generation.Int(round.generation);
        mask.Int(static_cast<std::int64_t>(round.mask));
        state.Int(static_cast<int>(round.state));
        round.task.valid() ? task.Int(round.task.value()) : task.Null();
        message.TextOrNull(round.message);
        created.At(round.created_at);
        expires.At(round.expires_at);
        round.ended_at ? ended.At(*round.ended_at) : ended.Null();
        once.Bool(round.once && IsOver(round));
    }
    Params params;
    for (ArrayOf* column :
         {&tenant,
          &workflow,
          &name,
          &key,
          &generation,
          &mask,
          &state,
          &task,
          &message,
          &created,
          &expires,
          &ended,
          &once}) {
        column->AddTo(params);
    }
    return params;
}

}  // namespace

void Rounds::Save(std::span<const JoinInstance> rounds) {
    if (rounds.empty()) return;
    const Sql& sql = store_.db().sql;
    Rows saved = transaction_.Query(sql.rounds_set, RoundParams(rounds));
    std::map<std::pair<JoinKey, int>, std::int64_t> ids;
    for (int i = 0; i < saved.size(); ++i) {
        JoinKey key{
            TenantId(saved.Int(i, 1)), saved.Text(i, 2), saved.Text(i, 3), saved.Text(i, 4)};
        ids[{std::move(key), static_cast<int>(saved.Int(i, 5))}] = saved.Int(i, 0);
    }
    ArrayOf round_id(oid::kInt8), member(oid::kInt2), type(oid::kText), task(oid::kInt8),
        output(oid::kText), completed(oid::kTimestamptz);
    for (const JoinInstance& round : rounds) {
        for (const JoinPart& part : round.parts) {
            round_id.Int(ids.at({round.key, round.generation}));
            member.Int(part.member);
            type.Text(part.type);
            task.Int(part.task.value());
            output.Text(part.output);
            completed.At(part.completed_at);
        }
    }
    Params params;
    for (ArrayOf* column : {&round_id, &member, &type, &task, &output, &completed}) {
        column->AddTo(params);
    }
    transaction_.Query(sql.parts_set, params);
}

// ---- seeing ------------------------------------------------------------------------------------

std::optional<EventRecord> EventTables::GetEvent(EventNo event) {
    Rows rows = store_.db().Read(store_.db().sql.event_of, Params().Number(event));
    if (rows.empty()) return std::nullopt;
    return ReadEvent(rows, 0);
}

std::vector<EventRecord> EventTables::ListEvents(const EventFilter& filter) {
    Params params;
    params.Int(filter.before ? filter.before->value() : INT64_MAX).Int4(filter.limit);
    filter.tenant ? params.Number(*filter.tenant) : params.Null(oid::kInt8);
    AddTexts(params, filter.types);
    ArrayOf states(oid::kInt2);
    for (EventState state : filter.states) states.Int(static_cast<int>(state));
    states.AddTo(params);
    Rows rows = store_.db().ReadPlanned(store_.db().sql.list_events, params);
    std::vector<EventRecord> records;
    for (int i = 0; i < rows.size(); ++i) records.push_back(ReadEvent(rows, i));
    return records;
}

std::map<EventCountKey, std::int64_t> EventTables::CountEvents() {
    Rows rows = store_.db().ReadPlanned(store_.db().sql.counts_events);
    std::map<EventCountKey, std::int64_t> counts;
    for (int i = 0; i < rows.size(); ++i) {
        counts[{rows.Text(i, 0), static_cast<EventState>(rows.Int(i, 1))}] = rows.Int(i, 2);
    }
    return counts;
}

std::vector<FiringRecord> EventTables::Firings(const FiringFilter& filter) {
    Params params;
    filter.event.valid() ? params.Number(filter.event) : params.Null(oid::kInt8);
    filter.task.valid() ? params.Number(filter.task) : params.Null(oid::kInt8);
    filter.workflow.empty() ? params.Null(oid::kText) : params.Text(filter.workflow);
    params.Number(filter.tenant).Int4(filter.limit);
    Rows rows = store_.db().ReadPlanned(store_.db().sql.list_firings, params);
    std::vector<FiringRecord> records;
    for (int i = 0; i < rows.size(); ++i) {
        FiringRecord& record = records.emplace_back();
        record.event = EventNo(rows.Int(i, 0));
        record.workflow = rows.Text(i, 1);
        record.trigger = rows.Text(i, 2);
        record.tenant = TenantId(rows.Int(i, 3));
        record.version = static_cast<int>(rows.Int(i, 4));
        record.kind = static_cast<FiringRecord::Kind>(rows.Int(i, 5));
        record.task = TaskId(rows.Int(i, 6));
        record.message = rows.Text(i, 7);
        record.at = rows.At(i, 8);
    }
    return records;
}

std::vector<JoinInstance> EventTables::Joins(const JoinFilter& filter) {
    Params params;
    filter.tenant ? params.Number(*filter.tenant) : params.Null(oid::kInt8);
    filter.workflow.empty() ? params.Null(oid::kText) : params.Text(filter.workflow);
    ArrayOf states(oid::kInt2);
    for (JoinState state : filter.states) states.Int(static_cast<int>(state));
    states.AddTo(params);
    params.Int4(filter.limit).Int(filter.before.value_or(INT64_MAX));
    std::vector<std::int64_t> ids;
    std::vector<JoinInstance> rounds =
        ReadRounds(store_.db().ReadPlanned(store_.db().sql.list_joins, params), ids);
    if (rounds.empty()) return rounds;
    Params which;
    AddInts(which, ids);
    AddParts(store_.db().Read(store_.db().sql.parts_of, which), ids, rounds);
    return rounds;
}

}  // namespace stint::store::pg
