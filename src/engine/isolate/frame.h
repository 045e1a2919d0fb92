// What parent and child of an isolated attempt say to each other, over one socket.
//
//   frame = u32 length of the rest, u8 kind, body (JSON, or nothing)
//   parent → child: kStart once, kBeat every kBeatEvery, kStop at most once
//   child → parent: kProgress and kAsk any number of times, then kOutcome or kOrphaned once, last
//   Each kAsk has its kAnswer before the next; the child's handler waits for it.
#pragma once

#include <stint/context.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "engine/isolate/spawn.h"
#include "engine/outcome.h"
#include "store/store.h"

namespace stint::engine::isolate {

inline constexpr Duration kBeatEvery = std::chrono::milliseconds{500};
inline constexpr Duration kSilence = std::chrono::seconds{5};  // then the child is an orphan
inline constexpr std::size_t kFrameMax = 16 << 20;
inline constexpr int kChildSocket = 3;
inline constexpr std::string_view kMarker = "--stint-isolated-attempt";
inline constexpr const char* kMarkerVariable = "STINT_ISOLATED_ATTEMPT";

struct Frame {
    enum class Kind : std::uint8_t {
        kStart = 1,
        kBeat,
        kStop,
        kProgress,
        kOutcome,
        kOrphaned,  // the parent was not heard; the child ends itself
        kAsk,
        kAnswer,
    } kind{};
    std::string body;
};

// How a child tells a parent that fell silent from a time in which it was frozen itself: then the
// parent was, too, or has been speaking all along, and gets the time to be heard.
class Silence {
public:
    explicit Silence(base::Instant now) : heard_(now), looked_(now) {}
    void Heard(base::Instant now) { heard_ = now; }
    // To be asked every kBeatEvery or so.
    bool TooLong(base::Instant now) {
        bool frozen = now - looked_ > kSilence / 2;
        looked_ = now;
        if (frozen) heard_ = now;
        return now - heard_ > kSilence;
    }

private:
    base::Instant heard_;
    base::Instant looked_;
};

// Collects bytes, gives out whole frames.
class FrameReader {
public:
    // Reads what is there without blocking. False: the other side is gone, or talks nonsense.
    bool Fill(const Fd& socket);
    std::optional<Frame> Next();

private:
    std::string bytes_;
    bool broken_ = false;
};

// Blocks until all is sent or `limit` is over. False: the other side is gone or does not read.
bool SendFrame(const Fd& socket, Frame::Kind kind, std::string_view body, Duration limit);

struct Start {
    store::Lease lease;  // what a Context shows
    std::uint64_t memory_bytes = 0;
};
std::string EncodeStart(const Start& start);
std::optional<Start> DecodeStart(std::string_view body);

std::string EncodeStop(StopReason reason);
StopReason DecodeStop(std::string_view body);

std::string EncodeProgress(const store::Progress& progress);
std::optional<store::Progress> DecodeProgress(std::string_view body);

// What a child's handler asks of the parent's Desk.
struct Question {
    enum class Kind : std::uint8_t { kId, kWaited, kFinished, kWrite, kResults } kind = Kind::kId;
    std::vector<TaskId> tasks;  // kFinished
    // kWrite; the parent knows the token.
    std::vector<ItemResult> items = {};
    std::optional<std::string> checkpoint = {};
};
struct Answer {
    std::string error;  // there was no answer to be had
    TaskId id;
    std::vector<model::WaitMember> waited;
    std::vector<store::FinishedTask> finished;  // as many as fit into a frame
    std::optional<ItemCounts> counts;           // kWrite; nullopt: the task is lost. kResults
    std::optional<std::string> checkpoint;      // kResults
};
std::string EncodeQuestion(const Question& question);
std::optional<Question> DecodeQuestion(std::string_view body);
std::string EncodeAnswer(const Answer& answer);
std::optional<Answer> DecodeAnswer(std::string_view body);

std::string EncodeResult(const AttemptResult& result);
std::optional<AttemptResult> DecodeResult(std::string_view body);

}  // namespace stint::engine::isolate
