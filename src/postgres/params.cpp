#include "postgres/params.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace stint::postgres {

namespace {

// 2000-01-01 00:00:00 UTC in microseconds of the Unix epoch.
constexpr std::int64_t kEpochShift = 946'684'800'000'000;

// What PostgreSQL takes as one value: 1 GiB, less its own header.
constexpr std::size_t kLargest = (std::size_t{1} << 30) - 64;

template <class Unsigned>
void AppendBigEndian(std::string& to, Unsigned value) {
    char bytes[sizeof(Unsigned)];
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
        bytes[sizeof(Unsigned) - 1 - i] = static_cast<char>(value >> (8 * i) & 0xff);
    }
    to.append(bytes, sizeof bytes);
}

template <class Unsigned>
std::string BigEndian(Unsigned value) {
    std::string bytes;
    AppendBigEndian(bytes, value);
    return bytes;
}

unsigned ArrayTypeOf(unsigned element) {
    switch (element) {
        case oid::kBool:
            return oid::kBoolArray;
        case oid::kInt2:
            return oid::kInt2Array;
        case oid::kInt4:
            return oid::kInt4Array;
        case oid::kInt8:
            return oid::kInt8Array;
        case oid::kText:
            return oid::kTextArray;
        case oid::kTimestamptz:
            return oid::kTimestamptzArray;
        case oid::kUuid:
            return oid::kUuidArray;
        default:
            break;
    }
    CHECK_WHY(false, "no array type for this element type");
    return 0;
}

}  // namespace

std::string UuidBytes(std::uint64_t high, std::uint64_t low) {
    return BigEndian(high) + BigEndian(low);
}

std::int64_t ToPostgresMicros(Time time) {
    return time.time_since_epoch().count() - kEpochShift;
}
Time FromPostgresMicros(std::int64_t micros) {
    return Time{std::chrono::microseconds{micros + kEpochShift}};
}

Params& Params::Add(unsigned type, std::optional<std::string> bytes) {
    types_.push_back(type);
    values_.push_back(std::move(bytes));
    return *this;
}

Params& Params::Int(std::int64_t value) {
    return Add(oid::kInt8, BigEndian(static_cast<std::uint64_t>(value)));
}
Params& Params::Int4(std::int32_t value) {
    return Add(oid::kInt4, BigEndian(static_cast<std::uint32_t>(value)));
}
Params& Params::Bool(bool value) {
    return Add(oid::kBool, std::string(1, value ? '\1' : '\0'));
}
Params& Params::Float(double value) {
    return Add(oid::kFloat8, BigEndian(std::bit_cast<std::uint64_t>(value)));
}
Params& Params::Text(std::string_view value) {
    return Add(oid::kText, std::string(value));
}
Params& Params::TextOrNull(const std::optional<std::string>& value) {
    return Add(oid::kText, value);
}
Params& Params::At(Time value) {
    return Add(oid::kTimestamptz, BigEndian(static_cast<std::uint64_t>(ToPostgresMicros(value))));
}
Params& Params::AtOrNull(const std::optional<Time>& value) {
    return value ? At(*value) : Null(oid::kTimestamptz);
}
Params& Params::Null(unsigned type) {
    return Add(type, std::nullopt);
}
Params& Params::Array(unsigned array_type, std::string bytes) {
    return Add(array_type, std::move(bytes));
}

std::vector<const char*> Params::Values() const {
    std::vector<const char*> values;
    values.reserve(values_.size());
    for (const auto& value : values_) values.push_back(value ? value->data() : nullptr);
    return values;
}

std::vector<int> Params::Lengths() const {
    std::vector<int> lengths;
    lengths.reserve(values_.size());
    for (const auto& value : values_) {
        CHECK_WHY(!value || value->size() <= kLargest, "a parameter that no server takes");
        lengths.push_back(value ? static_cast<int>(value->size()) : 0);
    }
    return lengths;
}

ArrayOf::ArrayOf(unsigned element_type) : element_type_(element_type) {
}

void ArrayOf::Put32(std::uint32_t value) {
    AppendBigEndian(elements_, value);
}

void ArrayOf::Element(std::string_view bytes) {
    Put32(static_cast<std::uint32_t>(bytes.size()));
    elements_.append(bytes);
    ++count_;
}

template <class Unsigned>
void ArrayOf::Number(Unsigned value) {
    Put32(sizeof value);
    AppendBigEndian(elements_, value);
    ++count_;
}

ArrayOf& ArrayOf::Int(std::int64_t value) {
    if (element_type_ == oid::kInt8) {
        Number(static_cast<std::uint64_t>(value));
    } else if (element_type_ == oid::kInt4) {
        Number(static_cast<std::uint32_t>(value));
    } else {
        CHECK(element_type_ == oid::kInt2);
        Number(static_cast<std::uint16_t>(value));
    }
    return *this;
}
ArrayOf& ArrayOf::Bool(bool value) {
    CHECK(element_type_ == oid::kBool);
    Element(std::string_view(value ? "\1" : "\0", 1));
    return *this;
}
ArrayOf& ArrayOf::Text(std::string_view value) {
    CHECK(element_type_ == oid::kText);
    Element(value);
    return *this;
}
ArrayOf& ArrayOf::TextOrNull(std::string_view value) {
    return value.empty() ? Null() : Text(value);
}
ArrayOf& ArrayOf::At(Time value) {
    CHECK(element_type_ == oid::kTimestamptz);
    Element(BigEndian(static_cast<std::uint64_t>(ToPostgresMicros(value))));
    return *this;
}
ArrayOf& ArrayOf::Uuid(std::uint64_t high, std::uint64_t low) {
    CHECK(element_type_ == oid::kUuid);
    Element(UuidBytes(high, low));
    return *this;
}
ArrayOf& ArrayOf::Null() {
    Put32(0xffffffffu);
    ++nulls_;
    ++count_;
    return *this;
}

void ArrayOf::AddTo(Params& params) {
    std::string bytes;
    bytes.reserve(elements_.size() + 20);
    bytes += BigEndian(static_cast<std::uint32_t>(count_ > 0 ? 1 : 0));  // dimensions
    bytes += BigEndian(static_cast<std::uint32_t>(nulls_ > 0 ? 1 : 0));
    bytes += BigEndian(static_cast<std::uint32_t>(element_type_));
    if (count_ > 0) {
        bytes += BigEndian(static_cast<std::uint32_t>(count_));
        bytes += BigEndian(std::uint32_t{1});  // lower bound
    }
    bytes += elements_;
    params.Array(ArrayTypeOf(element_type_), std::move(bytes));
}

void ArrayOf::AddUnlessNothing(Params& params) {
    if (count_ > nulls_) return AddTo(params);
    params.Null(ArrayTypeOf(element_type_));
}

void AddInts(Params& params, std::span<const std::int64_t> values) {
    ArrayOf array(oid::kInt8);
    for (std::int64_t value : values) array.Int(value);
    array.AddTo(params);
}

void AddTexts(Params& params, std::span<const std::string> values) {
    ArrayOf array(oid::kText);
    for (const std::string& value : values) array.Text(value);
    array.AddTo(params);
}

}  // namespace stint::postgres
