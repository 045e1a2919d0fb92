#include "store/sqlite/results.h"

#include "sqlite/transaction.h"
#include "store/result_rules.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

std::optional<std::string_view> NotNull(const Json& json) {
    return json.text == "null" ? std::nullopt : std::optional<std::string_view>(json.text);
}

ResultSummary ReadSummary(sqlite::Connection& db, TaskId task) {
    sqlite::Rows rows = Sql(db, "result_load").Query(task.value());
    ResultSummary summary;
    if (!rows.Next()) return summary;
    summary.items = {rows.Int(0), rows.Int(1)};
    if (!rows.IsNull(2)) {
        summary.checkpoint =
            Checkpoint{rows.String(2), static_cast<int>(rows.Int(3)), FromMicros(rows.Int(4))};
    }
    return summary;
}

void SetItem(sqlite::Connection& db, const ResultWrite& write, const ItemResult& item, Time now) {
    TaskId task = write.by.task;
    std::optional<std::int64_t> failed = Sql(db, "item_failed").Scalar(task.value(), item.key);
    std::optional<std::string_view> error;
    if (!item.error.empty()) error = item.error;
    Sql(db, "item_set")
        .Run(
            task.value(),
            item.key,
            item.action,
            NotNull(item.before),
            NotNull(item.after),
            error,
            write.claim_no,
            Micros(now)
        );
    int errors = (error ? 1 : 0) - static_cast<int>(failed.value_or(0));
    Sql(db, "result_count").Run(task.value(), failed ? 0 : 1, errors);
}

Deletion ReadDeletion(const sqlite::Rows& rows) {
    Deletion deletion;
    deletion.id = DeletionId(rows.Int(0));
    deletion.tenant = TenantId(rows.Int(1));
    deletion.kind = rows.String(2);
    deletion.key = rows.String(3);
    deletion.initiator = rows.String(4);
    deletion.steps = rows.String(5);
    deletion.state = static_cast<DeletionState>(rows.Int(6));
    deletion.marked_at = FromMicros(rows.Int(7));
    deletion.delete_at = FromMicros(rows.Int(8));
    deletion.task = TaskId(rows.OptionalInt(9).value_or(0));
    return deletion;
}

std::vector<Deletion> ReadDeletions(sqlite::Rows rows) {
    std::vector<Deletion> deletions;
    while (rows.Next()) deletions.push_back(ReadDeletion(rows));
    return deletions;
}

std::optional<Deletion> Find(
    sqlite::Connection& db, TenantId tenant, std::string_view kind, std::string_view key
) {
    auto found = ReadDeletions(Sql(db, "deletion_find").Query(tenant.value(), kind, key));
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
}

std::vector<Pace> PacesDue(sqlite::Connection& db, Time now) {
    std::vector<Pace> paces;
    sqlite::Rows rows = Sql(db, "pace_due").Query(Micros(now));
    while (rows.Next()) {
        paces.push_back(
            {TenantId(rows.Int(0)),
             rows.String(1),
             static_cast<int>(rows.Int(2)),
             Duration(rows.Int(3))}
        );
    }
    return paces;
}

}  // namespace

// ---- on the writer -----------------------------------------------------------------------------

bool Ops::IsHeld(const Held& held) {
    TaskRow row;
    if (!Load(held.task, row) || row.state != State::kInProgress) return false;
    return held.token.valid() && row.token == held.token;
}

bool Ops::ForgetResults(int limit) {
    std::vector<std::int64_t> tasks;
    {
        sqlite::Rows rows = Sql("result_look").Query(Micros(now_), limit);
        while (rows.Next()) tasks.push_back(rows.Int(0));
    }
    int left = limits::kItemsForgotten;
    for (std::int64_t task : tasks) {
        if (auto later = KeptUntil(TaskId(task), limits::kFlowLook)) {
            Sql("result_look_later").Run(task, Micros(*later));
            continue;
        }
        left -= Sql("item_forget").Run(task, left);
        if (left <= 0) return true;  // the rest of it the next time
        Sql("result_forget").Run(task);
    }
    return static_cast<int>(tasks.size()) >= limit;
}

// When to see again whether the task is kept: a finished one when its retention is over. Nothing:
// it is not kept.
std::optional<Time> Ops::KeptUntil(TaskId task, Duration earliest) {
    if (Sql("task_exists").Scalar(task.value())) return now_ + earliest;
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        if (!Sql("history_exists", period.id).Scalar(task.value())) continue;
        return std::max<Time>(now_ + earliest, period.ends_at + period.keep);
    }
    return std::nullopt;
}

template <class Work>
auto DirectResults::Change(Work&& work) {
    std::optional<std::invoke_result_t<Work, Ops&>> reply;
    writer_.Run([&](Ops& ops) { reply.emplace(work(ops)); });
    return std::move(*reply);
}

template <class Question>
auto DirectResults::Ask(Question&& question) {
    writer_.RequireSound();
    return readers_.With([&](Reads& reads) {
        sqlite::ReadTransaction view(reads.db());
        return question(reads.db());
    });
}

std::optional<ItemCounts> DirectResults::Write(const ResultWrite& write) {
    return Change([&](Ops& ops) -> std::optional<ItemCounts> {
        if (!ops.IsHeld(write.by)) return std::nullopt;
        sqlite::Connection& db = ops.db();
        TaskId task = write.by.task;
        Sql(db, "result_make").Run(task.value(), Micros(ops.now() + limits::kFlowLook));
        for (const ItemResult* item : LastOfEachKey(write.items)) {
            SetItem(db, write, *item, ops.now());
        }
        if (write.checkpoint) {
            Sql(db, "checkpoint_set")
                .Run(task.value(), *write.checkpoint, write.claim_no, Micros(ops.now()));
        }
        return ReadSummary(db, task).items;
    });
}

