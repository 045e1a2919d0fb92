// Joining somebody's own transaction: on a connection of ours (Write), or on theirs (Borrow).
#include "base/result.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

namespace {

const postgres::Statement kSavepoint{"", "SAVEPOINT stint_step"};
const postgres::Statement kBack{"", "ROLLBACK TO SAVEPOINT stint_step"};
const postgres::Statement kRelease{"", "RELEASE SAVEPOINT stint_step"};

// What the server said, in the words of the store's interface.
[[noreturn]] void Refuse(const postgres::SqlError& error) {
    switch (error.fault()) {
        case postgres::Fault::kOther:
            throw postgres::SqlError(error);
        case postgres::Fault::kData:
            throw Unstorable(error.what());
        default:
            throw Unavailable(error.what());
    }
}

// Each step is a savepoint: whatever goes wrong in it, the caller's transaction is as it was before
// the step. A period table that is missing is made, on another connection, and the step taken
// again.
class JoinedTransaction final : public store::Transaction {
public:
    JoinedTransaction(PostgresStore& store, pg::Transaction& whole)
        : store_(store), connection_(whole.connection()), whole_(&whole) {}
    JoinedTransaction(PostgresStore& store, std::unique_ptr<postgres::Connection> connection)
        : store_(store), owned_(std::move(connection)), connection_(*owned_) {}

private:
    template <class Work>
    auto Step(Work&& work) {
        for (int tries = 1;; ++tries) {
            bool begun = false;
            try {
                pg::Transaction transaction(connection_, pg::Transaction::Joined{whole_});
                transaction.Query(kSavepoint);
                begun = true;
                auto result = work(transaction);
                transaction.Defer(kRelease);
                transaction.Commit();
                return result;
            } catch (const postgres::SqlError& error) {
                if (begun) GoBack();
                bool missing = error.fault() == postgres::Fault::kNoPartition;
                if (!missing || tries > 3) Refuse(error);
                store_.db().MakeLeaf(error);
            } catch (const postgres::ConnectionLost& lost) {
                throw Unavailable(lost.what());
            } catch (const std::exception&) {
                if (begun) GoBack();
                throw;
            }
        }
    }
    template <class Work>
    auto WithCurrentTypes(Work&& work) {
        for (int tries = 1;; ++tries) {
            try {
                return work();
            } catch (const OutdatedTypes& outdated) {
                if (tries == kTypeTries) throw Unavailable(outdated.what());
                store_.catalog().ReloadTypes();
            }
        }
    }
    void GoBack() {
        try {
            connection_.Query(kBack, {}, postgres::Commits::kNo);
            connection_.Query(kRelease, {}, postgres::Commits::kNo);
        } catch (const postgres::ConnectionLost& lost) {
            throw Unavailable(lost.what());
        }
    }

public:
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        return WithCurrentTypes([&] {
            return Step([&](pg::Transaction& transaction) {
                return store_.SubmitIn(transaction, tasks);
            });
        });
    }
    SettleReply Settle(const Settlement& settlement) override {
        return WithCurrentTypes([&] {
            return Step([&](pg::Transaction& transaction) {
                return store_.SettleIn(transaction, {&settlement, 1}).at(0);
            });
        });
    }
    void* native() override { return connection_.native(); }

private:
    PostgresStore& store_;
    std::unique_ptr<postgres::Connection> owned_;
    postgres::Connection& connection_;
    pg::Transaction* const whole_ = nullptr;
};

}  // namespace

Result<void> PostgresStore::Write(const std::function<Result<void>(store::Transaction&)>& work) {
    try {
        postgres::Pool::Loan loan = db_.LendToHost();
        TransactionOptions options;
        options.statement_timeout = {};  // the caller's statements are the caller's business,
        options.idle_timeout = {};       // and so is what it does between them
        Transaction transaction(*loan, options);
        transaction.Begin();
        JoinedTransaction joined(*this, transaction);
        Result<void> done = work(joined);
        if (!done) return done;
        if (!loan->in_sound_transaction()) {
            return base::MakeError(
                Code::kConflict,
                "the transaction is over or has failed: a statement in it went wrong, or it was "
                "ended by "
                "COMMIT or ROLLBACK; nothing was written"
            );
        }
        transaction.Commit();
        return done;
    } catch (const postgres::ConnectionLost& lost) {
        throw Unavailable(lost.what());
    } catch (const postgres::OutcomeUnknown& unknown) {
        throw CommitUnknown(unknown.what());
    }
}

Result<std::unique_ptr<store::Transaction>> PostgresStore::Borrow(void* native_connection) {
    try {
        auto connection = postgres::Connection::Borrow(static_cast<pg_conn*>(native_connection));
        if (!connection) return connection.error();
        std::unique_ptr<store::Transaction> joined =
            std::make_unique<JoinedTransaction>(*this, std::move(*connection));
        return joined;
    } catch (const postgres::ConnectionLost& lost) {
        throw Unavailable(lost.what());
    }
}

}  // namespace stint::store::pg
