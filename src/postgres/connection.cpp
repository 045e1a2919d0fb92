#include "postgres/connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "base/tallies.h"

namespace stint::postgres {

using base::MakeError;

namespace {

using Deadline = base::Instant;

base::Instant Now() {
    return base::SystemClock().Now();
}

// Thrown inside this file only: the socket is of no use. Becomes ConnectionLost or OutcomeUnknown.
struct SocketFailed {
    std::string why;
};

std::string Trimmed(const char* text) {
    std::string_view view = text ? text : "";
    while (!view.empty() && (view.back() == '\n' || view.back() == ' ')) view.remove_suffix(1);
    return std::string(view);
}

bool NamesSeveralHosts(const std::string& url) {
    char* error = nullptr;
    PQconninfoOption* options = PQconninfoParse(url.c_str(), &error);
    PQfreemem(error);
    if (options == nullptr) return false;
    bool several = false;
    for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
        std::string_view keyword = option->keyword;
        if ((keyword == "host" || keyword == "hostaddr") && option->val != nullptr) {
            several |= std::strchr(option->val, ',') != nullptr;
        }
    }
    PQconninfoFree(options);
    return several;
}

std::string Field(const PGresult* result, int field) {
    const char* text = PQresultErrorField(result, field);
    return text ? text : "";
}

bool IsCommit(const Command& command) {
    return command.statement->sql == "COMMIT";
}

const Statement& Backend() {
    static const Statement statement{"", "SELECT pg_backend_pid()"};
    return statement;
}

}  // namespace

void Connection::Finish::operator()(pg_conn* conn) const {
    if (!borrowed) PQfinish(conn);
}

std::unique_ptr<Connection> Connection::Open(const ConnectOptions& options) {
    std::string connect_timeout = std::to_string(options.connect_timeout.count());
    std::string user_timeout = std::to_string(options.tcp_user_timeout.count());
    // What the URL says comes later and wins.
    std::vector<const char*> keys = {
        "application_name",
        "connect_timeout",
        "keepalives",
        "keepalives_idle",
        "keepalives_count",
        "keepalives_interval",
        "tcp_user_timeout",
        "client_encoding"};
    std::vector<const char*> values = {
        options.application_name.c_str(),
        connect_timeout.c_str(),
        "1",
        "10",
        "3",
        "5",
        user_timeout.c_str(),
        "UTF8"};
    if (NamesSeveralHosts(options.url)) {
        keys.push_back("target_session_attrs");
        values.push_back("read-write");
    }
    keys.push_back("dbname");
    values.push_back(options.url.c_str());
    keys.push_back(nullptr);
    values.push_back(nullptr);

    std::unique_ptr<pg_conn, Finish> conn(
        PQconnectdbParams(keys.data(), values.data(), 1), Finish{false}
    );
    if (!conn) throw std::bad_alloc();
    if (PQstatus(conn.get()) != CONNECTION_OK) {
        throw ConnectionLost(
            "cannot connect to PostgreSQL: " + Trimmed(PQerrorMessage(conn.get()))
        );
    }
    auto connection = std::make_unique<Connection>(Private{}, std::move(conn), options);
    connection->LookAround();
    return connection;
}

Connection::Connection(
    Private, std::unique_ptr<pg_conn, Finish> conn, const ConnectOptions& options
)
    : options_(options), conn_(std::move(conn)) {
    address_ = fmt::format("{}:{}/{}", PQhost(conn_.get()), PQport(conn_.get()), PQdb(conn_.get()));
    if (conn_.get_deleter().borrowed) {
        was_nonblocking_ = PQisnonblocking(conn_.get()) == 1;
    } else {
        PQsetNoticeProcessor(
            conn_.get(), [](void*, const char*) {}, nullptr
        );
    }
    // Large pipelines would otherwise block on each other's full buffers.
    CHECK(PQsetnonblocking(conn_.get(), 1) == 0);
}

Connection::~Connection() {
    if (conn_.get_deleter().borrowed && !was_nonblocking_) PQsetnonblocking(conn_.get(), 0);
}

