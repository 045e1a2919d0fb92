// The child's side: the program runs again, finds the marker, and runs one attempt.
#include <poll.h>
#include <stint/isolate.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
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
#include "engine/acting.h"
#include "engine/findings.h"
#include "engine/isolate/frame.h"
#include "engine/isolate/isolate.h"
#include "engine/require.h"
#include "engine/subtasks.h"
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

// Sends what the child has to say, one at a time.
class Voice {
public:
    explicit Voice(const isolate::Fd& socket) : socket_(socket) {}
    bool Say(Frame::Kind kind, std::string_view body, Duration limit) {
        std::lock_guard guard(mutex_);
        return isolate::SendFrame(socket_, kind, body, limit);
    }
    // Never waits: somebody else may be speaking.
    void TrySay(Frame::Kind kind) {
        std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock) isolate::SendFrame(socket_, kind, {}, Duration{0});
    }

private:
    const isolate::Fd& socket_;
    std::mutex mutex_;
};

// Asks the parent, who has the store. One question at a time, on the handler's thread; a parent
// that is gone ends the process.
class ParentDesk final : public engine::Desk {
public:
    explicit ParentDesk(Voice& voice) : voice_(voice) {}

    TaskId TakeId() override { return Ask({.kind = isolate::Question::Kind::kId, .tasks = {}}).id; }
    std::vector<model::WaitMember> Waited(TaskId) override {
        return Ask({.kind = isolate::Question::Kind::kWaited, .tasks = {}}).waited;
    }
    std::vector<store::FinishedTask> Finished(std::span<const TaskId> tasks) override {
        std::vector<TaskId> asked(tasks.begin(), tasks.end());
        return Ask({.kind = isolate::Question::Kind::kFinished, .tasks = std::move(asked)})
            .finished;
    }

    std::optional<ItemCounts> WriteResults(const store::ResultWrite& write) override {
        return Ask({.kind = isolate::Question::Kind::kWrite,
                    .tasks = {},
                    .items = write.items,
                    .checkpoint = write.checkpoint})
            .counts;
    }
    model::ResultSummary Results(TaskId) override {
        isolate::Answer answer = Ask({.kind = isolate::Question::Kind::kResults, .tasks = {}});
        model::ResultSummary summary;
        summary.items = answer.counts.value_or(ItemCounts{});
        if (answer.checkpoint) summary.checkpoint = model::Checkpoint{.json = *answer.checkpoint};
        return summary;
    }

    void Hear(const std::string& body) {
        std::lock_guard guard(mutex_);
        answer_ = isolate::DecodeAnswer(body).value_or(isolate::Answer{
            .error = "the answer could not be read"});
        heard_.notify_one();
    }

private:
    isolate::Answer Ask(const isolate::Question& question) {
        std::unique_lock lock(mutex_);
        answer_.reset();
        if (!voice_.Say(Frame::Kind::kAsk, isolate::EncodeQuestion(question), kSendLimit)) {
            throw Retryable("the parent of this isolated attempt does not listen");
        }
        heard_.wait(lock, [this] { return answer_.has_value(); });
        if (!answer_->error.empty()) throw Retryable(answer_->error);
        return std::move(*answer_);
    }

    Voice& voice_;
    std::mutex mutex_;
    std::condition_variable heard_;
    std::optional<isolate::Answer> answer_;  // guarded by mutex_
};

// What a handler sees in the child. Only the parent touches the store.
class ChildContext final : public Context {
public:
    ChildContext(const isolate::Start& start, const isolate::Fd& socket)
        : lease_(start.lease),
          voice_(socket),
          desk_(std::make_shared<ParentDesk>(voice_)),
          subtasks_(desk_, lease_.task, lease_.tenant),
          findings_(desk_, lease_) {}

    void Require(std::string_view resource, int units) override {
        requirements_.Require(lease_.placement.needs, resource, units);
    }
    Stage stage() const override { return lease_.stage; }
    const std::vector<WaitedTask>& waited() override { return subtasks_.Waited(); }
    std::optional<SubtaskFailure> FailureOf(TaskId subtask) override {
        return subtasks_.Failure(subtask);
    }
    void Item(ItemResult item) override { findings_.Add(std::move(item)); }
    ItemCounts FlushItems() override { return findings_.Flush(); }
    void Hear(const std::string& answer) { desk_->Hear(answer); }

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
        std::string progress = isolate::EncodeProgress(
            {engine::CutText(step, limits::kProgressText),
             done,
             total,
             engine::CutText(message, limits::kProgressText)}
        );
        voice_.Say(Frame::Kind::kProgress, progress, kSendLimit);
    }
    void Warn(std::string_view note) override { warning_ = note.empty() ? "warning" : note; }

    void RequestStop(StopReason why) {
        StopReason none = StopReason::kNone;
        why_.compare_exchange_strong(none, why);
        stop_.request_stop();
    }
    void Report(engine::AttemptResult result) {
        WriteRest(result);
        result.warning = warning_.empty() ? "" : engine::CutText(warning_, limits::kReason);
        result.subtasks = subtasks_.Take();
        result.required = requirements_.Take();
        Bound(result);
        voice_.Say(Frame::Kind::kOutcome, isolate::EncodeResult(result), kOutcomeSendLimit);
    }
    // The last words of one that does not hear its parent. Never waits: a handler may be sending.
    void SayOrphaned() { voice_.TrySay(Frame::Kind::kOrphaned); }

private:
    // The parent judges them; here they only have to be written.
    void WriteRest(engine::AttemptResult& result) {
        if (!findings_.unwritten()) return;
        try {
            findings_.Flush();
        } catch (...) {
            if (std::holds_alternative<Outcome<std::string>>(result.end)) {
                result.end = engine::Classify(std::current_exception());
            }
        }
    }

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

    TaskId AddSubtask(
        std::string_view type,
        const TaskDefaults& defaults,
        std::string input,
        const SubmitOptions& options
    ) override {
        return subtasks_.Add(type, defaults, std::move(input), options);
    }
    std::optional<std::string> OutputBytes(TaskId subtask) override {
        return subtasks_.Output(subtask);
    }
    std::vector<std::string> OutputsBytes(std::string_view type) override {
        return subtasks_.Outputs(type);
    }
    Result<void> CompleteInBytes(Transaction&, std::string) override {
        return Error{
            Code::kInvalid,
            "an isolated handler has no store: return its output, the parent completes the task"};
    }

    void SaveCheckpoint(std::string json) override { findings_.SaveCheckpoint(std::move(json)); }
    std::optional<std::string> LoadCheckpoint() override { return findings_.LoadCheckpoint(); }

    const store::Lease lease_;
    Voice voice_;
    const std::shared_ptr<ParentDesk> desk_;
    engine::Subtasks subtasks_;          // touched by the handler's thread only
    engine::Findings findings_;          // touched by the handler's thread only
    engine::Requirements requirements_;  // touched by the handler's thread only
    std::string warning_;                // touched by the handler's thread only
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
            } else if (frame->kind == Frame::Kind::kAnswer) {
                context.Hear(frame->body);
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
        engine::Acting acting(context.id(), nullptr);
        result.end = (*handler)(context, input);
    } catch (...) {
        result.end = engine::EndOf(std::current_exception());
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
