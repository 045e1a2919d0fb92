// Parameters of a statement, in PostgreSQL's binary format: no quoting, no parsing on either side.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stint::postgres {

// The types we send. The numbers are PostgreSQL's and never change.
namespace oid {
inline constexpr unsigned kBool = 16, kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kFloat8 = 701,
                          kTimestamptz = 1184, kUuid = 2950;
inline constexpr unsigned kBoolArray = 1000, kInt2Array = 1005, kInt4Array = 1007,
                          kTextArray = 1009, kInt8Array = 1016, kTimestamptzArray = 1185,
                          kUuidArray = 2951;
}  // namespace oid

// 16 bytes as they are sent.
std::string UuidBytes(std::uint64_t high, std::uint64_t low);

// Microseconds since PostgreSQL's epoch, 2000-01-01.
std::int64_t ToPostgresMicros(Time time);
Time FromPostgresMicros(std::int64_t micros);

class Params {
public:
    Params& Int(std::int64_t value);  // bigint
    Params& Int4(std::int32_t value);
    Params& Bool(bool value);
    Params& Float(double value);
    Params& Text(std::string_view value);
    Params& TextOrNull(const std::optional<std::string>& value);
    Params& At(Time value);  // timestamptz
    Params& AtOrNull(const std::optional<Time>& value);
    template <class Tag>
    Params& Uuid(const RandomId<Tag>& id) {
        return Add(oid::kUuid, UuidBytes(id.high(), id.low()));
    }
    template <class Tag>
    Params& Number(const Id<Tag>& id) {
        return Int(id.value());
    }
    Params& Null(unsigned type);
    // A finished array; see ArrayOf.
    Params& Array(unsigned array_type, std::string bytes);

    int size() const { return static_cast<int>(types_.size()); }
    const unsigned* types() const { return types_.data(); }
    std::vector<const char*> Values() const;
    std::vector<int> Lengths() const;

private:
    Params& Add(unsigned type, std::optional<std::string> bytes);

    std::vector<unsigned> types_;
    std::vector<std::optional<std::string>> values_;
};

// Builds one array parameter, element by element, for unnest().
class ArrayOf {
public:
    explicit ArrayOf(unsigned element_type);
    ArrayOf& Int(std::int64_t value);  // of the element's width: int2, int4 or int8
    ArrayOf& Bool(bool value);
    ArrayOf& Text(std::string_view value);
    ArrayOf& TextOrNull(std::string_view value);  // empty = NULL
    ArrayOf& At(Time value);
    ArrayOf& Uuid(std::uint64_t high, std::uint64_t low);
    template <class Tag>
    ArrayOf& Uuid(const RandomId<Tag>& id) {
        return Uuid(id.high(), id.low());
    }
    ArrayOf& Null();
    int size() const { return count_; }

    // Adds the array to `params`; the builder is used up.
    void AddTo(Params& params);
    // The same, but NULL where every element is: unnest() beside other lists fills up with NULLs,
    // and is spared a list.
    void AddUnlessNothing(Params& params);

private:
    void Put32(std::uint32_t value);
    void Element(std::string_view bytes);
    template <class Unsigned>
    void Number(Unsigned value);

    unsigned element_type_;
    int count_ = 0;
    int nulls_ = 0;
    std::string elements_;
};

// Whole columns at once.
void AddInts(Params& params, std::span<const std::int64_t> values);
void AddTexts(Params& params, std::span<const std::string> values);

}  // namespace stint::postgres
