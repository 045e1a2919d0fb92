// A transaction on a Connection. Rolls back unless committed.
//
// BEGIN and the settings ride along with the first statement, and statements whose answer nobody
// needs at once ride along with the next one or with COMMIT: a transaction of one statement is one
// round trip.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include "postgres/connection.h"

namespace stint::postgres {

struct TransactionOptions {
    // Per statement; zero = none. Lifted before COMMIT: a cancelled COMMIT that waits for a standby
    // would be visible without being replicated.
    std::chrono::milliseconds statement_timeout{30'000};
    std::chrono::milliseconds lock_timeout{0};
    // How long the server keeps our locks while it hears nothing from us between two statements;
    // zero = for ever. A process that is frozen in the middle must not hold up everybody else; when
    // it wakes up, its connection is lost and the transaction never happened.
    std::chrono::milliseconds idle_timeout{10'000};
    bool read_only = false;
};

class Transaction {
public:
    explicit Transaction(Connection& connection, const TransactionOptions& options = {});
    // Works within a transaction that the owner of the connection has begun and will end: Commit()
    // only sends what was put off.
    struct Joined {
        Transaction* whole = nullptr;  // ours after all: what is to run on commit waits for its end
    };
    Transaction(Connection& connection, Joined joined);
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    Rows Query(const Statement& statement, const Params& params = {});
    // The statement and COMMIT in one round trip.
    Rows QueryAndCommit(const Statement& statement, const Params& params = {});
    // Several in one round trip, each with its answer; with COMMIT behind them if so asked.
    std::vector<Rows> Batch(std::span<const Command> commands, bool commit);
    // Sends BEGIN now, for somebody who goes on with the bare connection.
    void Begin();
    // Sent with the next statement or COMMIT. `statement` must live until then.
    void Defer(const Statement& statement, Params params = {});
    // Runs once it is committed, or may be. In somebody else's transaction: when our part of it is
    // sent.
    void OnCommit(std::function<void()> then) { then_.push_back(std::move(then)); }
    // Throws OutcomeUnknown when the answer is lost.
    void Commit();
    void Rollback() noexcept;

    bool over() const { return over_; }
    Connection& connection() { return connection_; }

private:
    void WriteSettings(bool commits_at_once);
    std::vector<Rows> Send(std::span<const Command> commands, bool commit);
    void RunThen();

    Connection& connection_;
    const TransactionOptions options_;
    const bool joined_ = false;
    Transaction* const whole_ = nullptr;
    Params settings_;
    Statement apply_settings_;
    std::deque<std::pair<const Statement*, Params>> deferred_;
    std::vector<std::function<void()>> then_;
    bool begun_ = false;
    bool over_ = false;
};

}  // namespace stint::postgres
