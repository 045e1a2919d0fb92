// Result<T>: a value, or the reason why there is none. Spelt like std::expected.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace stint {

// Why a request was refused. Each code has one HTTP status and one exit code of the command line.
enum class Code : std::uint8_t {
    kInvalid,      // the request is wrong; the message names the field, the value and the cure
    kNotFound,     // no such task, queue, …
    kConflict,     // the state of the thing forbids it (already finished, other request, same key)
    kTimeout,      // the time given for waiting is over; the task goes on
    kCancelled,    // the task was cancelled, or the wait was
    kFailed,       // the task ended without success; the message is its error
    kUnavailable,  // the store cannot be reached now; nothing was changed
    kUnknown,      // the store went away in the middle: the change may or may not have happened
    kLeaseLost,    // the caller no longer holds the task; nothing was changed
    kLimit,        // a size or a count is over its limit
};

std::string_view CodeName(Code code);

struct Error {
    Code code = Code::kInvalid;
    std::string message;
};

// Thrown by Result::value() when there is none.
class BadResult : public std::runtime_error {
public:
    explicit BadResult(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    const Error& error() const { return error_; }

private:
    Error error_;
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & {
        if (!has_value()) throw BadResult(error());
        return std::get<0>(state_);
    }
    const T& value() const& {
        if (!has_value()) throw BadResult(error());
        return std::get<0>(state_);
    }
    T value() && {
        if (!has_value()) throw BadResult(error());
        return std::get<0>(std::move(state_));
    }
    const Error& error() const& { return std::get<1>(state_); }

    T& operator*() & { return *std::get_if<0>(&state_); }
    const T& operator*() const& { return *std::get_if<0>(&state_); }
    T* operator->() { return std::get_if<0>(&state_); }
    const T* operator->() const { return std::get_if<0>(&state_); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), failed_(true) {}

    bool has_value() const noexcept { return !failed_; }
    explicit operator bool() const noexcept { return has_value(); }
    void value() const {
        if (failed_) throw BadResult(error_);
    }
    const Error& error() const& { return error_; }

private:
    Error error_;
    bool failed_ = false;
};

}  // namespace stint
