// The child's side: the program runs again, finds the marker, and runs one attempt.
#include <poll.h>
#include <stint/isolate.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread.h"
#include "engine/isolate/frame.h"
#include "engine/isolate/isolate.h"
#include "engine/text.h"
#include "model/limits.h"

namespace stint {

namespace {

namespace isolate = engine::isolate;
namespace limits = model::limits;
using isolate::Frame;

std::atomic<bool> prepared{false};
constexpr int kOrphaned = 113;  // exit code: the parent is gone
constexpr Duration kSendLimit = std::chrono::seconds{5};
constexpr Duration kOutcomeSendLimit = std::chrono::minutes{1};  // an orphan is ended before

// What a handler sees in the child. Only the parent touches the store.
class ChildContext final : public Context {
public:
    ChildContext(const isolate::Start& start, const isolate::Fd& socket)
        : lease_(start.lease), socket_(socket) {}

    TaskId id() const override { return lease_.task; }
    std::string_view type() const override { return lease_.type; }
    TenantId tenant() const override { return lease_.tenant; }
    int attempt() const override { return lease_.attempt; }
    std::string_view idempotency_key() const override { return lease_.idempotency_key; }
    std::int64_t fencing_number() const override { return lease_.claim_no; }
    std::string completion_token() const override { return lease_.token.ToString(); }
    std::stop_token stop() const override { return stop_.get_token(); }
    StopReason why() const override { return why_.load(); }
    void Progress(
        std::string_view step,
        std::int64_t done,
        std::optional<std::int64_t> total,
        std::string_view message
    ) override {
        std::lock_guard guard(send_mutex_);
        isolate::SendFrame(
            socket_,
            Frame::Kind::kProgress,
            isolate::EncodeProgress(
                {engine::CutText(step, limits::kProgressText),
                 done,
                 total,
                 engine::CutText(message, limits::kProgressText)}
            ),
            kSendLimit
        );
    }
    void Warn(std::string_view note) override { warning_ = note.empty() ? "warning" : note; }

    void RequestStop(StopReason why) {
        StopReason none = StopReason::kNone;
        why_.compare_exchange_strong(none, why);
        stop_.request_stop();
    }
    void Report(engine::AttemptResult result) {
        result.warning = warning_.empty() ? "" : engine::CutText(warning_, limits::kReason);
        Bound(result);
        std::lock_guard guard(send_mutex_);
        isolate::SendFrame(
            socket_, Frame::Kind::kOutcome, isolate::EncodeResult(result), kOutcomeSendLimit
        );
    }
    // The last words of one that does not hear its parent. Never waits: a handler may be sending.
    void SayOrphaned() {
        std::unique_lock lock(send_mutex_, std::try_to_lock);
        if (lock) isolate::SendFrame(socket_, Frame::Kind::kOrphaned, {}, Duration{0});
    }

private:
    // Whatever a handler returns must fit into a frame; what would be refused anyway is refused
    // here, with the same words.
    static void Bound(engine::AttemptResult& result) {
        auto* outcome = std::get_if<Outcome<std::string>>(&result.end);
        if (outcome == nullptr) return;
        if (const auto* output = std::get_if<0>(outcome)) {
            if (auto error = engine::TooLarge(*output)) result.end = std::move(*error);
        } else if (auto* background = std::get_if<Background>(outcome)) {
            background->reason = engine::CutText(background->reason, limits::kReason);
        } else if (const auto* failed = std::get_if<Failed>(outcome)) {
            model::TaskError error = engine::ToError(*failed);
            result.end = std::move(error);
        }
    }

    Result<void> CompleteInBytes(Transaction&, std::string) override {
        return Error{
            Code::kInvalid,
            "an isolated handler has no store: return its output, the parent completes the task"};
    }

