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
    template <class T>
    void Get(std::optional<T>& value) {
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

// Found by argument-dependent lookup, so each lives in the namespace of its struct.
namespace stint {
template <class A>
void Fields(A& a, Error& x) {
    a(x.code, x.message);
}
}  // namespace stint

namespace stint::model {

// clang-format off
template <class A> void Fields(A& a, RetryPolicy& x) { a(x.kind, x.on, x.max_attempts, x.first_delay, x.max_delay, x.factor, x.jitter, x.delays); }
template <class A> void Fields(A& a, TaskError& x) { a(x.message, x.klass, x.stack, x.retryable); }
template <class A> void Fields(A& a, Debounce& x) { a(x.key, x.wait, x.max_wait); }
template <class A> void Fields(A& a, Throttle& x) { a(x.key, x.period); }
template <class A> void Fields(A& a, TypeDefaults& x) { a(x.type, x.queue, x.priority, x.retry, x.timeout, x.isolated); }
template <class A> void Fields(A& a, TypeRecord& x) { a(x.defaults, x.revision, x.updated_at); }
template <class A> void Fields(A& a, Progress& x) { a(x.step, x.done, x.total, x.message); }
template <class A> void Fields(A& a, InputMatch& x) { a(x.path, x.op, x.value); }
template <class A> void Fields(A& a, CountKey& x) { a(x.state, x.queue, x.type); }
template <class A> void Fields(A& a, NodeRecord& x) { a(x.id, x.hostname, x.last_seen); }
template <class A> void Fields(A& a, QueueSettings& x) { a(x.name, x.paused, x.cap, x.keep_complete, x.keep_dead, x.keep_cancelled); }
template <class A> void Fields(A& a, QueueRecord& x) { a(x.settings, x.waiting, x.running); }
template <class A> void Fields(A& a, TaskPage& x) { a(x.tasks, x.next); }
template <class A> void Fields(A& a, TaskFilter& x) {
    a(x.tenant, x.states, x.types, x.queues, x.tags, x.created_from, x.created_to, x.finished_from, x.finished_to, x.input, x.parent);
}
template <class A> void Fields(A& a, NewTask& x) {
    a(x.id, x.tenant, x.type, x.input, x.queue, x.priority, x.retry, x.timeout, x.delay, x.run_at, x.start_by, x.tags,
      x.idempotency_key, x.unique_key, x.unique_policy, x.debounce, x.throttle, x.parent, x.actor);
}
template <class A> void Fields(A& a, TaskEdit& x) {
    a(x.queue, x.priority, x.input, x.delay, x.run_at, x.start_by, x.retry, x.timeout, x.tags);
}
template <class A> void Fields(A& a, TaskRecord& x) {
    a(x.id, x.tenant, x.parent, x.type, x.queue, x.state, x.priority, x.input, x.output, x.error, x.reason, x.warning,
      x.type_known, x.cancel_requested, x.suspect, x.attempt, x.max_attempts, x.claim_no, x.generation, x.crash_count,
      x.tags, x.unique_key, x.idempotency_key, x.retry, x.timeout, x.progress, x.session, x.node, x.created_at, x.due_at,
      x.start_by, x.claimed_at, x.finished_at, x.expires_at, x.updated_at);
}
template <class A> void Fields(A& a, AttemptRecord& x) {
    a(x.task, x.claim_no, x.attempt, x.generation, x.session, x.node, x.started_at, x.finished_at, x.end, x.error,
      x.exit_code, x.exit_signal, x.stderr_tail, x.alone);
}
template <class A> void Fields(A& a, AuditEntry& x) {
    a(x.seq, x.task, x.tenant, x.from, x.to, x.event, x.attempt, x.generation, x.session, x.actor, x.reason, x.at);
}
template <class A> void Fields(A& a, SessionRecord& x) {
    a(x.id, x.node, x.hostname, x.pid, x.state, x.worker_state, x.slots, x.running, x.queues, x.types, x.version,
      x.started_at, x.renewed_at, x.lease_until);
}
// clang-format on

}  // namespace stint::model

namespace stint::store {

// clang-format off
template <class A> void Fields(A& a, SubmitReply& x) { a(x.kind, x.id, x.message, x.queue, x.due_now); }
template <class A> void Fields(A& a, NewSession& x) {
    a(x.id, x.hostname, x.pid, x.lease, x.slots, x.queues, x.types, x.version, x.exclusive);
}
template <class A> void Fields(A& a, Held& x) { a(x.task, x.token); }
template <class A> void Fields(A& a, ProgressUpdate& x) { a(x.task, x.token, x.progress); }
template <class A> void Fields(A& a, RenewRequest& x) {
    a(x.session, x.lease, x.worker_state, x.running, x.draining, x.held, x.progress);
}
template <class A> void Fields(A& a, RenewReply& x) { a(x.live, x.store_time, x.cancel_requested, x.lost); }
template <class A> void Fields(A& a, ClaimRequest& x) { a(x.session, x.limit, x.queues, x.types, x.suspect); }
template <class A> void Fields(A& a, Lease& x) {
    a(x.task, x.token, x.tenant, x.parent, x.type, x.queue, x.priority, x.input, x.attempt, x.claim_no, x.generation,
      x.crash_count, x.alone, x.retry, x.timeout, x.idempotency_key, x.claimed_at);
}
template <class A> void Fields(A& a, ClaimReply& x) { a(x.session_live, x.leases, x.next_due, x.suspects_waiting); }
template <class A> void Fields(A& a, Settlement& x) {
    a(x.task, x.token, x.session, x.kind, x.output, x.warning, x.error, x.delay, x.reason, x.end, x.exit_code,
      x.exit_signal, x.stderr_tail, x.crashed);
}
template <class A> void Fields(A& a, SettleReply& x) { a(x.kind, x.state); }
template <class A> void Fields(A& a, BackgroundFinish& x) {
    a(x.task, x.token, x.actor, x.success, x.output, x.error, x.jitter);
}
template <class A> void Fields(A& a, ReclaimRequest& x) { a(x.by, x.limit, x.timeout_grace, x.flights); }
template <class A> void Fields(A& a, Reclaimed& x) { a(x.task, x.from, x.hostname, x.to, x.end, x.suspect, x.reason); }
template <class A> void Fields(A& a, ReclaimReply& x) { a(x.expired, x.tasks, x.more); }
template <class A> void Fields(A& a, CancelReply& x) { a(x.kind, x.state); }
template <class A> void Fields(A& a, RetryReply& x) { a(x.kind, x.state); }
template <class A> void Fields(A& a, ListRequest& x) { a(x.filter, x.before, x.limit); }
template <class A> void Fields(A& a, AuditRequest& x) { a(x.task, x.after, x.limit); }
template <class A> void Fields(A& a, HousekeepRequest& x) { a(x.limit, x.session_kept); }
template <class A> void Fields(A& a, HousekeepReply& x) {
    a(x.expired_tasks, x.expired_keys, x.forgotten_sessions, x.dropped_periods, x.more);
}
template <class A> void Fields(A& a, FinishedTask& x) { a(x.id, x.state, x.output, x.error, x.reason, x.warning); }
template <class A> void Fields(A& a, Explanation& x) { a(x.condition, x.detail); }
template <class A> void Fields(A& a, StoreInfo& x) { a(x.kind, x.address, x.version, x.schema, x.durability, x.shared); }
template <class A> void Fields(A& a, CheckFinding& x) { a(x.what, x.detail, x.ok); }
// clang-format on

}  // namespace stint::store
