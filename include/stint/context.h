// What a running attempt may see and do.
#pragma once

#include <stint/codec.h>
#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>
#include <stint/transaction.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace stint {

// Why a running attempt was asked to stop.
enum class StopReason : std::uint8_t {
    kNone,
    kCancelled,  // somebody asked for it
    kTimeout,    // the attempt's own time is over
    kLeaseLost,  // the worker may no longer touch the task: another one may already run it
    kShutdown,   // the worker is stopping; the task will be run again elsewhere
};
std::string_view StopReasonName(StopReason reason);

// Valid only inside the handler call, on the thread that runs it.
class Context {
public:
    virtual ~Context() = default;

    virtual TaskId id() const = 0;
    virtual std::string_view type() const = 0;
    virtual TenantId tenant() const = 0;
    virtual int attempt() const = 0;  // 1 for the first try

    // For effects outside the store. The key is the same for every attempt of this task; the
    // fencing number grows with every claim, so an outside system can refuse an older one.
    virtual std::string_view idempotency_key() const = 0;
    virtual std::int64_t fencing_number() const = 0;

    // Hand this to whoever completes a Background task.
    virtual std::string completion_token() const = 0;

    // Requested when the attempt should end; look at it between pieces of work.
    virtual std::stop_token stop() const = 0;
    virtual StopReason why() const = 0;

    // Where the work is. Cheap: the last value rides on the next heartbeat.
    virtual void Progress(
        std::string_view step,
        std::int64_t done,
        std::optional<std::int64_t> total = {},
        std::string_view message = {}
    ) = 0;

    // Marks a successful completion as one to look at.
    virtual void Warn(std::string_view note) = 0;

    // Completes the task inside a transaction of the handler's own: its writes and the completion
    // happen together or not at all. kLeaseLost: roll back, the task is no longer ours. What the
    // handler returns afterwards is ignored if the transaction committed.
    template <Storable Out>
    Result<void> CompleteIn(Transaction& transaction, const Out& output) {
        return CompleteInBytes(transaction, Codec<Out>::Encode(output));
    }
    Result<void> CompleteIn(Transaction& transaction) {
        return CompleteInBytes(transaction, "null");
    }

private:
    virtual Result<void> CompleteInBytes(Transaction& transaction, std::string output) = 0;
};

}  // namespace stint
