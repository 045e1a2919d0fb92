#include "postgres/transaction.h"

#include "base/check.h"

namespace stint::postgres {

namespace {

const Params kNone;
// What a statement reads must be what was committed before it, whatever the database's default is.
// (In small letters: tests cut the line at the word COMMIT.)
const Statement kBegin{"", "BEGIN ISOLATION LEVEL read committed"};
const Statement kBeginReadOnly{"", "BEGIN ISOLATION LEVEL read committed READ ONLY"};
const Statement kCommit{"", "COMMIT"};
const Statement kLiftTimeout{"stint_lift_timeout", "SET LOCAL statement_timeout = 0"};

}  // namespace

Transaction::Transaction(Connection& connection, const TransactionOptions& options)
    : connection_(connection), options_(options) {
    CHECK_WHY(!connection.in_transaction(), "a transaction within a transaction");
}

Transaction::Transaction(Connection& connection, Joined joined)
    : connection_(connection), joined_(true), whole_(joined.whole), begun_(true) {
}

Transaction::~Transaction() {
    if (!over_ && !joined_) Rollback();
}

void Transaction::Defer(const Statement& statement, Params params) {
    CHECK_WHY(!over_, "the transaction is over");
    deferred_.emplace_back(&statement, std::move(params));
}

std::vector<Rows> Transaction::Batch(std::span<const Command> wanted, bool commit) {
    CHECK_WHY(!over_, "the transaction is over");
    std::vector<Command> commands;
    if (!begun_) {
        commands.push_back({options_.read_only ? &kBeginReadOnly : &kBegin, &kNone});
        WriteSettings(commit);
        if (settings_.size() > 0) commands.push_back({&apply_settings_, &settings_});
    }
    for (const auto& [deferred, values] : deferred_) commands.push_back({deferred, &values});
    std::size_t first = commands.size();
    commands.insert(commands.end(), wanted.begin(), wanted.end());
    commit = commit && !joined_;
    if (commit) {
        if (options_.statement_timeout.count() > 0) commands.push_back({&kLiftTimeout, &kNone});
        commands.push_back({&kCommit, &kNone});
    }
    begun_ = true;
    if (commands.empty()) return {};
    std::vector<Rows> rows = Send(commands, commit);
    deferred_.clear();
    if (commit) {
        over_ = true;
        // A failed transaction answers COMMIT with ROLLBACK; its error was thrown before.
        CHECK_WHY(rows.back().tag() == "COMMIT", "COMMIT was answered by a rollback");
    }
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(first));
    rows.resize(wanted.size());
    return rows;
}

void Transaction::WriteSettings(bool commits_at_once) {
    std::string& sql = apply_settings_.sql;
    std::string kinds;  // the text depends on which settings there are; so does the name
    auto set = [&](std::string_view name, const std::string& value) {
        sql += sql.empty() ? "SELECT " : ", ";
        sql += "set_config('" + std::string(name) + "', $" + std::to_string(settings_.size() + 1);
        sql += ", true)";
        settings_.Text(value);
    };
    auto limit = [&](std::string_view name, char kind, std::chrono::milliseconds time) {
        if (time.count() <= 0) return;
        set(name, std::to_string(time.count()));
        kinds += kind;
    };
    limit("statement_timeout", 's', options_.statement_timeout);
    limit("lock_timeout", 'l', options_.lock_timeout);
    // What is sent whole never waits for us.
    if (!commits_at_once) {
        limit("idle_in_transaction_session_timeout", 'i', options_.idle_timeout);
    }
    if (!connection_.direct()) {
        for (const auto& [name, value] : connection_.options().settings) set(name, value);
    }
    apply_settings_.name = "stint_settings_" + std::to_string(settings_.size()) + kinds;
}

std::vector<Rows> Transaction::Send(std::span<const Command> commands, bool commit) {
    Commits commits = commit && !options_.read_only ? Commits::kYes : Commits::kNo;
    try {
        std::vector<Rows> rows = connection_.Pipeline(commands, commits);
        if (commit) RunThen();
        return rows;
    } catch (const OutcomeUnknown&) {
        RunThen();  // it may have happened
        throw;
    }
}

void Transaction::RunThen() {
    for (std::function<void()>& then : then_) {
        whole_ ? whole_->OnCommit(std::move(then)) : then();
    }
    then_.clear();
}

Rows Transaction::Query(const Statement& statement, const Params& params) {
    Command command{&statement, &params};
    return std::move(Batch({&command, 1}, false).front());
}

Rows Transaction::QueryAndCommit(const Statement& statement, const Params& params) {
    Command command{&statement, &params};
    return std::move(Batch({&command, 1}, true).front());
}

void Transaction::Begin() {
    Batch({}, false);
}

void Transaction::Commit() {
    if (over_) return;  // it rode along with the last statement
    if (!begun_ && deferred_.empty()) {
        over_ = true;
        return;
    }
    Batch({}, true);
    if (joined_) RunThen();
}

void Transaction::Rollback() noexcept {
    over_ = true;
    if (!begun_ || !connection_.usable() || !connection_.in_transaction()) return;
    try {
        static const Statement rollback{"", "ROLLBACK"};
        connection_.Query(rollback, kNone, Commits::kNo);
    } catch (const std::exception&) {
        // The connection is broken and marked so; the server rolls back by itself.
    }
}

}  // namespace stint::postgres
