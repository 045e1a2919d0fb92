// The parent's side of an isolated attempt.
#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/result.h"
#include "base/thread.h"
#include "engine/isolate/frame.h"
#include "engine/isolate/isolate.h"
#include "engine/isolate/keeper.h"
#include "engine/isolate/spawn.h"
#include "engine/isolate/tail.h"
#include "model/limits.h"

namespace stint::engine::isolate {

namespace {

constexpr Duration kStartLimit = std::chrono::seconds{30};
constexpr Duration kAnswerLimit = std::chrono::seconds{30};
constexpr Duration kLeaseLostGrace = std::chrono::milliseconds{500};

struct Wires {
    Fd socket;
    Fd output;  // both of the child's standard streams
};

Child Launch(const Isolation& isolation, Wires& wires) {
    auto [ours, theirs] = MakeSocketPair();
    Pipe output = MakePipe();
    SpawnRequest request;
    request.file = "/proc/self/exe";
    request.argv = {"stint-isolated", std::string(kMarker)};
    request.env.emplace();
    for (char** entry = environ; *entry != nullptr; ++entry) request.env->emplace_back(*entry);
    request.env->push_back(fmt::format("{}=1", kMarkerVariable));
    request.fds = {{output.write.get(), 1}, {output.write.get(), 2}, {theirs.get(), kChildSocket}};
    // The memory limit is set by the child itself, once it is up: before, it would also have to fit
    // what the dynamic linker and sanitizers reserve.
    request.limits.cpu_time = isolation.cpu_time;
    Child child = Child::Spawn(request);
    SetNonBlocking(output.read);
    wires.socket = std::move(ours);
    wires.output = std::move(output.read);
    return child;
}

void Drain(const Fd& output, Tail& tail) {
    char chunk[8192];
    for (;;) {
        ssize_t got = read(output.get(), chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return;
        tail.Append({chunk, static_cast<std::size_t>(got)});
    }
}

class Conversation {
public:
    Conversation(const Attempt& attempt, AttemptContext& context, Duration grace)
        : attempt_(attempt), context_(context), grace_(grace) {}

    AttemptResult Hold() {
        const Isolation& isolation = attempt_.handler->isolation;
        Child child = Launch(isolation, wires_);
        StopEvent stop(attempt_.stop_token());
        Start start{attempt_.lease, isolation.memory_bytes};
        // A child that does not take it within the time is too slow for this machine now.
        if (!SendFrame(wires_.socket, Frame::Kind::kStart, EncodeStart(start), kStartLimit)) {
            orphaned_ = true;
            child.SignalGroup(SIGKILL);
        }
        base::Instant next_beat = base::SystemClock().Now() + kBeatEvery;
        std::optional<Keeper> keeper;
        for (bool ended = false; !ended;) {
            if (!keeper && attempt_.stop_token().stop_requested()) {
                bool lost = attempt_.why() == StopReason::kLeaseLost;
                keeper.emplace(child, lost ? std::min(grace_, kLeaseLostGrace) : grace_);
                Send(Frame::Kind::kStop, EncodeStop(attempt_.why()), Duration{100});
                keeper->Begin(true);
            }
            if (base::SystemClock().Now() >= next_beat) {
                Send(Frame::Kind::kBeat, {}, Duration{0});
                next_beat = base::SystemClock().Now() + kBeatEvery;
            }
            if (keeper) keeper->Advance();
            ended = Wait(child, stop, keeper ? keeper->Milliseconds(kBeatEvery) : 100);
        }
        // Its last words may still be in the pipes.
        Listen();
        Exit exit = child.Collect();
        Drain(wires_.output, tail_);
        return Judge(exit, isolation);
    }

private:
    // True when the child has ended.
    bool Wait(const Child& child, const StopEvent& stop, int milliseconds) {
        std::array<pollfd, 4> fds{{
            {child.pidfd(), POLLIN, 0},
            {socket_open_ ? wires_.socket.get() : -1, POLLIN, 0},
            {wires_.output.get(), POLLIN, 0},
            {attempt_.stop_token().stop_requested() ? -1 : stop.fd(), POLLIN, 0},
        }};
        if (poll(fds.data(), fds.size(), milliseconds) <= 0) return false;
        if (fds[1].revents != 0) Listen();
        if (fds[2].revents != 0) {
            Drain(wires_.output, tail_);
            if ((fds[2].revents & POLLIN) == 0) wires_.output.Close();  // hung up
        }
        return fds[0].revents != 0;
    }

    void Listen() {
        if (!socket_open_) return;
        socket_open_ = reader_.Fill(wires_.socket);
        while (auto frame = reader_.Next()) {
            if (frame->kind == Frame::Kind::kProgress) {
                if (auto p = DecodeProgress(frame->body)) {
                    context_.Progress(p->step, p->done, p->total, p->message);
                }
            } else if (frame->kind == Frame::Kind::kAsk) {
                Answer(frame->body);
            } else if (frame->kind == Frame::Kind::kOutcome) {
                result_ = DecodeResult(frame->body);
            } else if (frame->kind == Frame::Kind::kOrphaned) {
                orphaned_ = true;
            }
        }
    }

    // Aside: the store may be slow, and the child must hear of us meanwhile.
    void Answer(const std::string& body) {
        auto question = DecodeQuestion(body);
        if (!question) return;
        answering_ = base::StartThread([this, question = std::move(*question)] {
            std::string answer = EncodeAnswer(Ask(question));
            Send(Frame::Kind::kAnswer, answer, kAnswerLimit);
        });
    }
    isolate::Answer Ask(const Question& question) {
        isolate::Answer answer;
        try {
            Desk& desk = context_.desk();
            switch (question.kind) {
                case Question::Kind::kId:
                    answer.id = desk.TakeId();
                    break;
                case Question::Kind::kWaited:
                    answer.waited = desk.Waited(attempt_.lease.task);
                    break;
                case Question::Kind::kFinished:
                    answer.finished = desk.Finished(question.tasks);
                    break;
                case Question::Kind::kWrite: {
                    store::ResultWrite write{
                        .by = {}, .items = question.items, .checkpoint = question.checkpoint};
                    answer.counts = context_.findings().Write(write);
                    break;
                }
                case Question::Kind::kResults: {
                    model::ResultSummary summary = context_.findings().Look();
                    answer.counts = summary.items;
                    if (summary.checkpoint) answer.checkpoint = summary.checkpoint->json;
                    break;
                }
            }
        } catch (const std::exception& error) {
            answer.error = error.what();
        }
        return answer;
    }
    bool Send(Frame::Kind kind, std::string_view body, Duration limit) {
        std::lock_guard guard(send_mutex_);
        return SendFrame(wires_.socket, kind, body, limit);
    }

    AttemptResult Judge(const Exit& exit, const Isolation& isolation) {
        AttemptResult result;
        if (result_) {
            result = std::move(*result_);
            if (!result.warning.empty()) context_.Warn(result.warning);
        } else if (orphaned_) {
            result.end = Orphaned{};
        } else if (exit.signal == SIGXCPU || KilledForCpu(exit, isolation)) {
            result.end = model::TaskError{
                fmt::format("used more than {} ms of processor time", isolation.cpu_time.count()),
                "cpu_limit",
                {},
                true};
        } else if (exit.signal) {
            result.end =
                Crashed{fmt::format("its process was killed by {}", SignalName(*exit.signal))};
        } else {
            result.end = Crashed{fmt::format(
                "its process exited with code {} and no outcome", exit.code.value_or(-1)
            )};
        }
        if (!result_) {
            result.evidence.exit_signal = exit.signal;
            result.evidence.exit_code = exit.code;
        }
        result.evidence.stderr_tail = std::move(tail_).Take();
        return result;
    }

    // The hard limit kills; SIGXCPU came a second before and was ignored.
    bool KilledForCpu(const Exit& exit, const Isolation& isolation) const {
        return exit.signal == SIGKILL && attempt_.why() == StopReason::kNone &&
               isolation.cpu_time > Duration::zero() && exit.cpu_time >= isolation.cpu_time;
    }

    const Attempt& attempt_;
    AttemptContext& context_;
    const Duration grace_;
    Wires wires_;
    FrameReader reader_;
    bool socket_open_ = true;
    bool orphaned_ = false;  // the child could not hear us, or we could not reach it
    Tail tail_{model::limits::kStderrTail};
    std::optional<AttemptResult> result_;
    std::mutex send_mutex_;
    std::jthread answering_;  // last: it uses the others
};

}  // namespace

AttemptResult RunChild(const Attempt& attempt, AttemptContext& context, Duration grace) {
    CHECK(attempt.handler && attempt.handler->isolation.enabled);
    return Conversation(attempt, context, grace).Hold();
}

}  // namespace stint::engine::isolate