Result<std::unique_ptr<Connection>> Connection::Borrow(pg_conn* conn) {
    if (conn == nullptr || PQstatus(conn) != CONNECTION_OK) {
        return MakeError(Code::kInvalid, "the connection to borrow is not open");
    }
    if (PQtransactionStatus(conn) != PQTRANS_INTRANS) {
        return MakeError(
            Code::kInvalid,
            "the connection to borrow is not in a transaction, or in one that has failed: BEGIN "
            "first"
        );
    }
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF) {
        return MakeError(
            Code::kInvalid, "the connection to borrow is in pipeline mode: leave it first"
        );
    }
    const char* encoding = PQparameterStatus(conn, "client_encoding");
    if (encoding == nullptr || std::strcmp(encoding, "UTF8") != 0) {
        return MakeError(
            Code::kInvalid,
            "the connection to borrow speaks {}: SET client_encoding = 'UTF8' on it first",
            encoding != nullptr ? encoding : "an unknown encoding"
        );
    }
    std::unique_ptr<pg_conn, Finish> borrowed(conn, Finish{true});
    auto connection =
        std::make_unique<Connection>(Private{}, std::move(borrowed), ConnectOptions{});
    // In an older snapshot we would not see what we have others do for us, nor what the last holder
    // of a lock committed.
    std::string level = connection->Isolation();
    if (level != "read committed" && level != "read uncommitted") {
        return MakeError(
            Code::kInvalid,
            "the transaction to borrow is {}: BEGIN it with ISOLATION LEVEL READ COMMITTED",
            level
        );
    }
    return connection;
}

std::string Connection::Isolation() {
    static const Statement show{"", "SHOW transaction_isolation"};
    return Query(show, {}, Commits::kNo).Text(0, 0);
}

void Connection::LookAround() {
    // A pooler hands out a cancel key of its own, so the two ids differ behind one.
    Rows rows = Query(Backend(), {}, Commits::kNo);
    direct_ = rows.Int(0, 0) == PQbackendPID(conn_.get());
    prepares_ = options_.prepare == ConnectOptions::Prepare::kAlways ||
                (options_.prepare == ConnectOptions::Prepare::kAuto && direct_);
    if (!direct_) return;  // then each transaction brings its settings with it
    for (const auto& [name, value] : options_.settings) {
        static const Statement set{"", "SELECT set_config($1, $2, false)"};
        Query(set, Params().Text(name).Text(value), Commits::kNo);
    }
}

bool Connection::usable() const {
    return !broken_ && PQstatus(conn_.get()) == CONNECTION_OK;
}
bool Connection::in_transaction() const {
    return PQtransactionStatus(conn_.get()) != PQTRANS_IDLE;
}
bool Connection::in_sound_transaction() const {
    return PQtransactionStatus(conn_.get()) == PQTRANS_INTRANS;
}

int Connection::server_version() const {
    return PQserverVersion(conn_.get());
}

bool Connection::StillThere() {
    if (!usable()) return false;
    pollfd descriptor{PQsocket(conn_.get()), POLLIN, 0};
    if (poll(&descriptor, 1, 0) <= 0) return true;
    // Something came unasked: a notice, or the end.
    if (PQconsumeInput(conn_.get()) == 0 || PQstatus(conn_.get()) != CONNECTION_OK) broken_ = true;
    // libpq notices a closed socket only when it reads nothing at all from a readable one.
    if (!broken_ && poll(&descriptor, 1, 0) > 0 && PQconsumeInput(conn_.get()) == 0) broken_ = true;
    return usable();
}

void Connection::WaitFor(short events, Deadline deadline) {
    for (;;) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Now());
        if (left.count() <= 0) throw SocketFailed{"no answer in time"};
        pollfd descriptor{PQsocket(conn_.get()), events, 0};
        if (descriptor.fd < 0) throw SocketFailed{"the socket is closed"};
        int ready =
            poll(&descriptor, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
        if (ready > 0) return;
        if (ready < 0 && errno != EINTR) throw SocketFailed{std::strerror(errno)};
    }
}

void Connection::Send(const Command& command, bool pipelined) {
    const Statement& statement = *command.statement;
    const Params& params = *command.params;
    std::vector<const char*> values = params.Values();
    std::vector<int> lengths = params.Lengths();
    std::vector<int> formats(static_cast<std::size_t>(params.size()), 1);
    bool named = prepares_ && !statement.name.empty();
    base::Count(base::ProcessTallies().statements);
    int sent = 1;
    if (named && !prepared_.contains(statement.name)) {
        // Outside a pipeline this costs its own round trip, once per connection.
        CHECK(pipelined);
        sent = PQsendPrepare(
            conn_.get(),
            statement.name.c_str(),
            statement.sql.c_str(),
            params.size(),
            params.types()
        );
    }
    if (sent == 1 && named) {
        sent = PQsendQueryPrepared(
            conn_.get(),
            statement.name.c_str(),
            params.size(),
            values.data(),
            lengths.data(),
            formats.data(),
            1
        );
    } else if (sent == 1) {
        sent = PQsendQueryParams(
            conn_.get(),
            statement.sql.c_str(),
            params.size(),
            params.types(),
            values.data(),
            lengths.data(),
            formats.data(),
            1
        );
    }
    if (sent != 1) throw SocketFailed{Trimmed(PQerrorMessage(conn_.get()))};
}

