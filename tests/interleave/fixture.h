// What every scenario starts from: stores on one schema, and the steps of their sessions.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "base/random.h"
#include "interleave/interleave.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"
#include "store/postgres/statements.h"
#include "support/postgres_schema.h"

namespace stint::interleave {

// NOLINTBEGIN(google-build-using-namespace,google-global-names-in-headers): this header is the
// vocabulary of the scenarios and is included by nothing else
using namespace stint::store;
using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Rows;
using postgres::Statement;
using ::testing::IsEmpty;
using ::testing::Not;
// NOLINTEND(google-build-using-namespace,google-global-names-in-headers)

inline Step Sql(std::string name, std::string text) {
    return {std::move(name), [text = std::move(text)](Connection& connection) {
                connection.Query(Statement{"", text}, {}, Commits::kNo);
            }};
}
inline Step Begin() {
    return Sql("begin", "BEGIN");
}
inline Step Commit() {
    return Sql("commit", "COMMIT");
}

class Interleave : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("interleave");
        schema_ = &one;
        schema_->Empty();
        sql_ = std::make_unique<pg::Sql>(schema_->name());
        store_ = Open("setup");
        for (const char* who : {"A", "B"}) stores_[who] = Open(who);
    }

    // Its connections call themselves like the script that uses them: so the runner sees them wait.
    std::shared_ptr<Store> Open(const std::string& name) {
        PostgresOptions options;
        options.url = stint::testing::WithParameter(
            stint::testing::TestPostgresUrl(), "application_name=" + name
        );
        options.schema = schema_->name();
        options.migrate = false;
        return OpenPostgresStore(options);
    }

    // An empty store with one live session.
    void Fresh() {
        schema_->Clear();
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession(
            {.id = session_, .hostname = "h", .lease = std::chrono::minutes{1}, .types = {"t"}}
        );
        leases_.clear();
        replies_.clear();
    }
    TaskId Submit(NewTask task = {}) {
        task.type = "t";
        return store_->Submit({&task, 1}).at(0).id;
    }
    Lease Claim() {
        ClaimRequest request{.session = session_, .limit = 1, .types = {"t"}};
        return store_->Claim(request).leases.at(0);
    }
    std::int64_t Ask(const std::string& text) {
        std::string full = text;
        for (std::size_t at; (at = full.find("$s.")) != std::string::npos;)
            full.replace(at, 3, schema_->name() + ".");
        return schema_->connection().Query(Statement{"", full}, {}, Commits::kNo).Int(0, 0);
    }
    std::string In(std::string text) {
        for (std::size_t at; (at = text.find("$s.")) != std::string::npos;)
            text.replace(at, 3, schema_->name() + ".");
        return text;
    }

    // The store's claim statement, as it is or with its text changed.
    Step ClaimStep(std::string text) {
        return {"claim", [this, text = std::move(text)](Connection& connection) {
                    ClaimRequest request{.session = session_, .limit = 1, .types = {"t"}};
                    pg::LeaseTokens tokens(1, base::SystemRandom());
                    Params params = pg::ClaimParams(request, 1, tokens);
                    pg::AddMarks(params, {});
                    connection.Query(Statement{"", text}, params, Commits::kNo);
                }};
    }
    Step AdvanceStep() {
        return {"advance", [this](Connection&) { schema_->AdvanceTime(std::chrono::minutes{2}); }};
    }
    Step ReclaimStep(const std::string& who) {
        return {"reclaim", [this, who](Connection&) { stores_.at(who)->Reclaim({}); }};
    }
    // Submits inside the session's own transaction, as a host program does.
    Step SubmitStep(const std::string& who, const NewTask& task) {
        return {"submit", [this, who, task](Connection& connection) {
                    auto joined = stores_.at(who)->Borrow(connection.native()).value();
                    SubmitReply reply = joined->Submit({&task, 1}).at(0);
                    std::lock_guard guard(mutex_);
                    replies_.push_back(reply.id);
                }};
    }
    Step SettleStep(const std::string& who, std::size_t lease = 0) {
        return {"settle", [this, who, lease](Connection& connection) {
                    std::shared_ptr<Store> store = Open(who);
                    auto joined = store->Borrow(connection.native()).value();
                    const Lease& held = leases_.at(lease);
                    Settlement done{.task = held.task, .token = held.token, .session = session_};
                    done.output = "1";
                    joined->Settle(done);
                }};
    }

    // Every task in exactly one place, and the audit log agrees.
    std::string Sound() {
        for (const CheckFinding& finding : store_->Check()) {
            if (!finding.ok) return finding.what + ": " + finding.detail;
        }
        return {};
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<pg::Sql> sql_;
    std::shared_ptr<Store> store_;
    std::map<std::string, std::shared_ptr<Store>> stores_;
    SessionId session_;
    std::vector<Lease> leases_;
    std::mutex mutex_;
    std::vector<TaskId> replies_;  // guarded by mutex_
};

}  // namespace stint::interleave
