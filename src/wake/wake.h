// Hints that something changed. A hint may be lost, never wrong: polling is the truth.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <stint/ids.h>

namespace stint::wake {

// What a hint says. Kept apart so that a finished task does not wake claimers.
struct Hint {
    enum class Kind : std::uint8_t {
        kTaskAvailable,
        kTaskFinished,
        kEventPublished,
    };
    Kind kind = Kind::kTaskAvailable;
    std::string queue;         // kTaskAvailable
    TaskId task;               // kTaskFinished
    bool others_know = false;  // other processes have been told already
};

// Delivers hints within a process (Local) or across processes (PostgreSQL NOTIFY, SQLite's socket).
// Thread-safe. Listeners are called on the waker's own thread or on the signaller's; they only set
// flags and notify condition variables.
class Wake {
public:
    virtual ~Wake() = default;
    virtual void Signal(std::span<const Hint> hints) = 0;
    // Returns a number for Unsubscribe.
    virtual int Subscribe(std::function<void(const Hint&)> listener) = 0;
    virtual void Unsubscribe(int subscription) = 0;
    // Whether hints of other processes arrive now, as far as is known.
    virtual bool Hears() const { return true; }
};

}  // namespace stint::wake
