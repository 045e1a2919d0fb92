#include "postgres/rows.h"

#include <libpq-fe.h>

#include <bit>
#include <charconv>
#include <limits>

#include "base/check.h"
#include "postgres/params.h"

namespace stint::postgres {

namespace {

std::uint64_t Unsigned(std::string_view bytes) {
    std::uint64_t value = 0;
    for (char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
    return value;
}

std::int64_t Signed(std::string_view bytes) {
    std::uint64_t value = Unsigned(bytes);
    switch (bytes.size()) {
        case 2:
            return static_cast<std::int16_t>(value);
        case 4:
            return static_cast<std::int32_t>(value);
        case 8:
            return static_cast<std::int64_t>(value);
        default:
            break;
    }
    CHECK_WHY(false, "not an integer column");
    return 0;
}

}  // namespace

void Rows::Clear::operator()(pg_result* result) const {
    PQclear(result);
}

Rows::Rows(pg_result* result) : result_(result) {
}

int Rows::size() const {
    return result_ ? PQntuples(result_.get()) : 0;
}

std::int64_t Rows::affected() const {
    std::string_view text = result_ ? PQcmdTuples(result_.get()) : "";
    std::int64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
}

std::string_view Rows::tag() const {
    return result_ ? PQcmdStatus(result_.get()) : "";
}
int Rows::columns() const {
    return result_ ? PQnfields(result_.get()) : 0;
}
std::string_view Rows::column_name(int column) const {
    return PQfname(result_.get(), column);
}

bool Rows::IsNull(int row, int column) const {
    CHECK(row < size() && column < columns());
    return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view Rows::View(int row, int column) const {
    CHECK(row < size() && column < columns());
    return {
        PQgetvalue(result_.get(), row, column),
        static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::int64_t Rows::Int(int row, int column) const {
    return IsNull(row, column) ? 0 : Signed(View(row, column));
}
bool Rows::Bool(int row, int column) const {
    if (IsNull(row, column)) return false;
    CHECK(PQftype(result_.get(), column) == oid::kBool);
    return View(row, column) != std::string_view("\0", 1);
}
double Rows::Float(int row, int column) const {
    if (IsNull(row, column)) return 0;
    CHECK(PQftype(result_.get(), column) == oid::kFloat8);
    return std::bit_cast<double>(Unsigned(View(row, column)));
}

Time Rows::At(int row, int column) const {
    if (IsNull(row, column)) return Time{};
    CHECK(PQftype(result_.get(), column) == oid::kTimestamptz);
    std::int64_t micros = Signed(View(row, column));
    // The two infinities stay what they are: the ends of time.
    if (micros == std::numeric_limits<std::int64_t>::max()) return Time::max();
    if (micros == std::numeric_limits<std::int64_t>::min()) return Time::min();
    return FromPostgresMicros(micros);
}
std::optional<Time> Rows::MaybeAt(int row, int column) const {
    if (IsNull(row, column)) return std::nullopt;
    return At(row, column);
}
std::optional<int> Rows::MaybeInt(int row, int column) const {
    if (IsNull(row, column)) return std::nullopt;
    return static_cast<int>(Int(row, column));
}

std::pair<std::uint64_t, std::uint64_t> Rows::UuidHalves(int row, int column) const {
    if (IsNull(row, column)) return {0, 0};
    std::string_view bytes = View(row, column);
    CHECK(bytes.size() == 16);
    return {Unsigned(bytes.substr(0, 8)), Unsigned(bytes.substr(8))};
}

std::vector<std::string_view> Rows::Elements(int row, int column) const {
    std::vector<std::string_view> elements;
    if (IsNull(row, column)) return elements;
    std::string_view bytes = View(row, column);
    CHECK(bytes.size() >= 12);
    if (Unsigned(bytes.substr(0, 4)) == 0) return elements;
    CHECK(Unsigned(bytes.substr(0, 4)) == 1 && bytes.size() >= 20);
    std::uint64_t count = Unsigned(bytes.substr(12, 4));
    bytes.remove_prefix(20);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::size_t length = Unsigned(bytes.substr(0, 4));
        CHECK_WHY(length != 0xffffffffu && bytes.size() >= 4 + length, "NULL in an array");
        elements.push_back(bytes.substr(4, length));
        bytes.remove_prefix(4 + length);
    }
    return elements;
}

std::vector<std::string> Rows::Texts(int row, int column) const {
    std::vector<std::string> texts;
    for (std::string_view element : Elements(row, column)) texts.emplace_back(element);
    return texts;
}
std::vector<std::int64_t> Rows::Ints(int row, int column) const {
    std::vector<std::int64_t> ints;
    for (std::string_view element : Elements(row, column)) ints.push_back(Signed(element));
    return ints;
}

}  // namespace stint::postgres
