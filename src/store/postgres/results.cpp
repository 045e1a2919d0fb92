#include "store/postgres/results.h"

#include <set>

#include "base/check.h"
#include "store/postgres/store_impl.h"
#include "store/result_rules.h"

namespace stint::store::pg {

namespace {

constexpr int kLooks = 5;

std::string_view NotNull(const Json& json) {
    return json.text == "null" ? std::string_view() : std::string_view(json.text);
}

Params WriteParams(const ResultWrite& write) {
    ArrayOf key(oid::kText), action(oid::kText), before(oid::kText), after(oid::kText),
        error(oid::kText);
    for (const ItemResult* item : LastOfEachKey(write.items)) {
        key.Text(item->key);
        action.Text(item->action);
        before.TextOrNull(NotNull(item->before));
        after.TextOrNull(NotNull(item->after));
        error.TextOrNull(item->error);
    }
    Params params;
    params.Number(write.by.task).Int4(write.claim_no).TextOrNull(write.checkpoint);
    for (ArrayOf* column : {&key, &action, &before, &after, &error}) column->AddTo(params);
    return params;
}

std::vector<Deletion> ReadDeletions(const Rows& rows) {
    std::vector<Deletion> deletions;
    for (int i = 0; i < rows.size(); ++i) {
        Deletion& deletion = deletions.emplace_back();
        deletion.id = DeletionId(rows.Int(i, 0));
        deletion.tenant = TenantId(rows.Int(i, 1));
        deletion.kind = rows.Text(i, 2);
        deletion.key = rows.Text(i, 3);
        deletion.initiator = rows.Text(i, 4);
        deletion.steps = rows.Text(i, 5);
        deletion.state = static_cast<DeletionState>(rows.Int(i, 6));
        deletion.marked_at = rows.At(i, 7);
        deletion.delete_at = rows.At(i, 8);
        if (!rows.IsNull(i, 9)) deletion.task = TaskId(rows.Int(i, 9));
    }
    return deletions;
}

Params NameOf(TenantId tenant, std::string_view kind, std::string_view key) {
    return Params().Number(tenant).Text(kind).Text(key);
}

}  // namespace

std::optional<ItemCounts> ResultTables::Write(const ResultWrite& write) {
    Db& db = store_.db();
    if (!write.by.token.valid()) return std::nullopt;
    return db.Run([&](Transaction& transaction) -> std::optional<ItemCounts> {
        Params held;
        held.Int(KeyOf(write.by.token)).Number(write.by.task).Int(SecretOf(write.by.token));
        if (transaction.Query(db.sql.result_hold, held).empty()) return std::nullopt;
        Params make;
        make.Number(write.by.task).Int(limits::kFlowLook.count());
        transaction.Query(db.sql.result_make, make);
        Rows counts = transaction.Query(db.sql.result_write, WriteParams(write));
        return ItemCounts{counts.Int(0, 0), counts.Int(0, 1)};
    });
}

ResultSummary ResultTables::Summary(TaskId task) {
    Rows rows = store_.db().Read(store_.db().sql.result_of, Params().Number(task));
    ResultSummary summary;
    if (rows.empty()) return summary;
    summary.items = {rows.Int(0, 0), rows.Int(0, 1)};
    if (!rows.IsNull(0, 2)) {
        summary.checkpoint =
            Checkpoint{rows.Text(0, 2), static_cast<int>(rows.Int(0, 3)), rows.At(0, 4)};
    }
    return summary;
}

std::vector<ItemRecord> ResultTables::Items(const ItemsRequest& request) {
    Params params;
    params.Number(request.task).Text(request.after).Bool(request.errors_only).Int4(request.limit);
    // Planned for this question: the errors have an index of their own.
    Rows rows = store_.db().ReadPlanned(store_.db().sql.items_of, params);
    std::vector<ItemRecord> page;
    for (int i = 0; i < rows.size(); ++i) {
        ItemRecord& record = page.emplace_back();
        record.item.key = rows.Text(i, 0);
        record.item.action = rows.Text(i, 1);
        if (!rows.IsNull(i, 2)) record.item.before.text = rows.Text(i, 2);
        if (!rows.IsNull(i, 3)) record.item.after.text = rows.Text(i, 3);
        if (!rows.IsNull(i, 4)) record.item.error = rows.Text(i, 4);
        record.claim_no = static_cast<int>(rows.Int(i, 5));
        record.written_at = rows.At(i, 6);
    }
    return page;
}

bool ResultTables::Forget(int limit) {
    Db& db = store_.db();
    return db.Run([&](Transaction& transaction) {
        Rows rows = transaction.Query(db.sql.results_look, Params().Int4(limit));
        std::vector<TaskId> tasks;
        for (int i = 0; i < rows.size(); ++i) tasks.emplace_back(rows.Int(i, 0));
        if (tasks.empty()) return false;
        std::map<TaskId, Time> kept = store_.KeptUntil(transaction, tasks, limits::kFlowLook);
        Params later;
        AddLooks(later, kept);
        transaction.Query(db.sql.results_later, later);
        std::vector<std::int64_t> gone = WithoutThose(tasks, kept);
        bool more = rows.size() >= limit;
        if (gone.empty()) return more;
        Params items;
        AddInts(items, gone);
        items.Int4(limits::kItemsForgotten);
        more |= transaction.Query(db.sql.items_forget, items).affected() >= limits::kItemsForgotten;
        Params results;
        AddInts(results, gone);
        transaction.Query(db.sql.results_forget, results);
        return more;
    });
}

// ---- deletions ---------------------------------------------------------------------------------

Deletion ResultTables::MarkDeletion(const NewDeletion& deletion) {
    Db& db = store_.db();
    return db.Run([&](Transaction& transaction) {
        const Pace usual;
        Params pace;
        pace.Number(deletion.tenant).Text(deletion.kind).Int4(usual.cap).Int(usual.every.count());
        transaction.Query(db.sql.pace_make, pace);
        Params name = NameOf(deletion.tenant, deletion.kind, deletion.key);
        for (int look = 0; look < kLooks; ++look) {
            Params mark = name;
            mark.Text(deletion.initiator)
                .Text(deletion.steps)
                .Int(deletion.grace.count())
                .Number(deletion.replaces);
            auto made = ReadDeletions(transaction.Query(db.sql.deletion_mark, mark));
            if (!made.empty()) return std::move(made.front());
            auto there = ReadDeletions(transaction.Query(db.sql.deletion_find, name));
            // Empty: somebody took the mark away since.
            if (!there.empty()) return std::move(there.front());
        }
        throw Unavailable("the object is marked and unmarked by others all the time; try again");
    });
}

Result<Deletion> ResultTables::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    Db& db = store_.db();
    return db.Run([&](Transaction& transaction) -> Result<Deletion> {
        Params name = NameOf(tenant, kind, key);
        auto gone = ReadDeletions(transaction.Query(db.sql.deletion_unmark, name));
        if (!gone.empty()) return std::move(gone.front());
        auto there = ReadDeletions(transaction.Query(db.sql.deletion_find, name));
        if (there.empty()) return NotMarked(kind, key);
        return HasBegun(there.front());
    });
}

