#include "sqlite/statement.h"

#include <sqlite3.h>

#include "base/check.h"
#include "base/tallies.h"
#include "sqlite/error.h"

namespace stint::sqlite {

Rows::~Rows() {
    if (statement_ != nullptr) statement_->Reset();
}

bool Rows::Next() {
    return statement_->Step();
}

bool Rows::IsNull(int column) const {
    return sqlite3_column_type(statement_->statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Rows::Int(int column) const {
    return sqlite3_column_int64(statement_->statement_.get(), column);
}

double Rows::Real(int column) const {
    return sqlite3_column_double(statement_->statement_.get(), column);
}

std::string_view Rows::Text(int column) const {
    const auto* text = sqlite3_column_text(statement_->statement_.get(), column);
    if (text == nullptr) return {};
    auto size =
        static_cast<std::size_t>(sqlite3_column_bytes(statement_->statement_.get(), column));
    return {reinterpret_cast<const char*>(text), size};
}

Blob Rows::Bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_->statement_.get(), column);
    if (data == nullptr) return {};
    auto size =
        static_cast<std::size_t>(sqlite3_column_bytes(statement_->statement_.get(), column));
    return {static_cast<const unsigned char*>(data), size};
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* database, std::string_view sql, bool persistent) {
    sqlite3_stmt* statement = nullptr;
    const char* tail = nullptr;
    int code = sqlite3_prepare_v3(
        database,
        sql.data(),
        static_cast<int>(sql.size()),
        persistent ? SQLITE_PREPARE_PERSISTENT : 0,
        &statement,
        &tail
    );
    statement_.reset(statement);
    if (code != SQLITE_OK) {
        throw Error(
            sqlite3_extended_errcode(database),
            std::string("SQLite: ") + sqlite3_errmsg(database) + " in: " + std::string(sql)
        );
    }
    CHECK_WHY(statement != nullptr, "an empty statement");
    for (; tail != sql.data() + sql.size(); ++tail) {
        CHECK_WHY(*tail == ' ' || *tail == '\n' || *tail == ';', "more than one statement");
    }
}

void Statement::Reset() noexcept {
    sqlite3_reset(statement_.get());
}

int Statement::columns() const {
    return sqlite3_column_count(statement_.get());
}

std::string Statement::column_name(int column) const {
    return sqlite3_column_name(statement_.get(), column);
}

void Statement::Bind(int index, std::int64_t value, bool) {
    if (int code = sqlite3_bind_int64(statement_.get(), index, value); code != SQLITE_OK)
        Throw(code);
}

void Statement::Bind(int index, double value, bool) {
    if (int code = sqlite3_bind_double(statement_.get(), index, value); code != SQLITE_OK)
        Throw(code);
}

void Statement::Bind(int index, std::string_view value, bool copy) {
    // A null pointer would bind NULL; an empty text is a text.
    const char* data = value.data() != nullptr ? value.data() : "";
    int code = sqlite3_bind_text64(
        statement_.get(),
        index,
        data,
        value.size(),
        copy ? SQLITE_TRANSIENT : SQLITE_STATIC,
        SQLITE_UTF8
    );
    if (code != SQLITE_OK) Throw(code);
}

void Statement::Bind(int index, Blob value, bool copy) {
    static constexpr unsigned char kEmpty = 0;
    int code = sqlite3_bind_blob64(
        statement_.get(),
        index,
        value.empty() ? &kEmpty : value.data(),
        value.size(),
        copy ? SQLITE_TRANSIENT : SQLITE_STATIC
    );
    if (code != SQLITE_OK) Throw(code);
}

void Statement::Bind(int index, std::nullptr_t, bool) {
    if (int code = sqlite3_bind_null(statement_.get(), index); code != SQLITE_OK) Throw(code);
}

void Statement::Begin(int bound) const {
    CHECK_WHY(
        bound == sqlite3_bind_parameter_count(statement_.get()), sqlite3_sql(statement_.get())
    );
    base::Count(base::ProcessTallies().statements);
}

Rows Statement::Start() {
    base::Count(base::ProcessTallies().statements);
    return Rows(*this);
}

bool Statement::Step() {
    int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    Throw(code);
}

int Statement::Finish() {
    while (Step()) {
    }
    int changes = sqlite3_changes(sqlite3_db_handle(statement_.get()));
    Reset();
    return changes;
}

void Statement::Throw(int code) const {
    sqlite3* database = sqlite3_db_handle(statement_.get());
    int extended = sqlite3_extended_errcode(database);
    std::string message = std::string("SQLite: ") + sqlite3_errmsg(database);
    const char* sql = sqlite3_sql(statement_.get());
    if (sql != nullptr) message += std::string(" in: ") + sql;
    sqlite3_reset(statement_.get());
    throw Error((extended & 0xff) == (code & 0xff) ? extended : code, message);
}

}  // namespace stint::sqlite
