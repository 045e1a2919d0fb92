// A statement's answer, in PostgreSQL's binary format, read by column number.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace stint::postgres {

class Rows {
public:
    Rows() = default;
    explicit Rows(pg_result* result);

    int size() const;
    bool empty() const { return size() == 0; }
    // Rows changed by INSERT, UPDATE or DELETE without RETURNING.
    std::int64_t affected() const;
    std::string_view tag() const;  // "COMMIT", "ROLLBACK", "INSERT 0 1", …
    int columns() const;
    std::string_view column_name(int column) const;

    bool IsNull(int row, int column) const;
    std::int64_t Int(int row, int column) const;  // int2, int4, int8; NULL is 0
    bool Bool(int row, int column) const;         // NULL is false
    double Float(int row, int column) const;
    std::string_view View(int row, int column) const;  // text, valid as long as these rows
    std::string Text(int row, int column) const { return std::string(View(row, column)); }
    Time At(int row, int column) const;  // timestamptz; NULL is the epoch
    std::optional<Time> MaybeAt(int row, int column) const;
    std::optional<int> MaybeInt(int row, int column) const;
    template <class IdType>
    IdType Uuid(int row, int column) const {
        auto [high, low] = UuidHalves(row, column);
        return IdType(high, low);
    }
    std::vector<std::string> Texts(int row, int column) const;  // text[]
    std::vector<std::int64_t> Ints(int row, int column) const;  // int2[], int4[], int8[]

private:
    struct Clear {
        void operator()(pg_result* result) const;
    };
    std::pair<std::uint64_t, std::uint64_t> UuidHalves(int row, int column) const;
    std::vector<std::string_view> Elements(int row, int column) const;

    std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace stint::postgres
