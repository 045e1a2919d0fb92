// Who is there: nodes, sessions, heartbeats. And the store's small questions.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

std::vector<std::int64_t> Sorted(std::vector<std::int64_t> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
}

std::vector<std::int64_t> Values(std::span<const TaskId> tasks) {
    std::vector<std::int64_t> values;
    values.reserve(tasks.size());
    for (TaskId task : tasks) values.push_back(task.value());
    return values;
}

namespace {

// Two: while one waits for the disk the other fills the next transaction, where there is enough for
// both; more would only split them.
constexpr int kLeaders = 2;

}  // namespace

PostgresStore::PostgresStore(const PostgresOptions& options)
    : options_(options),
      random_(options.random),
      db_(options),
      catalog_(db_, options.log),
      marks_(options.rescan_every),
      group_([this](std::span<const NewTask> tasks) { return SubmitTogether(tasks); }, kLeaders),
      keyed_group_(
          [this](std::span<const NewTask> tasks) { return SubmitTogether(tasks); }, kLeaders
      ) {
    db_.Run([&](Transaction& transaction) { transaction.Query(db_.sql.begin_period); });
    catalog_.ReloadTypes();
}

StoreInfo PostgresStore::Info() {
    Rows rows = db_.Read(db_.sql.info);
    StoreInfo info;
    info.kind = "postgres";
    info.version = rows.Text(0, 0);
    info.schema = PostgresSchemaVersion();
    info.shared = true;
    info.address = fmt::format("{} schema {}", db_.Address(), options_.schema);
    bool fsync = rows.View(0, 1) == "on", synchronous = rows.View(0, 2) != "off";
    std::string standbys = rows.Text(0, 3);
    info.identity = rows.Text(0, 4);
    if (!fsync) {
        info.durability = "fsync is off: a crash of the server's machine may lose everything.";
    } else if (!synchronous) {
        info.durability =
            "synchronous_commit is off: a crash of the server may lose the last moments.";
    } else if (standbys.empty()) {
        info.durability = "What was accepted survives a crash of the server and power loss.";
    } else {
        info.durability =
            fmt::format("What was accepted is on disk here and on standbys ({}).", standbys);
    }
    return info;
}

Time PostgresStore::Now() {
    return db_.Read(db_.sql.now).At(0, 0);
}

NodeId PostgresStore::OpenSession(const NewSession& session) {
    CHECK(session.id.valid());
    Params params;
    params.Uuid(session.id).Text(session.hostname).Int(session.pid).Int(session.lease.count());
    params.Int4(session.slots);
    AddTexts(params, session.queues);
    AddTexts(params, session.types);
    params.Text(session.version);
    AddTexts(params, session.labels);
    return db_.Run([&](Transaction& transaction) {
        if (session.exclusive) transaction.Defer(db_.sql.open_others, Params().Uuid(session.id));
        return NodeId(transaction.Query(db_.sql.open_session, params).Int(0, 0));
    });
}

namespace {

template <class Range>
void AddTokens(Params& params, const Range& held) {
    std::vector<std::int64_t> tasks, keys, secrets;
    for (const auto& one : held) {
        tasks.push_back(one.task.value());
        keys.push_back(KeyOf(one.token));
        secrets.push_back(SecretOf(one.token));
    }
    AddInts(params, Sorted(keys));
    AddInts(params, tasks);
    AddInts(params, keys);
    AddInts(params, secrets);
}

Params ProgressParams(const std::vector<ProgressUpdate>& updates) {
    // The last one of a holder counts.
    std::map<std::pair<TaskId, LeaseToken>, ProgressUpdate> last;
    for (const ProgressUpdate& update : updates) last[{update.task, update.token}] = update;
    std::vector<ProgressUpdate> unique;
    for (auto& [holder, update] : last) unique.push_back(std::move(update));
    Params params;
    AddTokens(params, unique);
    ArrayOf step(oid::kText), done(oid::kInt8), total(oid::kInt8), message(oid::kText);
    for (const ProgressUpdate& update : unique) {
        step.Text(update.progress.step);
        done.Int(update.progress.done);
        update.progress.total ? total.Int(*update.progress.total) : total.Null();
        message.Text(update.progress.message);
    }
    step.AddTo(params);
    done.AddTo(params);
    total.AddTo(params);
    message.AddTo(params);
    return params;
}

}  // namespace

