// Store operations as bytes, for the owner's socket. One Fields() per struct serves both
// directions.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "store/store.h"

namespace stint::store::lite {

// What came is not what was agreed: the connection is of no more use.
class WireError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

template <class T>
concept Number = std::integral<T> || std::is_enum_v<T>;

class Encoder {
public:
    template <class... Args>
    void operator()(const Args&... args) {
        (Put(args), ...);
    }
    std::string Take() { return std::move(bytes_); }

private:
    void PutNumber(std::uint64_t number) {  // seven bits at a time
        for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
        bytes_.push_back(static_cast<char>(number));
    }
    template <Number T>
    void Put(T value) {
        auto number = static_cast<std::int64_t>(value);
        // Small negative numbers stay small.
        PutNumber(
            static_cast<std::uint64_t>(number) << 1 ^ static_cast<std::uint64_t>(number >> 63)
        );
    }
    void Put(double value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void Put(std::string_view text) {
        PutNumber(text.size());
        bytes_.append(text);
    }
    void Put(const std::string& text) { Put(std::string_view(text)); }
    template <class Tag>
    void Put(const Id<Tag>& id) {
        Put(id.value());
    }
    template <class Tag>
    void Put(const RandomId<Tag>& id) {
        for (std::uint64_t half : {id.high(), id.low()}) {
            bytes_.append(reinterpret_cast<const char*>(&half), sizeof half);
        }
    }
    void Put(Time time) { Put(std::int64_t{time.time_since_epoch().count()}); }
    void Put(Duration duration) { Put(std::int64_t{duration.count()}); }
    template <class T>
    void Put(const std::optional<T>& value) {
        Put(value.has_value());
        if (value) Put(*value);
    }
    template <class T>
    void Put(const std::vector<T>& values) {
        PutNumber(values.size());
        for (const T& value : values) Put(value);
    }
    template <class K, class V>
    void Put(const std::map<K, V>& values) {
        PutNumber(values.size());
        for (const auto& [key, value] : values) (*this)(key, value);
    }
    template <class... T>
    void Put(const std::variant<T...>& value) {
        Put(value.index());
        std::visit([this](const auto& one) { this->Put(one); }, value);
    }
    template <class T>
    void Put(const Result<T>& result) {
        Put(result.has_value());
        if (!result) {
            Put(result.error());
        } else if constexpr (!std::is_void_v<T>) {
            Put(*result);
        }
    }
    template <class T>
    requires std::is_class_v<T>
    void Put(const T& value) {
        Fields(*this, const_cast<T&>(value));  // Fields only reads through an Encoder
    }

    std::string bytes_;
};

class Decoder {
public:
    explicit Decoder(std::string_view bytes) : left_(bytes) {}

    template <class... Args>
    void operator()(Args&... args) {
        (Get(args), ...);
    }
    void End() const {
        if (!left_.empty()) throw WireError("bytes are left over");
    }

private:
    std::string_view Cut(std::size_t size) {
        if (size > left_.size()) throw WireError("the message ends early");
        std::string_view part = left_.substr(0, size);
        left_.remove_prefix(size);
        return part;
    }
    std::uint64_t GetNumber() {
        std::uint64_t number = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            auto byte = static_cast<unsigned char>(Cut(1).front());
            number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
            if (byte < 0x80) return number;
        }
        throw WireError("a number is too long");
    }
    // Of things that take at least a byte each: never more than there are bytes.
    std::size_t GetCount() {
        std::uint64_t count = GetNumber();
        if (count > left_.size()) throw WireError("a count is too large");
        return count;
    }
    template <Number T>
    void Get(T& value) {
        std::uint64_t number = GetNumber();
        value = static_cast<T>(static_cast<std::int64_t>(number >> 1 ^ (~(number & 1) + 1)));
    }
    void Get(double& value) { std::memcpy(&value, Cut(sizeof value).data(), sizeof value); }
    void Get(std::string& text) { text = Cut(GetCount()); }
    template <class Tag>
    void Get(Id<Tag>& id) {
        std::int64_t value = 0;
        Get(value);
        id = Id<Tag>(value);
    }
    template <class Tag>
    void Get(RandomId<Tag>& id) {
        std::uint64_t halves[2];
        std::memcpy(halves, Cut(sizeof halves).data(), sizeof halves);
        id = RandomId<Tag>(halves[0], halves[1]);
    }
    void Get(Time& time) {
        std::int64_t count = 0;
        Get(count);
        time = Time(Time::duration(count));
    }
    void Get(Duration& duration) {
        std::int64_t count = 0;
        Get(count);
        duration = Duration(count);
    }
    // Not inlined: g++ 12 would believe then that it reads what is not there.
    template <class T>
    [[gnu::noinline]] void Get(std::optional<T>& value) {
        bool there = false;
        Get(there);
        value.reset();
        if (there) Get(value.emplace());
    }
    template <class T>
    void Get(std::vector<T>& values) {
        values.clear();
        for (std::size_t count = GetCount(); count > 0; --count) Get(values.emplace_back());
    }
    template <class K, class V>
    void Get(std::map<K, V>& values) {
        values.clear();
        for (std::size_t count = GetCount(); count > 0; --count) {
            K key{};
            Get(key);
            Get(values[key]);
        }
    }
    template <class... T>
    void Get(std::variant<T...>& value) {
        std::size_t which = 0;
        Get(which);
        if (which >= sizeof...(T)) throw WireError("no such alternative");
        GetOneOf(value, which, std::index_sequence_for<T...>());
    }
    template <class V, std::size_t... I>
    void GetOneOf(V& value, std::size_t which, std::index_sequence<I...>) {
        ((which == I ? Get(value.template emplace<I>()) : void()), ...);
    }
    template <class T>
    void Get(Result<T>& result) {
        bool good = false;
        Get(good);
        if (!good) {
            Error error;
            Get(error);
            result = error;
        } else if constexpr (!std::is_void_v<T>) {
            T value{};
            Get(value);
            result = std::move(value);
        } else {
            result = {};
        }
    }
    template <class T>
    requires std::is_class_v<T>
    void Get(T& value) { Fields(*this, value); }

    std::string_view left_;
};

}  // namespace stint::store::lite
