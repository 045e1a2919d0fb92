#include "store/sqlite/event_rows.h"

#include "base/check.h"
#include "base/json.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/row.h"

namespace stint::store::lite {

namespace {

FiringRecord ReadFiring(const sqlite::Rows& rows) {
    FiringRecord record;
    record.event = EventNo(rows.Int(0));
    record.workflow = rows.String(1);
    record.trigger = rows.String(2);
    record.tenant = TenantId(rows.Int(3));
    record.version = static_cast<int>(rows.Int(4));
    record.kind = static_cast<FiringRecord::Kind>(rows.Int(5));
    record.task = TaskId(rows.Int(6));
    record.message = rows.String(7);
    record.at = FromMicros(rows.Int(8));
    return record;
}

// A list as json_each reads it; none = whatever.
template <class T>
std::optional<std::string> Numbers(const std::vector<T>& values) {
    if (values.empty()) return std::nullopt;
    base::Json list = base::Json::array();
    for (T value : values) list.push_back(static_cast<int>(value));
    return base::JsonText(list);
}

}  // namespace

EventRecord ReadEvent(const sqlite::Rows& rows) {
    EventRecord record;
    record.no = EventNo(rows.Int(0));
    record.tenant = TenantId(rows.Int(1));
    record.source = rows.String(2);
    record.id = rows.String(3);
    record.type = rows.String(4);
    record.data = rows.String(5);
    record.time = FromMicros(rows.Int(6));
    record.cause = TaskId(rows.Int(7));
    record.depth = static_cast<int>(rows.Int(8));
    record.state = static_cast<EventState>(rows.Int(9));
    record.reason = rows.String(10);
    record.tries = static_cast<int>(rows.Int(11));
    record.published_at = FromMicros(rows.Int(12));
    if (!rows.IsNull(13)) record.processed_at = FromMicros(rows.Int(13));
    return record;
}

WorkflowRecord ReadWorkflow(const sqlite::Rows& rows) {
    WorkflowRecord record = ReadWorkflowText(TenantId(rows.Int(0)), rows.Text(1), rows.Text(3));
    record.version = static_cast<int>(rows.Int(2));
    record.updated_at = FromMicros(rows.Int(4));
    record.updated_by = rows.String(5);
    return record;
}

std::vector<Round> ReadRounds(sqlite::Connection& db, sqlite::Rows rows) {
    std::vector<Round> rounds;
    while (rows.Next()) {
        Round& round = rounds.emplace_back();
        round.id = rows.Int(0);
        JoinInstance& instance = round.instance;
        instance.no = round.id;
        instance.key = {TenantId(rows.Int(1)), rows.String(2), rows.String(3), rows.String(4)};
        instance.generation = static_cast<int>(rows.Int(5));
        instance.mask = static_cast<std::uint64_t>(rows.Int(6));
        instance.state = static_cast<JoinState>(rows.Int(7));
        instance.task = TaskId(rows.Int(8));
        instance.message = rows.String(9);
        instance.created_at = FromMicros(rows.Int(10));
        instance.expires_at = FromMicros(rows.Int(11));
        if (!rows.IsNull(12)) instance.ended_at = FromMicros(rows.Int(12));
    }
    for (Round& round : rounds) {
        sqlite::Rows parts = Sql(db, "part_list").Query(round.id);
        while (parts.Next()) {
            round.instance.parts.push_back(
                {static_cast<int>(parts.Int(0)),
                 parts.String(1),
                 TaskId(parts.Int(2)),
                 parts.String(3),
                 FromMicros(parts.Int(4))}
            );
        }
    }
    return rounds;
}

std::optional<NextEventsReply> EventReads::Nothing(Time now) {
    if (Sql(db_, "event_due").Scalar(Micros(now), 1)) return std::nullopt;
    NextEventsReply reply;
    reply.now = now;
    reply.revision = Sql(db_, "workflow_revision").Scalar().value_or(0);
    return reply;
}

std::vector<WorkflowRecord> EventReads::Workflows() {
    std::vector<WorkflowRecord> records;
    for (sqlite::Rows rows = Sql(db_, "workflow_list").Query(); rows.Next();) {
        records.push_back(ReadWorkflow(rows));
    }
    return records;
}

std::optional<EventRecord> EventReads::GetEvent(EventNo event) {
    sqlite::Rows rows = Sql(db_, "event_get").Query(event.value());
    if (!rows.Next()) return std::nullopt;
    return ReadEvent(rows);
}

std::vector<EventRecord> EventReads::ListEvents(const EventFilter& filter) {
    std::optional<std::int64_t> tenant;
    if (filter.tenant) tenant = filter.tenant->value();
    std::optional<std::string> types;
    if (!filter.types.empty()) types = base::JsonList(filter.types);
    sqlite::Rows rows = Sql(db_, "event_list")
                            .Query(
                                filter.before ? filter.before->value() : INT64_MAX,
                                tenant,
                                types,
                                Numbers(filter.states),
                                filter.limit
                            );
    std::vector<EventRecord> records;
    while (rows.Next()) records.push_back(ReadEvent(rows));
    return records;
}

std::map<EventCountKey, std::int64_t> EventReads::CountEvents() {
    std::map<EventCountKey, std::int64_t> counts;
    for (sqlite::Rows rows = Sql(db_, "event_counts").Query(); rows.Next();) {
        counts[{rows.String(0), static_cast<EventState>(rows.Int(1))}] = rows.Int(2);
    }
    return counts;
}

std::vector<FiringRecord> EventReads::Firings(const FiringFilter& filter) {
    auto ask = [&] {
        if (filter.event.valid()) {
            return Sql(db_, "firing_of_event").Query(filter.event.value(), filter.limit);
        }
        if (filter.task.valid()) {
            return Sql(db_, "firing_of_task").Query(filter.task.value(), filter.limit);
        }
        if (!filter.workflow.empty()) {
            return Sql(db_, "firing_of_workflow")
                .Query(filter.tenant.value(), filter.workflow, filter.limit);
        }
        return Sql(db_, "firing_all").Query(filter.limit);
    };
    std::vector<FiringRecord> records;
    for (sqlite::Rows rows = ask(); rows.Next();) records.push_back(ReadFiring(rows));
    return records;
}

std::vector<JoinInstance> EventReads::Joins(const JoinFilter& filter) {
    std::optional<std::int64_t> tenant;
    if (filter.tenant) tenant = filter.tenant->value();
    std::vector<JoinInstance> joins;
    auto rounds = ReadRounds(
        db_,
        Sql(db_, "round_list")
            .Query(
                tenant,
                OrNull(filter.workflow),
                Numbers(filter.states),
                filter.limit,
                filter.before.value_or(INT64_MAX)
            )
    );
    for (Round& round : rounds) joins.push_back(std::move(round.instance));
    return joins;
}

}  // namespace stint::store::lite
