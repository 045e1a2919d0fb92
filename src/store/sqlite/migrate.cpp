#include "store/sqlite/migrate.h"

#include <fmt/format.h>

#include <array>

#include "sqlite/transaction.h"
#include "stint_store_lite_migrations_embedded.h"
#include "store/sqlite/period.h"
#include "store/store.h"

namespace stint::store::lite {

namespace {

const std::array kScripts = {&migrations::k_001_init};

}  // namespace

int KnownSchema() {
    return static_cast<int>(kScripts.size());
}

MigrationPlan PlanMigration(sqlite::Connection& db) {
    return PlanFrom(static_cast<int>(db.Pragma("user_version")));
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
