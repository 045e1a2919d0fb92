#include "store/sqlite/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "store/sqlite/queries.h"
#include "store/sqlite/row.h"

namespace stint::store::lite {

namespace {

constexpr std::array kNames = {
    std::string_view{"history"},
    std::string_view{"attempt"},
    std::string_view{"audit"},
};

constexpr int kPeriodsPerRetention = 45;
constexpr int kCarried = 1000;        // tasks whose records may be carried out of one period
constexpr int kTermsPerSelect = 100;  // SQLite allows 500

PeriodKind KindNamed(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] == name) return static_cast<PeriodKind>(i);
    }
    base::CheckFailed(__FILE__, __LINE__, "kind", name);
}

}  // namespace

std::string_view PeriodKindName(PeriodKind kind) {
    return kNames.at(static_cast<std::size_t>(kind));
}

Duration PeriodLength(Duration keep) {
    using std::chrono::hours;
    using std::chrono::minutes;
    using std::chrono::seconds;
    constexpr std::array<Duration, 12> kLengths = {
        seconds{1},
        seconds{10},
        minutes{1},
        minutes{10},
        hours{1},
        hours{6},
        hours{24},
        hours{24 * 2},
        hours{24 * 7},
        hours{24 * 30},
        hours{24 * 90},
        hours{24 * 366},
    };
    for (Duration length : kLengths) {
        if (keep <= length * kPeriodsPerRetention) return length;
    }
    return kLengths.back();
}

void PeriodList::Refresh(sqlite::Connection& db) {
    std::int64_t version = db.Cached("PRAGMA schema_version").Scalar().value_or(0);
    if (version == schema_version_) return;
    auto before = std::exchange(lists_, {});
    for (sqlite::Rows rows = Sql(db, "period_list").Query(); rows.Next();) {
        PeriodKind kind = KindNamed(rows.Text(1));
        lists_[static_cast<std::size_t>(kind)].push_back(
            {rows.Int(0),
             kind,
             Duration(rows.Int(2)),
             FromMicros(rows.Int(3)),
             FromMicros(rows.Int(4))}
        );
    }
    schema_version_ = version;
    // Statements on tables that are gone would pile up.
    for (std::size_t kind = 0; kind < lists_.size(); ++kind) {
        for (const Period& old : before[kind]) {
            bool there =
                std::any_of(lists_[kind].begin(), lists_[kind].end(), [&](const Period& p) {
                    return p.id == old.id;
                });
            if (!there) ForgetPeriod(db, old.id);
        }
    }
}

std::int64_t Periods::At(PeriodKind kind, Duration keep, Time at) {
    auto found = current_.find({kind, keep});
    if (found != current_.end() && at >= found->second.starts_at && at < found->second.ends_at) {
        return found->second.id;
    }
    auto length = std::chrono::duration_cast<Time::duration>(PeriodLength(keep));
    // The clock may stand before 1970: round down, not towards zero.
    auto number =
        at.time_since_epoch() / length - (at.time_since_epoch() % length < Time::duration::zero());
    Time starts_at{number * length};
    Time ends_at = starts_at + length;
    auto id = Sql(db_, "period_find").Scalar(PeriodKindName(kind), keep.count(), Micros(starts_at));
    if (!id) id = Create(kind, keep, starts_at, ends_at);
    current_[{kind, keep}] = {starts_at, ends_at, *id};
    return *id;
}

std::int64_t Periods::Create(PeriodKind kind, Duration keep, Time starts_at, Time ends_at) {
    auto id = Sql(db_, "period_add")
                  .Scalar(PeriodKindName(kind), keep.count(), Micros(starts_at), Micros(ends_at));
    CHECK(id.has_value());
    db_.Exec(QueryText(fmt::format("create_{}", PeriodKindName(kind)), *id));
    fresh_ = false;
    MakeViews();
    return *id;
}

const std::vector<Period>& Periods::Of(PeriodKind kind) {
    if (!fresh_) list_.Refresh(db_);
    fresh_ = true;
    return list_.Of(kind);
}

