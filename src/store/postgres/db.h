// Runs the store's transactions: a connection from the pool, again after a lost race, and the three
// kinds of failure that the store's interface knows.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "base/test_point.h"
#include "postgres/pool.h"
#include "postgres/transaction.h"
#include "store/postgres/postgres_store.h"
#include "store/postgres/sql.h"

namespace stint::store::pg {

using postgres::ArrayOf;
using postgres::Params;
using postgres::Rows;
using postgres::Transaction;
using postgres::TransactionOptions;
namespace oid = postgres::oid;

// A lock was held by others for longer than the transaction's lock_timeout; nothing was changed.
class LockHeld : public Unavailable {
public:
    using Unavailable::Unavailable;
};

// Lets others get out of the way.
void Pause(std::chrono::milliseconds time);

class Db {
public:
    explicit Db(const PostgresOptions& options);

    // Runs `work` in a transaction and commits. After a lost race (serialisation, deadlock, a
    // period table that was missing) all of it runs again, so it must not keep what it learned
    // outside. Throws Unavailable, CommitUnknown, or what the server said.
    template <class Work>
    auto Run(Work&& work, const TransactionOptions& options = {}) {
        return Repeat(Use::kCommon, [&](postgres::Connection& connection) {
            return InTransaction(connection, options, work);
        });
    }
    // The same on connections kept for what a worker's life depends on: heartbeats and claims.
    template <class Work>
    auto RunVital(Work&& work) {
        return Repeat(Use::kVital, [&](postgres::Connection& connection) {
            return InTransaction(connection, {}, work);
        });
    }
    // The same on a connection kept for what must not wait for the others: whoever calls this may
    // hold one of them. Only for work that may happen twice: an unknown commit is tried again.
    template <class Work>
    auto RunAside(Work&& work) {
        return Repeat(Use::kAside, [&](postgres::Connection& connection) {
            return InTransaction(connection, {}, work);
        });
    }

    // One statement that changes something, which is a transaction by itself: where nothing waits
    // for it and it may happen twice. No settings are sent along, so no time limit but that of the
    // answer: only for what is bounded.
    Rows Once(const postgres::Statement& statement, const Params& params = {});

    // One statement that reads, without a transaction around it.
    Rows Read(const postgres::Statement& statement, const Params& params = {});
    Rows ReadVital(const postgres::Statement& statement, const Params& params = {});
    Rows ReadAside(const postgres::Statement& statement, const Params& params = {});
    // The same, planned anew for these very parameters: for statements that leave out what was not
    // asked, and for period tables that need not be looked at.
    Rows ReadPlanned(const postgres::Statement& statement, const Params& params = {});
    // The same for statements that name a range of ids: by index, whatever the statistics say.
    Rows ReadRange(const postgres::Statement& statement, const Params& params);

    // Where the server is, without secrets.
    std::string Address();
    // For a transaction of the host, as long as the host likes. Throws ConnectionLost.
    postgres::Pool::Loan LendToHost() { return hosts_.Acquire(); }

    // Makes the period table that `error` says is missing. Throws `error` if it says something
    // else.
    void MakeLeaf(const postgres::SqlError& error);

    const Sql sql;

private:
    enum class Use { kCommon, kVital, kAside };

    template <class Work>
    static auto InTransaction(
        postgres::Connection& connection, const TransactionOptions& options, Work&& work
    ) {
        Transaction transaction(connection, options);
        if constexpr (std::is_void_v<decltype(work(transaction))>) {
            work(transaction);
            base::TestPoint("store_postgres.before_commit");
            transaction.Commit();
        } else {
            auto result = work(transaction);
            base::TestPoint("store_postgres.before_commit");
            transaction.Commit();
            return result;
        }
    }

    template <class Work>
    auto Repeat(Use use, Work&& work) {
        for (int tries = 1;; ++tries) {
            try {
                postgres::Pool::Loan loan = Acquire(use);
                return work(*loan);
            } catch (const std::exception&) {
                Recover(tries, use == Use::kAside);
            }
        }
    }
    postgres::Pool::Loan Acquire(Use use);
    Rows ReadWith(
        const postgres::Statement& plan, const postgres::Statement& statement, const Params& params
    );
    // In a catch block. Returns when it makes sense to try again, throws otherwise.
    void Recover(int tries, bool aside);

    // Apart from each other: neither what hosts do in their transactions nor a flood of questions
    // can keep a worker from saying that it lives.
    postgres::Pool pool_;
    postgres::Pool vital_;
    postgres::Pool hosts_;
};

}  // namespace stint::store::pg