std::optional<Deletion> ResultTables::FindDeletion(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    Db& db = store_.db();
    auto found = ReadDeletions(db.Read(db.sql.deletion_find, NameOf(tenant, kind, key)));
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
}

std::vector<Deletion> ResultTables::Deletions(const DeletionsRequest& request) {
    auto [tenant, kind, key] = BehindOf(request);
    Params params = NameOf(tenant, kind, key);
    params.Int4(request.limit);
    return ThoseAskedFor(
        ReadDeletions(store_.db().Read(store_.db().sql.deletion_list, params)), request
    );
}

TakeReply ResultTables::TakeDeletions(int limit) {
    Db& db = store_.db();
    if (!db.Read(db.sql.deletion_any).Bool(0, 0)) return {};
    return db.Run([&](Transaction& transaction) {
        transaction.Query(db.sql.deletion_forget);
        Params lapsed;
        lapsed.Int4(limit).Int(limits::kDeletionTaken.count());
        TakeReply reply{ReadDeletions(transaction.Query(db.sql.deletion_retake, lapsed))};
        Rows paces = transaction.Query(db.sql.pace_lock);
        for (int i = 0; i < paces.size(); ++i) {
            const auto cap = static_cast<int>(paces.Int(i, 2));
            if (!HasRoom(reply, cap, limit)) break;
            Params params;
            params.Int(paces.Int(i, 0))
                .Text(paces.View(i, 1))
                .Int4(cap)
                .Int(limits::kDeletionTaken.count());
            for (Deletion& one : ReadDeletions(transaction.Query(db.sql.deletion_take, params))) {
                reply.deletions.push_back(std::move(one));
            }
        }
        return reply;
    });
}

void ResultTables::BeginDeletion(DeletionId deletion, TaskId task) {
    Db& db = store_.db();
    Params params;
    params.Number(deletion).Number(task).Int(limits::kDeletionKept.count());
    db.Run([&](Transaction& transaction) { transaction.Query(db.sql.deletion_begin, params); });
}

void ResultTables::SetPace(const Pace& pace) {
    Db& db = store_.db();
    Params params;
    params.Number(pace.tenant).Text(pace.kind).Int4(pace.cap).Int(pace.every.count());
    db.Run([&](Transaction& transaction) { transaction.Query(db.sql.pace_set, params); });
}

}  // namespace stint::store::pg
