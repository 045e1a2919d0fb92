// A prepared statement, its parameters and its rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace stint::sqlite {

using Blob = std::span<const unsigned char>;

class Statement;

// The rows of one execution. Ends the execution when it goes out of scope, so that no snapshot is
// kept by accident.
class [[nodiscard]] Rows {
public:
    explicit Rows(Statement& statement) : statement_(&statement) {}
    Rows(Rows&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
    Rows(const Rows&) = delete;
    Rows& operator=(const Rows&) = delete;
    Rows& operator=(Rows&&) = delete;
    ~Rows();

    bool Next();  // false: no more rows

    // Columns of the current row. Texts and blobs are valid until the next call of Next().
    bool IsNull(int column) const;
    std::int64_t Int(int column) const;
    double Real(int column) const;
    std::string_view Text(int column) const;
    Blob Bytes(int column) const;
    std::string String(int column) const { return std::string(Text(column)); }
    std::optional<std::int64_t> OptionalInt(int column) const {
        return IsNull(column) ? std::nullopt : std::optional(Int(column));
    }

private:
    Statement* statement_;
};

class Statement {
public:
    // `persistent`: kept for long, so that SQLite does not serve it from its small-object memory.
    Statement(sqlite3* database, std::string_view sql, bool persistent);
    Statement(Statement&&) noexcept = default;
    Statement& operator=(Statement&&) noexcept = default;
    ~Statement() = default;

    // Binds all parameters in order, and starts reading. Texts and blobs are copied.
    template <class... Args>
    Rows Query(const Args&... args) {
        Reset();
        int index = 0;
        (Bind(++index, args, true), ...);
        Begin(index);
        return Rows(*this);
    }
    // Binds all parameters in order and executes to the end. Returns the number of changed rows.
    template <class... Args>
    int Run(const Args&... args) {
        Reset();
        int index = 0;
        (Bind(++index, args, false), ...);
        Begin(index);
        return Finish();
    }
    // For many rows in one statement: Fill() binds the next parameters after `index`, RunFilled()
    // executes. Texts and blobs are not copied: they stay where they are until then.
    template <class... Args>
    void Fill(int& index, const Args&... args) {
        if (index == 0) Reset();
        (Bind(++index, args, false), ...);
    }
    int RunFilled(int bound) {
        Begin(bound);
        return Finish();
    }
    // Executes and returns the first column of the first row; nullopt when there is none.
    template <class... Args>
    std::optional<std::int64_t> Scalar(const Args&... args) {
        Rows rows = Query(args...);
        if (!rows.Next()) return std::nullopt;
        return rows.OptionalInt(0);
    }

    // One at a time, for parameters that are not known in number: then Start().
    void BindInt(int index, std::int64_t value) { Bind(index, value, true); }
    void BindText(int index, std::string_view value) { Bind(index, value, true); }
    Rows Start();

    void Reset() noexcept;
    int columns() const;
    std::string column_name(int column) const;

private:
    friend class Rows;

    void Bind(int index, std::int64_t value, bool copy);
    void Bind(int index, int value, bool copy) { Bind(index, std::int64_t{value}, copy); }
    void Bind(int index, bool value, bool copy) { Bind(index, std::int64_t{value}, copy); }
    void Bind(int index, double value, bool copy);
    void Bind(int index, std::string_view value, bool copy);
    void Bind(int index, const std::string& value, bool copy) {
        Bind(index, std::string_view(value), copy);
    }
    void Bind(int index, const char* value, bool copy) {
        Bind(index, std::string_view(value), copy);
    }
    void Bind(int index, Blob value, bool copy);
    void Bind(int index, std::nullptr_t, bool copy);
    template <class T>
    void Bind(int index, const std::optional<T>& value, bool copy) {
        value ? Bind(index, *value, copy) : Bind(index, nullptr, copy);
    }
    void Begin(int bound) const;  // with so many parameters bound
    bool Step();
    int Finish();
    [[noreturn]] void Throw(int code) const;

    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace stint::sqlite
