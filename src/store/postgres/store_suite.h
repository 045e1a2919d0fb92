// What the tests of this store against a server have in common: an empty schema, the store, a
// worker.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "base/test_point.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/postgres/statements.h"
#include "support/cut_proxy.h"
#include "support/postgres_schema.h"

namespace stint::store {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;

class PostgresStoreTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("store");
        schema_ = &one;
        schema_->Empty();
        options_.url = stint::testing::TestPostgresUrl();
        options_.schema = schema_->name();
        options_.migrate = false;
        store_ = OpenPostgresStore(options_);
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession(
            {.id = session_, .hostname = "h", .lease = std::chrono::hours{1}, .types = {"t"}}
        );
    }
    std::unique_ptr<Connection> Connect() {
        postgres::ConnectOptions connect;
        connect.url = options_.url;
        return Connection::Open(connect);
    }
    TaskId Make(NewTask task = {}) {
        task.type = "t";
        return store_->Submit({&task, 1}).at(0).id;
    }
    static Params ClaimOf(const ClaimRequest& request, int limit) {
        Params params =
            pg::ClaimParams(request, limit, pg::LeaseTokens(limit, base::SystemRandom()));
        pg::AddMarks(params, {});
        return params;
    }
    std::vector<Lease> Claim(Store& store, int limit = 1) {
        return store.Claim({.session = session_, .limit = limit, .types = {"t"}}).leases;
    }
    Settlement Done(const Lease& lease) {
        Settlement done{.task = lease.task, .token = lease.token, .session = session_};
        done.output = "1";
        return done;
    }
    // Until some session of this schema waits for a lock that another holds.
    void WaitForALock(Connection& connection) {
        const Statement waiting{
            "",
            fmt::format(
                "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT "
                "l.granted AND a.query LIKE '%{}%'",
                schema_->name()
            )};
        while (connection.Query(waiting, {}, Commits::kNo).Int(0, 0) == 0)
            std::this_thread::yield();
    }
    std::string Through(const stint::testing::CutProxy& proxy) {
        return stint::testing::WithParameter(
            options_.url, fmt::format("host=127.0.0.1&port={}&sslmode=disable", proxy.port())
        );
    }
    // Acts at the store's test points until the test is over.
    void Listen(std::function<void(std::string_view)> act) {
        base::SetTestPointListener(std::move(act));
    }
    void TearDown() override { base::SetTestPointListener({}); }
    int ServerPort() {
        const Statement port{"", "SELECT inet_server_port()"};
        return static_cast<int>(schema_->connection().Query(port, {}, Commits::kNo).Int(0, 0));
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    PostgresOptions options_;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

}  // namespace stint::store
