// One connection to a SQLite file. Not for several threads at once: its owner serialises.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sqlite/statement.h"

namespace stint::sqlite {

struct OpenOptions {
    enum class Role : std::uint8_t {
        kWriter,  // creates the file; WAL, synchronous=FULL, checkpoints by itself
        kReader,  // query_only, never checkpoints
    };
    Role role = Role::kReader;
    std::chrono::milliseconds busy_timeout{5000};
    int cache_kib = 16 * 1024;
    int checkpoint_pages = 2000;  // writer: WAL pages after which a commit copies them back
};

std::string LibraryVersion();

class Connection {
public:
    // Throws Error, also for what is not a database file.
    Connection(const std::string& path, const OpenOptions& options);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Any number of statements without parameters; rows are ignored.
    void Exec(const std::string& sql);

    // A statement kept under its key for the life of the connection. `sql` is called once.
    // The reference stays valid; one use at a time.
    template <class MakeSql>
    Statement& Cached(std::string_view key, MakeSql&& sql) {
        auto found = statements_.find(key);
        if (found != statements_.end()) return *found->second;
        return Keep(key, std::string(sql()));
    }
    Statement& Cached(const std::string& sql) {
        return Cached(sql, [&sql] { return sql; });
    }
    // For once.
    Statement Prepare(std::string_view sql) { return Statement(handle_, sql, false); }
    // Forgets statements whose key `drop` accepts (tables that are gone).
    void Forget(const std::function<bool(std::string_view)>& drop);

    // Whether triggers fire and foreign keys are checked on this connection. A change makes every
    // statement be prepared again.
    void EnableChecks(bool on);
    // A function of a number for the statements of this connection, not for its schema: its bytes
    // stay valid until the next call. May not throw, as the next.
    using BytesOf = std::function<std::optional<Blob>(std::int64_t)>;
    void Define(const std::string& name, BytesOf function);
    // Called for each row that a statement has inserted, changed or deleted, except in tables
    // WITHOUT ROWID. Not called when that is rolled back.
    using Changed = std::function<void(std::string_view table, std::int64_t row)>;
    void OnChange(Changed changed);
    std::int64_t Pragma(const std::string& name);  // its integer value
    std::string PragmaText(const std::string& name);
    bool in_transaction() const;
    // Whether a foreign key that is checked at the commit is broken now: the commit would fail.
    bool owes_foreign_keys() const;
    void Interrupt();  // what runs now fails; the one call that another thread may make
    sqlite3* handle() { return handle_; }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view key) const {
            return std::hash<std::string_view>{}(key);
        }
    };
    Statement& Keep(std::string_view key, const std::string& sql);
    void Configure(const OpenOptions& options);

    sqlite3* handle_ = nullptr;
    Changed changed_;
    std::deque<BytesOf> functions_;  // they do not move
    std::unordered_map<std::string, std::unique_ptr<Statement>, Hash, std::equal_to<>> statements_;
};

}  // namespace stint::sqlite
