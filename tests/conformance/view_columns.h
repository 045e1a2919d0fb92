// The read contract: the views that people and tools may query, with their columns in order. One
// list for every store with SQL. The types are PostgreSQL's. SQLite has fewer, and says
//   int2, int4, int8  INTEGER
//   bool              INTEGER, 0 or 1
//   jsonb, _text      TEXT, JSON
//   uuid              TEXT, 8-4-4-4-12 lower-case digits
//   timestamptz       TEXT, 2026-01-31T12:00:00.000Z
//   interval          REAL, seconds
#pragma once

#include <string>
#include <vector>

namespace stint::conformance {

struct ViewColumn {
    std::string name, type;
};

struct ViewContract {
    std::string name;
    std::vector<ViewColumn> columns;
};

inline const std::vector<ViewContract>& ViewContracts() {
    static const std::vector<ViewContract> contracts = {
        {"task",
         {{"id", "int8"},
          {"tenant_id", "int8"},
          {"parent_id", "int8"},
          {"type", "text"},
          {"status", "int2"},
          {"priority", "int2"},
          {"input", "jsonb"},
          {"output", "jsonb"},    // of a failed task its error
          {"retryable", "bool"},  // whether the last error was; NULL without one
          {"retry_count", "int4"},
          {"executor", "int8"},  // the node that runs it or ran it last
          {"created_at", "timestamptz"},
          {"claimed_at", "timestamptz"},
          {"completed_at", "timestamptz"},
          {"expires_at", "timestamptz"},  // of the holder's lease, or of the wait outside
          {"queue", "text"},
          {"due_at", "timestamptz"},
          {"start_by", "timestamptz"},
          {"attempt", "int4"},
          {"claim_no", "int4"},
          {"generation", "int4"},
          {"updated_at", "timestamptz"},
          {"tags", "_text"},
          {"unique_key", "text"},
          {"lease_owner", "uuid"},           // the session that runs it
          {"lease_timeout", "timestamptz"},  // until when, unless that session renews it
          {"try_count", "int4"},
          {"max_tries", "int4"},      // NULL: no limit
          {"worker_status", "text"},  // pending, running, done, error
          {"reason", "text"},         // never NULL
          {"warning", "bool"},
          {"error", "jsonb"},
          {"cancel_requested", "bool"},
          {"run_time", "interval"}}},  // of the last attempt of a finished task
        {"task_status", {{"id", "int2"}, {"code", "text"}}},
        {"task_task_dep", {{"task_id", "int8"}, {"depends_on", "int8"}}},
        {"task_resource", {{"id", "int4"}, {"name", "text"}, {"max_concurrency", "int4"}}},
        {"task_resource_dep", {{"task_id", "int8"}, {"depends_on", "int4"}}},
        {"node", {{"id", "int8"}, {"hostname", "text"}, {"last_seen", "timestamptz"}}},
        {"task_joins",
         {{"join_key", "varchar"},
          {"workflow_id", "varchar"},
          {"task_type", "varchar"},
          {"task_id", "int8"},
          {"completed_at", "timestamptz"}}},
        {"audit_logs",
         {{"id", "int8"},
          {"task_id", "int8"},
          {"tenant_id", "int8"},
          {"from_status", "text"},  // codes of task_status
          {"to_status", "text"},
          {"event", "text"},
          {"attempt", "int4"},
          {"generation", "int4"},
          {"session", "uuid"},
          {"actor", "text"},   // never NULL
          {"reason", "text"},  // never NULL
          {"created_at", "timestamptz"}}},
    };
    return contracts;
}

}  // namespace stint::conformance
