#include "store/sqlite/migrate.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <sstream>
#include <vector>

#include "base/text.h"
#include "sqlite/transaction.h"
#include "stint_store_lite_migrations_embedded.h"
#include "store/sqlite/period.h"
#include "store/store.h"

namespace stint::store::lite {

namespace {

const std::array kScripts = {
    &migrations::k_001_init,
    &migrations::k_002_identity,
    &migrations::k_003_queue_changed,
    &migrations::k_004_waits,
    &migrations::k_005_schedules,
    &migrations::k_006_events,
    &migrations::k_007_resources,
    &migrations::k_008_flows,
    &migrations::k_009_results,
    &migrations::k_010_session_labels,
    &migrations::k_011_kept_records,
    &migrations::k_012_shares,
    &migrations::k_013_seats,
};

// What the plan creates, by name: "CREATE <kind> <name> …", and the views that are made anew with
// each period. A name that a file of ours gives up on the way is ours.
std::vector<std::string> NamesNeeded(const MigrationPlan& plan) {
    std::vector<std::string> names;
    std::set<std::string> ours;
    if (plan.from == 0) names = {"task", "audit_logs"};
    std::istringstream words(plan.sql);
    for (std::string word; words >> word;) {
        if (word != "CREATE" && word != "DROP") continue;
        std::string kind;
        std::string name;
        words >> kind >> name;
        if (word == "CREATE") {
            names.push_back(name);
        } else if (plan.from > 0) {
            ours.insert(name.substr(0, name.find(';')));
        }
    }
    std::erase_if(names, [&](const std::string& name) { return ours.contains(name); });
    return names;
}

// The user's file may hold tables of their own, but not under our names.
void RequireNamesFree(sqlite::Connection& db, const MigrationPlan& plan) {
    if (plan.sql.empty()) return;
    sqlite::Statement find =
        db.Prepare("SELECT type, name FROM sqlite_schema WHERE name = ? COLLATE NOCASE");
    for (const std::string& name : NamesNeeded(plan)) {
        sqlite::Rows rows = find.Query(name);
        if (!rows.Next()) continue;
        throw WrongSchema(fmt::format(
            "the {} {} in this file is not Stint's, and Stint needs that name: rename it, or give "
            "Stint "
            "a file to itself",
            rows.Text(0),
            base::Quoted(rows.Text(1))
        ));
    }
}

// user_version is the file's only one: another program may have taken it.
void RequireOurVersion(sqlite::Connection& db, std::int64_t version) {
    sqlite::Statement find =
        db.Prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'stint_counter'");
    if (version == 0 || find.Scalar()) return;
    throw WrongSchema(fmt::format(
        "this file is another program's: it counts its own schema in PRAGMA user_version ({}), "
        "which Stint needs for itself, and holds no table of Stint's: give Stint a file to itself",
        version
    ));
}

}  // namespace

int KnownSchema() {
    return static_cast<int>(kScripts.size());
}

MigrationPlan PlanMigration(sqlite::Connection& db) {
    std::int64_t version = db.Pragma("user_version");
    RequireOurVersion(db, version);
    MigrationPlan plan = PlanFrom(static_cast<int>(version));
    RequireNamesFree(db, plan);
    return plan;
}

MigrationPlan PlanFrom(int schema) {
    MigrationPlan plan{.from = schema, .to = KnownSchema(), .sql = {}};
    if (plan.from > plan.to || plan.from < 0) {
        throw WrongSchema(fmt::format(
            "this file was written by a newer stint (schema {}, this program knows {}): upgrade "
            "the program",
            plan.from,
            plan.to
        ));
    }
    for (int version = plan.from; version < plan.to; ++version) {
        plan.sql += fmt::format(
            "-- schema {}\n{}", version + 1, *kScripts[static_cast<std::size_t>(version)]
        );
    }
    if (!plan.sql.empty()) plan.sql += fmt::format("PRAGMA user_version = {};\n", plan.to);
    return plan;
}

MigrationPlan Migrate(sqlite::Connection& writer) {
    if (PlanMigration(writer).sql.empty()) return PlanMigration(writer);
    sqlite::Transaction transaction(writer);
    // Somebody may have done it while we waited for the lock.
    MigrationPlan plan = PlanMigration(writer);
    if (!plan.sql.empty()) {
        writer.Exec(plan.sql);
        Periods(writer).MakeViews();
    }
    transaction.Commit();
    return plan;
}

void CheckSchema(sqlite::Connection& db) {
    MigrationPlan plan = PlanMigration(db);
    if (plan.sql.empty()) return;
    throw WrongSchema(fmt::format(
        "this file has schema {}, this program needs {}: run `stint store migrate`",
        plan.from,
        plan.to
    ));
}

}  // namespace stint::store::lite