    const store::Lease lease_;
    const isolate::Fd& socket_;
    std::mutex send_mutex_;
    std::string warning_;  // touched by the handler's thread only
    std::stop_source stop_;
    std::atomic<StopReason> why_{StopReason::kNone};
};

[[noreturn]] void DieWithGroup() {
    kill(0, SIGKILL);  // our group is ours alone
    _exit(kOrphaned);
}

// Listens to the parent; when it is gone or falls silent nobody may rely on this attempt any more,
// nor on what it started.
void Listen(isolate::FrameReader& reader, const isolate::Fd& socket, ChildContext& context) {
    base::Clock& clock = base::SystemClock();
    isolate::Silence silence(clock.Now());
    for (;;) {
        pollfd readable{socket.get(), POLLIN, 0};
        poll(&readable, 1, static_cast<int>(isolate::kBeatEvery.count()));
        bool there = readable.revents == 0 || reader.Fill(socket);
        while (auto frame = reader.Next()) {
            silence.Heard(clock.Now());
            if (frame->kind == Frame::Kind::kStop) {
                context.RequestStop(isolate::DecodeStop(frame->body));
            }
        }
        if (!there) DieWithGroup();
        if (silence.TooLong(clock.Now())) {
            context.SayOrphaned();
            DieWithGroup();
        }
    }
}

std::optional<isolate::Start> WaitForStart(
    isolate::FrameReader& reader, const isolate::Fd& socket
) {
    // However long it takes: nothing has begun, and a parent that is gone ends it.
    for (;;) {
        pollfd readable{socket.get(), POLLIN, 0};
        poll(&readable, 1, -1);
        bool there = readable.revents == 0 || reader.Fill(socket);
        if (auto frame = reader.Next()) {
            if (frame->kind == Frame::Kind::kStart) return isolate::DecodeStart(frame->body);
        }
        if (!there) return std::nullopt;
    }
}

engine::AttemptResult Call(
    const HandlerRegistry& handlers, ChildContext& context, const std::string& input
) {
    engine::AttemptResult result;
    try {
        const detail::ErasedHandler* handler = handlers.Find(context.type());
        if (handler == nullptr) {
            throw Permanent(
                "the isolated child has no handler for " + std::string(context.type()) +
                ": register it in the function passed to stint::RunIsolated"
            );
        }
        result.end = (*handler)(context, input);
    } catch (...) {
        result.end = engine::Classify(std::current_exception());
    }
    return result;
}

void LimitMemory(std::uint64_t bytes) {
    if (bytes == 0) return;
    rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

struct HandlerRegistry::Impl {
    std::map<std::string, detail::ErasedHandler, std::less<>> handlers;
};

HandlerRegistry::HandlerRegistry() : impl_(std::make_unique<Impl>()) {
}
HandlerRegistry::~HandlerRegistry() = default;

void HandlerRegistry::Bind(std::string_view name, detail::ErasedHandler handler) {
    if (!impl_->handlers.emplace(name, std::move(handler)).second) {
        throw std::invalid_argument(fmt::format("task type \"{}\" has a handler already", name));
    }
}

const detail::ErasedHandler* HandlerRegistry::Find(std::string_view name) const {
    auto found = impl_->handlers.find(name);
    return found == impl_->handlers.end() ? nullptr : &found->second;
}

bool IsIsolatedChild(int argc, char** argv) {
    prepared = true;
    // tidy: allow env, because the parent's mark comes this way and no other
    const char* mark = std::getenv(isolate::kMarkerVariable);
    return argc >= 2 && argv[1] == isolate::kMarker && mark != nullptr;
}

int RunIsolated(const std::function<void(HandlerRegistry&)>& register_handlers) {
    unsetenv(isolate::kMarkerVariable);  // not for what the handler starts
    isolate::Fd socket(isolate::kChildSocket);
    isolate::FrameReader reader;
    auto start = WaitForStart(reader, socket);
    if (!start) return kOrphaned;
    ChildContext context(*start, socket);
    // Before any code of the host's. Never joined: it ends with the process.
    base::StartThread([&] { Listen(reader, socket, context); }).detach();
    HandlerRegistry handlers;
    register_handlers(handlers);
    LimitMemory(start->memory_bytes);
    context.Report(Call(handlers, context, start->lease.input));
    // No destructors: threads of the handler may still run.
    std::fflush(nullptr);
    _exit(0);
}

namespace engine::isolate {

bool Prepared() {
    return prepared.load();
}

}  // namespace engine::isolate

}  // namespace stint