ResultSummary DirectResults::Summary(TaskId task) {
    return Ask([&](sqlite::Connection& db) { return ReadSummary(db, task); });
}

std::vector<ItemRecord> DirectResults::Items(const ItemsRequest& request) {
    return Ask([&](sqlite::Connection& db) {
        std::vector<ItemRecord> page;
        sqlite::Rows rows = Sql(db, request.errors_only ? "item_list_errors" : "item_list")
                                .Query(request.task.value(), request.after, request.limit);
        while (rows.Next()) {
            ItemRecord& record = page.emplace_back();
            record.item.key = rows.String(0);
            record.item.action = rows.String(1);
            if (!rows.IsNull(2)) record.item.before.text = rows.String(2);
            if (!rows.IsNull(3)) record.item.after.text = rows.String(3);
            record.item.error = rows.String(4);
            record.claim_no = static_cast<int>(rows.Int(5));
            record.written_at = FromMicros(rows.Int(6));
        }
        return page;
    });
}

// ---- deletions ---------------------------------------------------------------------------------

Deletion DirectResults::MarkDeletion(const NewDeletion& deletion) {
    return Change([&](Ops& ops) {
        sqlite::Connection& db = ops.db();
        auto there = Find(db, deletion.tenant, deletion.kind, deletion.key);
        bool over = there && there->state == DeletionState::kBegun;
        if (there && !(over && there->id == deletion.replaces)) return *there;
        if (there) Sql(db, "deletion_remove").Run(there->id.value());
        Deletion mark = MarkOf(deletion, {}, ops.now());
        auto id = Sql(db, "deletion_add")
                      .Scalar(
                          mark.tenant.value(),
                          mark.kind,
                          mark.key,
                          mark.initiator,
                          mark.steps,
                          Micros(mark.marked_at),
                          Micros(mark.delete_at)
                      );
        mark.id = DeletionId(id.value());
        const Pace usual;
        Sql(db, "pace_make")
            .Run(
                mark.tenant.value(),
                mark.kind,
                usual.cap,
                std::int64_t{usual.every.count()},
                Micros(ops.now())
            );
        return mark;
    });
}

Result<Deletion> DirectResults::Unmark(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Change([&](Ops& ops) -> Result<Deletion> {
        auto there = Find(ops.db(), tenant, kind, key);
        if (!there) return NotMarked(kind, key);
        if (there->state != DeletionState::kMarked) return HasBegun(*there);
        Sql(ops.db(), "deletion_remove").Run(there->id.value());
        return *there;
    });
}

std::optional<Deletion> DirectResults::FindDeletion(
    TenantId tenant, std::string_view kind, std::string_view key
) {
    return Ask([&](sqlite::Connection& db) { return Find(db, tenant, kind, key); });
}

std::vector<Deletion> DirectResults::Deletions(const DeletionsRequest& request) {
    return Ask([&](sqlite::Connection& db) {
        auto [tenant, kind, key] = BehindOf(request);
        return ThoseAskedFor(
            ReadDeletions(Sql(db, "deletion_list").Query(tenant.value(), kind, key, request.limit)),
            request
        );
    });
}

TakeReply DirectResults::TakeDeletions(int limit) {
    // Most looks find nothing.
    bool any = Ask([&](sqlite::Connection& db) {
        return Sql(db, "pace_any").Scalar(Micros(clock_.WallTime())).has_value();
    });
    if (!any) return {};
    return Change([&](Ops& ops) {
        sqlite::Connection& db = ops.db();
        const Time now = ops.now();
        Sql(db, "deletion_forget").Run(Micros(now));
        TakeReply reply;
        auto take = [&](std::vector<Deletion> due) {
            for (Deletion& one : due) {
                one.state = DeletionState::kTaken;
                Sql(db, "deletion_move")
                    .Run(
                        one.id.value(),
                        static_cast<int>(one.state),
                        Micros(now + limits::kDeletionTaken),
                        nullptr
                    );
                reply.deletions.push_back(std::move(one));
            }
        };
        take(ReadDeletions(Sql(db, "deletion_lapsed").Query(Micros(now), limit)));
        for (const Pace& pace : PacesDue(db, now)) {
            if (!HasRoom(reply, pace.cap, limit)) break;
            auto due = ReadDeletions(
                Sql(db, "deletion_due").Query(pace.tenant.value(), pace.kind, Micros(now), pace.cap)
            );
            if (due.empty()) continue;
            Sql(db, "pace_next").Run(pace.tenant.value(), pace.kind, Micros(now + pace.every));
            take(std::move(due));
        }
        return reply;
    });
}

void DirectResults::BeginDeletion(DeletionId deletion, TaskId task) {
    Change([&](Ops& ops) {
        return Sql(ops.db(), "deletion_move")
            .Run(
                deletion.value(),
                static_cast<int>(DeletionState::kBegun),
                Micros(ops.now() + limits::kDeletionKept),
                task.value()
            );
    });
}

void DirectResults::SetPace(const Pace& pace) {
    Change([&](Ops& ops) {
        return Sql(ops.db(), "pace_set")
            .Run(
                pace.tenant.value(),
                pace.kind,
                pace.cap,
                std::int64_t{pace.every.count()},
                Micros(ops.now())
            );
    });
}

}  // namespace stint::store::lite