void Connection::Flush(Deadline deadline) {
    for (;;) {
        int left = PQflush(conn_.get());
        if (left == 0) return;
        if (left < 0) throw SocketFailed{Trimmed(PQerrorMessage(conn_.get()))};
        WaitFor(POLLIN | POLLOUT, deadline);
        if (PQconsumeInput(conn_.get()) == 0) {
            throw SocketFailed{Trimmed(PQerrorMessage(conn_.get()))};
        }
    }
}

pg_result* Connection::NextResult(Deadline deadline) {
    while (PQisBusy(conn_.get())) {
        WaitFor(POLLIN, deadline);
        // On failure libpq makes an error result, which may say what the server's last words were.
        if (PQconsumeInput(conn_.get()) == 0) break;
    }
    return PQgetResult(conn_.get());
}

Connection::Answer Connection::Failure(const pg_result* result) {
    Answer answer;
    answer.sqlstate = Field(result, PG_DIAG_SQLSTATE);
    answer.severity = Field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    answer.table = Field(result, PG_DIAG_TABLE_NAME);
    answer.detail = Field(result, PG_DIAG_MESSAGE_DETAIL);
    answer.message = Trimmed(PQresultErrorMessage(result));
    if (answer.message.empty()) answer.message = "the server gave no reason";
    return answer;
}

Connection::Answer Connection::ReadAnswer(Deadline deadline) {
    Answer answer;
    while (pg_result* raw = NextResult(deadline)) {
        Rows rows(raw);
        ExecStatusType status = PQresultStatus(raw);
        if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
            answer.rows = std::move(rows);
            answer.succeeded = true;
        } else {
            // The first error tells most: "shutting down", then only "connection closed".
            if (!answer.failed()) {
                bool succeeded = answer.succeeded;
                answer = Failure(raw);
                answer.succeeded = succeeded;
            }
            if (PQstatus(conn_.get()) != CONNECTION_OK) break;
        }
    }
    return answer;
}

void Connection::Broken(const std::string& why, Commits commits) {
    broken_ = true;
    std::string message = fmt::format("lost the connection to {}: {}", address_, why);
    if (commits == Commits::kYes) throw OutcomeUnknown(message);
    throw ConnectionLost(message);
}

void Connection::CheckAnswer(const Answer& answer, bool is_commit, Commits commits) {
    if (!answer.failed()) return;
    bool fatal = answer.severity == "FATAL" || answer.severity == "PANIC";
    if (answer.sqlstate.empty() || fatal || PQstatus(conn_.get()) != CONNECTION_OK) {
        // The server tells of its own shutdown instead of the statement's success, and only
        // afterwards could it have committed: so it has not. Others (a pooler) may not know.
        bool told_first = fatal && answer.sqlstate.starts_with("57P") && !answer.succeeded;
        Broken(answer.message, told_first && !is_commit ? Commits::kNo : commits);
    }
    // The server itself does not know: 08007 transaction_resolution_unknown, 40003
    // statement_completion_unknown.
    if (answer.sqlstate == "08007" || answer.sqlstate == "40003") Broken(answer.message, commits);
    Fault fault = Classify(answer.sqlstate);
    if (fault == Fault::kConnection) Broken(answer.message, is_commit ? commits : Commits::kNo);
    // The server keeps the outdated statements under their names: only a new connection is rid of
    // them.
    if (fault == Fault::kStalePlan && prepares_) broken_ = true;
    throw SqlError(answer.sqlstate, answer.table, answer.detail, answer.message);
}

Rows Connection::Query(const Statement& statement, const Params& params, Commits commits) {
    Command command{&statement, &params};
    if (prepares_ && !statement.name.empty() && !prepared_.contains(statement.name)) {
        std::vector<Rows> rows = Pipeline({&command, 1}, commits);
        return std::move(rows.front());
    }
    if (!usable()) throw ConnectionLost("the connection to " + address_ + " is gone");
    Deadline deadline = Now() + options_.reply_timeout;
    Answer answer;
    try {
        Send(command, false);
        Flush(deadline);
        answer = ReadAnswer(deadline);
    } catch (const SocketFailed& failed) {
        Broken(failed.why, commits);
    }
    CheckAnswer(answer, IsCommit(command), commits);
    return std::move(answer.rows);
}

