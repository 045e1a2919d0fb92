// What a running attempt may see and do.
#pragma once

#include <stint/codec.h>
#include <stint/ids.h>
#include <stint/item.h>
#include <stint/result.h>
#include <stint/submit_options.h>
#include <stint/task.h>
#include <stint/time.h>
#include <stint/transaction.h>
#include <stint/wait.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

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

    // The work needs units of a resource that its type and its submit did not name. Returns when
    // the attempt holds them. Otherwise the attempt ends here, by an exception of no public type
    // that is not to be caught: the slot is given back, the attempt does not count, and the task
    // starts again, from the beginning of its handler, when it can have all that it needs. So
    // require first, then work. Throws std::invalid_argument for a name or a number that cannot be.
    virtual void Require(std::string_view resource, int units = 1) = 0;

    // ---- subtasks ----

    virtual Stage stage() const = 0;

    // Another task, which this one will wait for: return Blocked. It is made then, together with
    // the wait; its id is known at once. Throws std::invalid_argument for what can never be
    // submitted, and stint::Retryable when the store cannot be asked for an id.
    template <class In, class Out>
    TaskId Subtask(
        const Task<In, Out>& task,
        const std::type_identity_t<In>& input,
        const SubmitOptions& options = {}
    ) {
        return AddSubtask(task.name, task.defaults, Codec<In>::Encode(input), options);
    }
    template <class Out>
    TaskId Subtask(const Task<void, Out>& task, const SubmitOptions& options = {}) {
        return AddSubtask(task.name, task.defaults, "null", options);
    }

    // What this task has waited for last, in the order in which it was asked for.
    virtual const std::vector<WaitedTask>& waited() = 0;
    // Nothing: it is not complete.
    template <class In, class Out>
    std::optional<Out> OutputOf(const Task<In, Out>&, TaskId subtask) {
        std::optional<std::string> output = OutputBytes(subtask);
        if (!output) return std::nullopt;
        return Codec<Out>::Decode(*output);
    }
    // Of all of this type that are complete, in the order of waited().
    template <class In, class Out>
    std::vector<Out> OutputsOf(const Task<In, Out>& task) {
        std::vector<Out> outputs;
        for (const std::string& output : OutputsBytes(task.name)) {
            outputs.push_back(Codec<Out>::Decode(output));
        }
        return outputs;
    }
    // Nothing: it is complete, or not finished.
    virtual std::optional<SubtaskFailure> FailureOf(TaskId subtask) = 0;

    // ---- results of single objects, and where the work is ----

    // What became of one object. Written in batches, only while the task is this attempt's, and
    // kept whatever becomes of the attempt. Throws std::invalid_argument for what is over a limit,
    // stint::Retryable when it cannot be written.
    virtual void Item(ItemResult item) = 0;
    // Writes those that are not yet written; what the task has now, with those of attempts before.
    virtual ItemCounts FlushItems() = 0;

    // Saves where the work is, with the items before it; the next attempt gets it back, after a
    // failure, a crash, a wait or an operator's retry. At most 64 KiB of JSON. Throws as Item()
    // does: an attempt that has lost its task must not go on.
    template <Storable Mark>
    void Checkpoint(const Mark& mark) {
        SaveCheckpoint(Codec<Mark>::Encode(mark));
    }
    // The last that was saved; nothing: none was.
    template <Storable Mark>
    std::optional<Mark> checkpoint() {
        std::optional<std::string> saved = LoadCheckpoint();
        if (!saved) return std::nullopt;
        return Codec<Mark>::Decode(*saved);
    }

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
    virtual TaskId AddSubtask(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) = 0;
    virtual std::optional<std::string> OutputBytes(TaskId subtask) = 0;
    virtual std::vector<std::string> OutputsBytes(std::string_view type) = 0;
    virtual Result<void> CompleteInBytes(Transaction& transaction, std::string output) = 0;
    virtual void SaveCheckpoint(std::string json) = 0;
    virtual std::optional<std::string> LoadCheckpoint() = 0;
};

}  // namespace stint
