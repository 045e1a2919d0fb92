#include "sqlite/connection.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "sqlite/error.h"

namespace stint::sqlite {

std::string LibraryVersion() {
    return sqlite3_libversion();
}

Connection::Connection(const std::string& path, const OpenOptions& options) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (options.role == OpenOptions::Role::kWriter) flags |= SQLITE_OPEN_CREATE;
    int code = sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr);
    if (code != SQLITE_OK) {
        std::string why = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
        sqlite3_close(handle_);
        handle_ = nullptr;
        throw Error(code, fmt::format("cannot open {}: {}", path, why));
    }
    try {
        Configure(options);
    } catch (...) {
        statements_.clear();
        sqlite3_close(handle_);
        throw;
    }
}

Connection::~Connection() {
    statements_.clear();
    sqlite3_close(handle_);
}

void Connection::Configure(const OpenOptions& options) {
    sqlite3_busy_timeout(handle_, static_cast<int>(options.busy_timeout.count()));
    Exec(fmt::format(
        "PRAGMA mmap_size=0; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF; PRAGMA "
        "temp_store=MEMORY;"
        "PRAGMA cache_size=-{};",
        options.cache_kib
    ));
    if (options.role == OpenOptions::Role::kWriter) {
        if (PragmaText("journal_mode=WAL") != "wal") {
            throw Error(SQLITE_CANTOPEN, "this file cannot be used in WAL mode");
        }
        Exec(fmt::format(
            "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint={};", options.checkpoint_pages
        ));
    } else {
        Exec("PRAGMA query_only=ON; PRAGMA wal_autocheckpoint=0;");
        // The last connection to close would checkpoint: only the writer may.
        sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    }
}

void Connection::Exec(const std::string& sql) {
    int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        throw Error(
            sqlite3_extended_errcode(handle_),
            fmt::format("SQLite: {} in: {}", sqlite3_errmsg(handle_), sql.substr(0, 200))
        );
    }
}

Statement& Connection::Keep(std::string_view key, const std::string& sql) {
    auto made = std::make_unique<Statement>(handle_, sql, true);
    return *statements_.emplace(std::string(key), std::move(made)).first->second;
}

void Connection::Forget(const std::function<bool(std::string_view)>& drop) {
    std::erase_if(statements_, [&drop](const auto& entry) { return drop(entry.first); });
}

void Connection::EnableChecks(bool on) {
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_TRIGGER, on ? 1 : 0, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_ENABLE_FKEY, on ? 1 : 0, nullptr);
}

bool Connection::owes_foreign_keys() const {
    int owed = 0, unused = 0;
    sqlite3_db_status(handle_, SQLITE_DBSTATUS_DEFERRED_FKS, &owed, &unused, 0);
    return owed != 0;
}

void Connection::Define(const std::string& name, BytesOf function) {
    auto call = [](sqlite3_context* context, int, sqlite3_value** arguments) {
        const auto& bytes_of = *static_cast<const BytesOf*>(sqlite3_user_data(context));
        auto bytes = bytes_of(sqlite3_value_int64(arguments[0]));
        if (!bytes) return sqlite3_result_null(context);
        sqlite3_result_blob64(context, bytes->data(), bytes->size(), SQLITE_TRANSIENT);
    };
    int code = sqlite3_create_function_v2(
        handle_,
        name.c_str(),
        1,
        SQLITE_UTF8 | SQLITE_DIRECTONLY,
        &functions_.emplace_back(std::move(function)),
        call,
        nullptr,
        nullptr,
        nullptr
    );
    if (code != SQLITE_OK) throw Error(code, "cannot define " + name);
}

void Connection::OnChange(Changed changed) {
    changed_ = std::move(changed);
    auto call = [](void* self, int, const char*, const char* table, sqlite3_int64 row) {
        static_cast<Connection*>(self)->changed_(table, row);
    };
    sqlite3_update_hook(handle_, call, this);
}

std::int64_t Connection::Pragma(const std::string& name) {
    Statement statement = Prepare("PRAGMA " + name);
    return statement.Scalar().value_or(0);
}

std::string Connection::PragmaText(const std::string& name) {
    Statement statement = Prepare("PRAGMA " + name);
    Rows rows = statement.Query();
    return rows.Next() ? rows.String(0) : std::string();
}

void Connection::Interrupt() {
    sqlite3_interrupt(handle_);
}

bool Connection::in_transaction() const {
    return sqlite3_get_autocommit(handle_) == 0;
}

}  // namespace stint::sqlite
