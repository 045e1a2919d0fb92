// A schema of one's own for a test program, with a clock that the test moves. Dropped at the end.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "support/postgres.h"

namespace stint::testing {

class PostgresSchema {
public:
    explicit PostgresSchema(const std::string& what)
        : name_(fmt::format("test_{}_{}", what, getpid())) {
        postgres::ConnectOptions connect;
        connect.url = TestPostgresUrl();
        connect.prepare = postgres::ConnectOptions::Prepare::kNever;
        connection_ = postgres::Connection::Open(connect);
        store::PostgresOptions options;
        options.url = connect.url;
        options.schema = name_;
        connection_->Script("DROP SCHEMA IF EXISTS " + name_ + " CASCADE");
        store::MigratePostgres(options);
        connection_->Script(fmt::format(
            "CREATE TABLE {0}.test_clock(ahead interval NOT NULL); INSERT INTO {0}.test_clock "
            "VALUES ('0');"
            "CREATE OR REPLACE FUNCTION {0}.now_() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
            "'SELECT clock_timestamp() + (SELECT ahead FROM {0}.test_clock)'",
            name_
        ));
        connection_->Script(TruncateFunction());
        connection_->Script(EmptyFunction());
        connection_->Script(ClearFunction());
    }
    ~PostgresSchema() {
        try {
            connection_->Script("DROP SCHEMA IF EXISTS " + name_ + " CASCADE");
        } catch (const std::exception&) {
            // The server is gone; so is the schema, soon.
        }
    }

    const std::string& name() const { return name_; }
    postgres::Connection& connection() { return *connection_; }

    // No tasks, sessions and keys any more, but the names that stores remember stay.
    void Clear() { connection_->Script(fmt::format("SELECT {}.test_clear()", name_)); }
    void Empty() { connection_->Script(fmt::format("SELECT {}.test_empty()", name_)); }
    void AdvanceTime(Duration by) {
        connection_->Script(fmt::format(
            "UPDATE {}.test_clock SET ahead = ahead + {} * interval '1 millisecond'",
            name_,
            by.count()
        ));
    }

private:
    // Triggers are off meanwhile: the audit log refuses to be emptied. Only what has rows is
    // truncated, since that makes new files for each table and its indexes.
    std::string TruncateFunction() const {
        return fmt::format(
            R"(CREATE FUNCTION {0}.test_truncate(kept text[]) RETURNS void LANGUAGE plpgsql
                SET session_replication_role = replica SET client_min_messages = warning AS $$
            DECLARE
                t regclass; filled boolean; names text[] := '{{}}';
            BEGIN
                FOR t IN SELECT c.oid FROM pg_class c WHERE c.relnamespace = '{0}'::regnamespace
                    AND c.relkind = 'r' AND c.relname <> ALL (kept)
                LOOP
                    EXECUTE 'SELECT EXISTS (SELECT FROM ' || t || ')' INTO filled;
                    IF filled THEN names := names || t::text; END IF;
                END LOOP;
                IF cardinality(names) > 0 THEN
                    EXECUTE 'TRUNCATE ' || array_to_string(names, ', ') || ' CASCADE';
                END IF;
                UPDATE {0}.test_clock SET ahead = '0' WHERE ahead <> '0';
            END $$)",
            name_
        );
    }

    // As a migrated schema that nobody has used yet.
    std::string EmptyFunction() const {
        return fmt::format(
            R"(CREATE FUNCTION {0}.test_empty() RETURNS void LANGUAGE plpgsql
                SET client_min_messages = warning AS $$
            DECLARE f text;
            BEGIN
                FOR f IN SELECT l.name FROM {0}.leaf l LOOP
                    EXECUTE 'DROP TABLE {0}.' || f;
                END LOOP;
                PERFORM {0}.test_truncate(ARRAY['task_status', 'event_name', 'retention',
                    'identity', 'migration', 'test_clock', 'workflow_revision']);
                PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value,
                    false) FROM pg_sequences WHERE schemaname = '{0}';
                DELETE FROM {0}.retention WHERE class > 0;
                INSERT INTO {0}.queue(name) VALUES ('default');
                PERFORM {0}.begin_period_();
            END $$)",
            name_
        );
    }

    std::string ClearFunction() const {
        return fmt::format(
            R"(CREATE FUNCTION {0}.test_clear() RETURNS void LANGUAGE sql AS $$
                SELECT {0}.test_truncate(ARRAY['task_status', 'event_name', 'retention',
                    'identity', 'migration', 'test_clock', 'workflow_revision', 'leaf', 'period',
                    'node_label', 'lane', 'queue', 'policy', 'task_type']) $$)",
            name_
        );
    }

    const std::string name_;
    std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace stint::testing
