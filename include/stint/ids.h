// Strong ids. A TaskId cannot be passed where a SessionId is expected, and neither is a bare
// number.
#pragma once

#include <array>
#include <charconv>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace stint {

// A positive 63-bit number with a meaning. Zero means "none".
template <class Tag>
class Id {
public:
    constexpr Id() = default;
    constexpr explicit Id(std::int64_t value) : value_(value) {}

    // Decimal digits only; nullopt for anything else, for zero and for what does not fit 63 bits.
    static constexpr std::optional<Id> Parse(std::string_view text) {
        std::int64_t value = 0;
        const char* end = text.data() + text.size();
        auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error != std::errc{} || rest != end || value <= 0) return std::nullopt;
        return Id(value);
    }

    constexpr std::int64_t value() const { return value_; }
    constexpr bool valid() const { return value_ > 0; }
    std::string ToString() const { return std::to_string(value_); }

    friend constexpr auto operator<=>(const Id&, const Id&) = default;

private:
    std::int64_t value_ = 0;
};

// 128 random bits with a meaning, written as 32 hexadecimal digits. All zero means "none".
template <class Tag>
class RandomId {
public:
    constexpr RandomId() = default;
    constexpr RandomId(std::uint64_t high, std::uint64_t low) : high_(high), low_(low) {}

    static std::optional<RandomId> Parse(std::string_view text) {
        if (text.size() != 32) return std::nullopt;
        RandomId id;
        if (!ParseHalf(text.substr(0, 16), id.high_) || !ParseHalf(text.substr(16), id.low_)) {
            return std::nullopt;
        }
        return id;
    }

    std::string ToString() const {
        static constexpr char kDigits[] = "0123456789abcdef";
        std::string text(32, '0');
        for (int i = 0; i < 16; ++i) {
            text[15 - i] = kDigits[(high_ >> (4 * i)) & 15];
            text[31 - i] = kDigits[(low_ >> (4 * i)) & 15];
        }
        return text;
    }

    constexpr bool valid() const { return high_ != 0 || low_ != 0; }
    constexpr std::uint64_t high() const { return high_; }
    constexpr std::uint64_t low() const { return low_; }

    friend constexpr auto operator<=>(const RandomId&, const RandomId&) = default;

private:
    static bool ParseHalf(std::string_view text, std::uint64_t& half) {
        auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), half, 16);
        return error == std::errc{} && rest == text.data() + text.size();
    }

    std::uint64_t high_ = 0;
    std::uint64_t low_ = 0;
};

using TaskId = Id<struct TaskIdTag>;                // what was asked
using TenantId = Id<struct TenantIdTag>;            // whose task it is; 1 is the default tenant
using NodeId = Id<struct NodeIdTag>;                // the label of a machine
using EventNo = Id<struct EventNoTag>;              // something that was published
using SessionId = RandomId<struct SessionIdTag>;    // one live worker process
using LeaseToken = RandomId<struct LeaseTokenTag>;  // the right to change a running task

inline constexpr TenantId kDefaultTenant{1};

}  // namespace stint

template <class Tag>
struct std::hash<stint::Id<Tag>> {
    std::size_t operator()(const stint::Id<Tag>& id) const noexcept {
        return std::hash<std::int64_t>{}(id.value());
    }
};
template <class Tag>
struct std::hash<stint::RandomId<Tag>> {
    std::size_t operator()(const stint::RandomId<Tag>& id) const noexcept {
        return static_cast<std::size_t>(id.high() ^ id.low());
    }
};
