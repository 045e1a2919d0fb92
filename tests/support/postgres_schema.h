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
    // As a migrated schema that nobody has used yet. Triggers are off meanwhile: the audit log
    // refuses to be emptied.
    std::string EmptyFunction() const {
        return fmt::format(
            R"(CREATE FUNCTION {0}.test_empty() RETURNS void LANGUAGE plpgsql
                SET session_replication_role = replica SET client_min_messages = warning AS $$
            DECLARE f text;
            BEGIN
                FOR f IN SELECT l.name FROM {0}.leaf l LOOP
                    EXECUTE 'DROP TABLE {0}.' || f;
                END LOOP;
                TRUNCATE {0}.leaf, {0}.period, {0}.live, {0}.ready, {0}.later, {0}.lease, {0}.past,
                    {0}.outside, {0}.progress, {0}.cancel_note, {0}.idem_key, {0}.live_key,
                    {0}.throttle_key, {0}.session, {0}.node_label, {0}.lane, {0}.queue, {0}.policy,
                    {0}.task_type, {0}.history_tally, {0}.history_change RESTART IDENTITY;
                DELETE FROM {0}.retention WHERE class > 0;
                INSERT INTO {0}.queue(name) VALUES ('default');
                UPDATE {0}.test_clock SET ahead = '0';
                ALTER SEQUENCE {0}.task_id_seq RESTART;
                ALTER SEQUENCE {0}.pos_seq RESTART;
                ALTER SEQUENCE {0}.audit_seq RESTART;
                PERFORM {0}.begin_period_();
            END $$)",
            name_
        );
    }

    std::string ClearFunction() const {
        return fmt::format(
            R"(CREATE FUNCTION {0}.test_clear() RETURNS void LANGUAGE plpgsql
                SET session_replication_role = replica AS $$
            BEGIN
                TRUNCATE {0}.live, {0}.ready, {0}.later, {0}.lease, {0}.past, {0}.outside,
                    {0}.progress, {0}.cancel_note, {0}.idem_key, {0}.live_key, {0}.throttle_key,
                    {0}.session, {0}.history, {0}.attempt, {0}.audit, {0}.history_tally,
                    {0}.history_change;
                UPDATE {0}.test_clock SET ahead = '0';
            END $$)",
            name_
        );
    }

    const std::string name_;
    std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace stint::testing