std::vector<bool> Connection::SendPipeline(std::span<const Command> commands, Deadline deadline) {
    std::vector<bool> prepares;
    if (PQenterPipelineMode(conn_.get()) != 1) throw SocketFailed{"cannot pipeline"};
    for (const Command& command : commands) {
        const std::string& name = command.statement->name;
        prepares.push_back(prepares_ && !name.empty() && !prepared_.contains(name));
        Send(command, true);
        // The same text may come twice in one pipeline: it is prepared by the first.
        if (prepares.back()) prepared_.insert(name);
    }
    if (PQpipelineSync(conn_.get()) != 1) throw SocketFailed{"cannot pipeline"};
    Flush(deadline);
    return prepares;
}

Connection::Replies Connection::ReadPipeline(
    std::span<const Command> commands, const std::vector<bool>& prepares, Deadline deadline
) {
    Replies replies;
    std::size_t prepared = 0;  // how many are known to be
    for (std::size_t i = 0; i < commands.size() && !replies.failure; ++i) {
        replies.commit_failed = IsCommit(commands[i]);
        if (prepares[i]) {
            Answer answer = ReadAnswer(deadline);
            if (answer.failed()) replies.failure = std::move(answer);
        }
        if (replies.failure) break;
        ++prepared;
        Answer answer = ReadAnswer(deadline);
        if (answer.failed()) {
            replies.failure = std::move(answer);
        } else {
            replies.rows.push_back(std::move(answer.rows));
        }
    }
    // Names behind the one that failed were skipped by the server; those before it exist.
    for (std::size_t i = prepared; i < commands.size(); ++i) {
        if (prepares[i]) prepared_.erase(commands[i].statement->name);
    }
    return replies;
}

void Connection::DrainPipeline(Replies& replies, Deadline deadline) {
    for (;;) {
        pg_result* raw = NextResult(deadline);
        Rows rows(raw);
        ExecStatusType status = PQresultStatus(raw);
        if (raw != nullptr && status == PGRES_PIPELINE_SYNC) break;
        if (PQstatus(conn_.get()) != CONNECTION_OK) {
            throw SocketFailed{Trimmed(PQerrorMessage(conn_.get()))};
        }
        if (raw != nullptr && status == PGRES_FATAL_ERROR && !replies.failure) {
            replies.failure = Failure(raw);
            replies.commit_failed = true;
        }
    }
    if (PQexitPipelineMode(conn_.get()) != 1) throw SocketFailed{"cannot leave the pipeline"};
}

std::vector<Rows> Connection::Pipeline(std::span<const Command> commands, Commits commits) {
    if (!usable()) throw ConnectionLost("the connection to " + address_ + " is gone");
    Deadline deadline = Now() + options_.reply_timeout;
    Replies replies;
    try {
        std::vector<bool> prepares = SendPipeline(commands, deadline);
        replies = ReadPipeline(commands, prepares, deadline);
        bool alive = PQstatus(conn_.get()) == CONNECTION_OK;
        if (alive) DrainPipeline(replies, deadline);
    } catch (const SocketFailed& broke) {
        // An error before COMMIT was already answered: then nothing was committed.
        bool harmless = replies.failure && !replies.commit_failed;
        Broken(broke.why, harmless ? Commits::kNo : commits);
    }
    if (replies.failure) CheckAnswer(*replies.failure, replies.commit_failed, commits);
    CHECK(replies.rows.size() == commands.size());
    return std::move(replies.rows);
}

Rows Connection::Script(const std::string& sql) {
    if (!usable()) throw ConnectionLost("the connection to " + address_ + " is gone");
    Deadline deadline = Now() + options_.reply_timeout;
    Answer answer;
    try {
        base::Count(base::ProcessTallies().statements);
        if (PQsendQuery(conn_.get(), sql.c_str()) != 1) {
            throw SocketFailed{Trimmed(PQerrorMessage(conn_.get()))};
        }
        Flush(deadline);
        answer = ReadAnswer(deadline);
    } catch (const SocketFailed& failed) {
        Broken(failed.why, Commits::kYes);
    }
    CheckAnswer(answer, true, Commits::kYes);
    return std::move(answer.rows);
}

}  // namespace stint::postgres
