// One connection to a PostgreSQL server. Knows statements, not tasks.
//
// Works behind a transaction pooler: nothing depends on two transactions meeting the same server
// process. Named prepared statements and session settings are used only on a connection that is
// proven to be direct: the process id of the handshake is the one the server reports.
//
// For one thread at a time.
#pragma once

#include <stint/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "postgres/error.h"
#include "postgres/params.h"
#include "postgres/rows.h"

struct pg_conn;
struct pg_result;

namespace stint::postgres {

struct ConnectOptions {
    enum class Prepare : std::uint8_t {
        kAuto,  // named statements where the connection is direct
        kNever,
        kAlways,  // the pooler in between is known to support them
    };

    std::string url;  // postgres://… or "host=… dbname=…"; what it says wins over the fields below
    std::string application_name = "stint";
    std::chrono::seconds connect_timeout{5};
    std::chrono::milliseconds tcp_user_timeout{10'000};
    // A reply that takes longer than this means that the connection is dead. Longer than any
    // statement's own timeout.
    std::chrono::milliseconds reply_timeout{60'000};
    Prepare prepare = Prepare::kAuto;
    // Planner settings for every transaction of ours, e.g. {"plan_cache_mode", "…"}.
    std::vector<std::pair<std::string, std::string>> settings;
};

// An SQL text with its parameters as $1, $2, … and a name that no other text has.
struct Statement {
    std::string name;
    std::string sql;
};

struct Command {
    const Statement* statement;
    const Params* params;
};

// Whether the server may have committed something by the time the answer is due.
enum class Commits : bool { kNo, kYes };

class Connection {
public:
    // Throws ConnectionLost with libpq's own words, without the password.
    static std::unique_ptr<Connection> Open(const ConnectOptions& options);
    // Works on a connection that somebody else owns and has begun a transaction on. Uses neither
    // names nor settings of its own, and leaves it as it was. The error says why it cannot be.
    // Throws ConnectionLost.
    static Result<std::unique_ptr<Connection>> Borrow(pg_conn* conn);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // One statement, one round trip. Outside a transaction it is its own; say then what it does.
    Rows Query(const Statement& statement, const Params& params, Commits commits);

    // Several statements in one round trip. The first that fails ends them all, and its error is
    // thrown. `commits` when one of them is COMMIT.
    std::vector<Rows> Pipeline(std::span<const Command> commands, Commits commits);

    // Any SQL without parameters, also several statements at once; for migrations and set-up.
    Rows Script(const std::string& sql);

    // False once anything suggested that the connection is dead. It stays so.
    bool usable() const;
    // Looks, without waiting, whether the server has closed an idle connection.
    bool StillThere();
    bool in_transaction() const;
    // In a transaction in which nothing has failed yet.
    bool in_sound_transaction() const;
    bool direct() const { return direct_; }
    int server_version() const;  // 150020 for 15.20
    const std::string& address() const { return address_; }
    const ConnectOptions& options() const { return options_; }
    pg_conn* native() const { return conn_.get(); }

private:
    struct Finish {
        bool borrowed;
        void operator()(pg_conn* conn) const;
    };

    struct Private {};  // only the two above make one

public:
    Connection(Private, std::unique_ptr<pg_conn, Finish> conn, const ConnectOptions& options);

private:
    std::string Isolation();
    void LookAround();
    void Send(const Command& command, bool pipelined);
    void Flush(base::Instant deadline);
    pg_result* NextResult(base::Instant deadline);
    void WaitFor(short events, base::Instant deadline);
    // What one command answered; drains up to its end.
    struct Answer {
        Rows rows;
        bool succeeded = false;
        std::string sqlstate, severity, table, detail, message;
        bool failed() const { return !message.empty(); }
    };
    struct Replies {
        std::vector<Rows> rows;
        std::optional<Answer> failure;  // of the first that failed
        bool commit_failed = false;     // it was COMMIT, or what follows it
    };
    using Deadline = base::Instant;
    static Answer Failure(const pg_result* result);
    std::vector<bool> SendPipeline(std::span<const Command> commands, Deadline deadline);
    Replies ReadPipeline(
        std::span<const Command> commands, const std::vector<bool>& prepares, Deadline deadline
    );
    void DrainPipeline(Replies& replies, Deadline deadline);
    Answer ReadAnswer(base::Instant deadline);
    void CheckAnswer(const Answer& answer, bool is_commit, Commits commits);
    [[noreturn]] void Broken(const std::string& why, Commits commits);

    ConnectOptions options_;
    std::unique_ptr<pg_conn, Finish> conn_;
    std::string address_;
    bool direct_ = false;
    bool broken_ = false;
    bool prepares_ = false;
    bool was_nonblocking_ = false;  // of a borrowed one
    std::unordered_set<std::string> prepared_;
};

}  // namespace stint::postgres
