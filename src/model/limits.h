// Every limit of the engine, in one place. What is over a limit is refused with the limit's name.
#pragma once

#include <cstddef>
#include <cstdint>

#include <stint/time.h>

namespace stint::model::limits {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Names and texts, in bytes.
inline constexpr std::size_t kTypeName = 128;
inline constexpr std::size_t kQueueName = 128;
inline constexpr std::size_t kKey = 256;  // idempotency, unique, debounce and throttle keys
inline constexpr std::size_t kTag = 64;
inline constexpr std::size_t kTagsPerTask = 16;
inline constexpr std::size_t kNodeLabel = 128;
inline constexpr std::size_t kActor = 128;
inline constexpr std::size_t kReason = 1024;
inline constexpr std::size_t kInput = 1 << 20;
inline constexpr std::size_t kOutput = 1 << 20;
inline constexpr std::size_t kErrorMessage = 8 << 10;
inline constexpr std::size_t kErrorStack = 8 << 10;
inline constexpr std::size_t kErrorClass = 256;
inline constexpr std::size_t kProgressText = 512;
inline constexpr std::size_t kStderrTail = 8 << 10;
inline constexpr std::size_t kJsonDepth = 64;
inline constexpr std::size_t kSpoolBytes = 64
                                           << 20;  // outcomes kept on disk while the store is away
inline constexpr std::size_t kMatchText = 4 << 10;
inline constexpr int kMatchDepth = 64;
inline constexpr std::size_t kMatchFuel = 10'000;         // steps of one evaluation
inline constexpr std::size_t kStatementBytes = 16 << 20;  // texts in one statement to a server
inline constexpr std::size_t kGroupBytes = 4 << 20;       // submits that share a transaction

// Counts.
inline constexpr int kSubmitBatch = 10'000;
inline constexpr int kClaimBatch = 1'000;
inline constexpr std::size_t kClaimBytes = 64
                                           << 20;  // of inputs; a claim stops at the first over it
inline constexpr int kSettleBatch = 1'000;
inline constexpr int kSettleRefusals = 20;   // then an outcome is given up, after some six minutes
inline constexpr int kGivenUpKept = 1'000;   // outcomes remembered until their session is recovered
inline constexpr int kReclaimBatch = 1'000;  // tasks moved by one reclaim call
inline constexpr int kListPage = 1'000;
inline constexpr int kListPageDefault = 100;
inline constexpr int kTypesPerWorker = 1'000;
inline constexpr int kQueuesPerWorker = 1'000;
inline constexpr int kSlots = 4'096;      // tasks running at once in one process
inline constexpr int kAsideThreads = 16;  // running a host's stop callbacks, in one process
inline constexpr int kWaitingHandles = 100'000;
inline constexpr int kIdBlock = 1'000'000;
inline constexpr int kCatchUp = 1'000;        // missed instants of a schedule that fire together
inline constexpr int kHistoryScan = 100'000;  // rows one filtered list may look at

// Numbers.
inline constexpr int kPriorityMin = 0;
inline constexpr int kPriorityMax = 255;
inline constexpr int kPriorityDefault = 128;
inline constexpr int kMaxAttempts = 1'000'000;
inline constexpr int kMaxCrashes = 3;  // while alone, within kCrashWindow
inline constexpr Duration kCrashWindow = hours{24};

// Times.
inline constexpr Duration kLeaseMin = std::chrono::milliseconds{200};
inline constexpr Duration kLeaseMax = hours{24};
inline constexpr Duration kHurryGrace =
    std::chrono::milliseconds{200};  // for handlers that obey, when a stop is to be now
inline constexpr Duration kAsideGrace = seconds{1};   // for the host's callbacks, at a stop
inline constexpr Duration kIntervalMin = seconds{1};  // of a schedule
inline constexpr Duration kTimeoutMax = hours{24 * 365};
inline constexpr Duration kDelayMax = hours{24 * 366 * 10};
inline constexpr Duration kRetention = hours{24 * 90};
inline constexpr Duration kRetentionMax = hours{24 * 366 * 20};
inline constexpr Duration kIdempotencyRetention = hours{24 * 7};
inline constexpr Duration kRefusalDelay = std::chrono::milliseconds{100};  // doubled per refusal
inline constexpr Duration kRefusalDelayMax = seconds{30};
inline constexpr Duration kCrashDelay = std::chrono::milliseconds{250};  // doubled per crash
inline constexpr Duration kCrashDelayMax = seconds{30};
inline constexpr Duration kIdsKept = minutes{10};  // reserved by a process and not yet used
inline constexpr Duration kReadBack = seconds{5};  // of a submit whose answer was lost

static_assert(kListPageDefault <= kListPage);
static_assert(kSlots >= kClaimBatch);

}  // namespace stint::model::limits
