// The schema's versions: numbered scripts, run in one transaction with user_version.
#pragma once

#include <string>

#include "sqlite/connection.h"

namespace stint::store::lite {

int KnownSchema();  // the newest version this program can make

struct MigrationPlan {
    int from = 0;
    int to = 0;
    std::string sql;  // what is run; empty when there is nothing to do
};

MigrationPlan PlanFrom(int schema);
// What Migrate would run. Throws WrongSchema when the file is newer than this program, or another
// program's, or holds something under a name that is to be made.
MigrationPlan PlanMigration(sqlite::Connection& db);
// Brings the schema up to date in one transaction; several callers at once are safe: the first one
// does it, the others find it done.
MigrationPlan Migrate(sqlite::Connection& writer);
// Throws WrongSchema unless the file has exactly the version this program knows.
void CheckSchema(sqlite::Connection& db);

}  // namespace stint::store::lite