RenewReply PostgresStore::Renew(const RenewRequest& request) {
    Params renew, held;
    renew.Uuid(request.session).Int(request.lease.count()).Text(request.worker_state);
    renew.Int4(request.running).Bool(request.draining);
    // Nothing but a sign of life. Whether a lost answer means that it was heard makes no
    // difference: who does not know counts from the last one that was.
    if (request.held.empty() && request.progress.empty()) {
        Rows rows = db_.ReadVital(db_.sql.renew, renew);
        RenewReply reply;
        reply.store_time = rows.At(0, 0);
        reply.live = rows.Bool(0, 1);
        return reply;
    }
    AddTokens(held, request.held);
    return db_.RunVital([&](Transaction& transaction) {
        std::vector<postgres::Command> commands = {{&db_.sql.renew, &renew}};
        if (!request.held.empty()) commands.push_back({&db_.sql.held_leases, &held});
        std::vector<Rows> rows = transaction.Batch(commands, false);
        RenewReply reply;
        reply.store_time = rows[0].At(0, 0);
        reply.live = rows[0].Bool(0, 1);
        // By place, not by task: a process may ask for a task that it lost and has again.
        std::unordered_map<std::int64_t, bool> cancels;
        for (int i = 0; reply.live && rows.size() > 1 && i < rows[1].size(); ++i) {
            cancels[rows[1].Int(i, 0)] = rows[1].Bool(i, 1);
        }
        std::int64_t place = 0;
        for (const Held& one : request.held) {
            auto found = cancels.find(++place);
            if (found == cancels.end()) {
                reply.lost.push_back(one);
            } else if (found->second) {
                reply.cancel_requested.push_back(one);
            }
        }
        if (reply.live && !request.progress.empty()) {
            transaction.Defer(db_.sql.progress_write, ProgressParams(request.progress));
        }
        return reply;
    });
}

void PostgresStore::CloseSession(SessionId session) {
    db_.Run([&](Transaction& transaction) {
        transaction.Query(db_.sql.close_session, Params().Uuid(session));
    });
}

std::vector<SessionRecord> PostgresStore::Sessions() {
    Rows rows = db_.Read(db_.sql.sessions);
    std::vector<SessionRecord> sessions;
    for (int i = 0; i < rows.size(); ++i) {
        SessionRecord& session = sessions.emplace_back();
        session.id = rows.Uuid<SessionId>(i, 0);
        session.node = NodeId(rows.Int(i, 1));
        session.hostname = rows.Text(i, 2);
        session.pid = rows.Int(i, 3);
        session.state = static_cast<SessionState>(rows.Int(i, 4));
        session.worker_state = rows.Text(i, 5);
        session.slots = static_cast<int>(rows.Int(i, 6));
        session.running = static_cast<int>(rows.Int(i, 7));
        session.queues = rows.Texts(i, 8);
        session.types = rows.Texts(i, 9);
        session.version = rows.Text(i, 10);
        session.started_at = rows.At(i, 11);
        session.renewed_at = rows.At(i, 12);
        session.lease_until = rows.At(i, 13);
        session.labels = rows.Texts(i, 14);
    }
    return sessions;
}

std::vector<NodeRecord> PostgresStore::Nodes() {
    Rows rows = db_.Read(db_.sql.nodes);
    std::vector<NodeRecord> nodes;
    for (int i = 0; i < rows.size(); ++i) {
        nodes.push_back({NodeId(rows.Int(i, 0)), rows.Text(i, 1), rows.At(i, 2)});
    }
    return nodes;
}

}  // namespace stint::store::pg