std::optional<std::string> Periods::DropExpired(
    Time now, const std::function<void(std::int64_t)>& before_history
) {
    std::vector<Period> over;
    for (sqlite::Rows rows = Sql(db_, "period_expired").Query(Micros(now)); rows.Next();) {
        over.push_back(
            {.id = rows.Int(0), .kind = KindNamed(rows.Text(1)), .keep = Duration(rows.Int(2))}
        );
    }
    auto found = std::find_if(over.begin(), over.end(), [&](const Period& period) {
        return MayDrop(period.id, period.kind, period.keep, now);
    });
    if (found == over.end()) return std::nullopt;
    if (found->kind == PeriodKind::kHistory) before_history(found->id);
    ForgetPeriod(db_, found->id);
    Sql(db_, "period_remove").Run(found->id);
    Sql(db_, "period_remove_tally").Run(found->id);
    current_.clear();
    std::string table = fmt::format("stint_{}_{}", PeriodKindName(found->kind), found->id);
    db_.Exec("DROP VIEW IF EXISTS task; DROP VIEW IF EXISTS audit_logs; DROP TABLE " + table);
    MakeViews();
    return table;
}

// What a live parent may still read stays; the records of tasks that are still there move on.
bool Periods::MayDrop(std::int64_t id, PeriodKind kind, Duration keep, Time now) {
    if (kind == PeriodKind::kHistory) return !Sql(db_, "period_needed", id).Scalar();
    return CarryForward(id, kind, keep, now);
}

bool Periods::CarryForward(std::int64_t id, PeriodKind kind, Duration keep, Time now) {
    std::string_view name = PeriodKindName(kind);
    std::vector<std::int64_t> live;
    {
        sqlite::Rows range = Sql(db_, fmt::format("{}_range", name), id).Query();
        if (!range.Next() || range.IsNull(0)) return true;
        // Ids only grow, so that few that old are alive.
        sqlite::Rows rows =
            Sql(db_, "live_between").Query(range.Int(0), range.Int(1), kCarried + 1);
        while (rows.Next()) live.push_back(rows.Int(0));
        for (const Period& period : Of(PeriodKind::kHistory)) {
            sqlite::Rows kept =
                Sql(db_, "kept_between", period.id).Query(range.Int(0), range.Int(1), kCarried + 1);
            while (kept.Next()) live.push_back(kept.Int(0));
        }
    }
    if (live.empty()) return true;
    if (live.size() > kCarried) return false;
    std::string sql = QueryText(fmt::format("{}_carry", name), id);
    sql.replace(sql.find("{q}"), 3, std::to_string(At(kind, keep, now)));
    sqlite::Statement carry = db_.Prepare(sql);
    for (std::int64_t task : live) carry.Run(task);
    return true;
}

namespace {

// All parts one after the other, grouped so that no SELECT has too many terms.
std::string UnionAll(std::string head, const std::vector<std::string>& parts) {
    int terms = 1;
    for (const std::string& part : parts) {
        if (terms++ == kTermsPerSelect) {
            head = "SELECT * FROM (" + head + ")";
            terms = 2;
        }
        head += "\nUNION ALL " + part;
    }
    return head;
}

}  // namespace

void Periods::MakeViews() {
    std::vector<std::string> task;
    std::vector<std::string> audit;
    for (sqlite::Rows rows = Sql(db_, "period_list").Query(); rows.Next();) {
        PeriodKind kind = KindNamed(rows.Text(1));
        if (kind == PeriodKind::kHistory) {
            task.push_back(QueryText("view_task_history", rows.Int(0)));
        }
        if (kind == PeriodKind::kAudit) {
            audit.push_back(QueryText("view_audit_part", rows.Int(0)));
        }
    }
    db_.Exec(
        "DROP VIEW IF EXISTS task; CREATE VIEW task AS " +
        UnionAll(std::string(QueryText("view_task_live")), task)
    );
    db_.Exec(
        "DROP VIEW IF EXISTS audit_logs; CREATE VIEW audit_logs AS " +
        UnionAll(std::string(QueryText("view_audit_head")), audit)
    );
    fresh_ = false;
}

void Periods::Forget() {
    current_.clear();
    fresh_ = false;
}

}  // namespace stint::store::lite
