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
inline constexpr std::size_t kScheduleName = 55;  // "schedule:" and it make a tag
inline constexpr std::size_t kEntity = 256;       // of a schedule of visits
inline constexpr std::size_t kTagsPerTask = 16;
inline constexpr std::size_t kNodeLabel = 128;
inline constexpr std::size_t kWorkerNote = 2048;  // what a heartbeat tells of its worker
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
inline constexpr std::size_t kWorkflowName = 128;         // its triggers' and joins' names too
inline constexpr std::size_t kWorkflowText = 256 << 10;   // of one definition
inline constexpr std::size_t kStatementBytes = 16 << 20;  // texts in one statement to a server
inline constexpr std::size_t kEventBytes = 16 << 20;      // of data; a node takes no more at once
inline constexpr std::size_t kFiringBytes = 64 << 20;     // of inputs that one event makes
inline constexpr std::size_t kGroupBytes = 4 << 20;       // submits that share a transaction

// Counts.
inline constexpr int kWaitMembers = 10'000;  // tasks that one waits for at a time
inline constexpr std::size_t kSubtaskBytes = std::size_t{4} << 20;  // inputs of one block, together
// Submitted together: a group of as many as one may wait for, and its callbacks.
inline constexpr int kSubmitBatch = kWaitMembers + 100;
inline constexpr int kClaimBatch = 1'000;
inline constexpr int kClaimAhead = 1'000;  // held beyond the running ones, where the engine chooses
inline constexpr int kGroupMembers = 256;  // tasks of one claim that share the units of their seats
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
inline constexpr int kCatchUp = 1'000;     // missed instants of a schedule that fire together
inline constexpr int kSchedulesDue = 200;  // looked at by one node at a time
inline constexpr int kVisitsDue = 1'000;
inline constexpr int kRunsPerFiring = 2'000;  // instants of one schedule decided together
inline constexpr int kRunsRemembered = 100;   // tasks of one schedule that may not be over
inline constexpr int kBackfill = 10'000;      // runs made by one backfill
inline constexpr int kVisitsPut = 10'000;     // entities in one call
inline constexpr int kPreview = 1'000;
inline constexpr int kCalendars = 100;  // of one tenant
inline constexpr int kCalendarDates = 4'000;
inline constexpr int kHistoryScan = 100'000;  // rows one filtered list may look at
inline constexpr int kPublishBatch = 1'000;
inline constexpr int kEventBatch = 100;  // events that a node takes at once
inline constexpr int kEventDepth = 16;   // events caused by tasks that events caused, and so on
inline constexpr int kFiringsPerEvent = 1'000;  // triggers and joins that one event reaches
inline constexpr int kWorkflows = 1'000;
inline constexpr int kTriggersPerWorkflow = 200;
inline constexpr int kJoinsPerWorkflow = 50;
inline constexpr int kJoinMembers = 62;  // a bit each

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
inline constexpr Duration kScheduleRunsKept = hours{24 * 7};
// Beyond the misfire window: a mark that an instant was decided outlives every node that might
// still decide it.
inline constexpr Duration kScheduleMarkSlack = hours{24};
inline constexpr Duration kBackfillMarkKept = hours{24 * 366 * 10};
inline constexpr Duration kTimeoutMax = hours{24 * 365};
inline constexpr Duration kDelayMax = hours{24 * 366 * 10};
inline constexpr Duration kRetention = hours{24 * 90};
inline constexpr Duration kRetentionMax = hours{24 * 366 * 20};
inline constexpr Duration kIdempotencyRetention = hours{24 * 7};
inline constexpr Duration kRefusalDelay = std::chrono::milliseconds{100};  // doubled per refusal
inline constexpr Duration kRefusalDelayMax = seconds{30};
inline constexpr Duration kCrashDelay = std::chrono::milliseconds{250};  // doubled per crash
inline constexpr Duration kCrashDelayMax = seconds{30};
inline constexpr Duration kIdsKept = minutes{10};     // reserved by a process and not yet used
inline constexpr Duration kReadBack = seconds{5};     // of a submit whose answer was lost
inline constexpr Duration kEventTaken = seconds{30};  // by a node that may have died since
inline constexpr Duration kEventPatience =
    hours{24};  // for a full queue, for a task not yet outside
inline constexpr Duration kEventRetention = hours{24 * 7};  // also how long an id is recognised
inline constexpr Duration kJoinTtl = hours{24 * 7};
inline constexpr Duration kJoinTtlMax = hours{24 * 366};

// Of the processing of events.
// An event that has to wait is given up when it is older than kEventPatience and was tried so
// often, which takes an hour: a store that nobody worked on for a day has events that nobody has
// tried.
inline constexpr int kEventTries = 60;
// What the store says it can never take is tried a few times, in case another node's can.
inline constexpr int kFailedTries = 8;
// Tasks above a task among which the one is looked for that an event created. Beyond it the event
// is refused as too deep.
inline constexpr int kEventAncestors = 1'000;

// Of resources and placements.
inline constexpr std::size_t kResourceName = 192;  // of a resource or a pattern
inline constexpr std::size_t kLabel = 64;
inline constexpr int kNeedsPerTask = 16;
inline constexpr int kLabelsPerTask = 16;
inline constexpr int kUnits = 10'000;  // of one resource that a task needs
inline constexpr int kCapacity = 100'000;
inline constexpr int kRateCount = 1'000'000;
inline constexpr Duration kRatePeriodMax = std::chrono::hours{24 * 31};
inline constexpr int kBreakerFailures = 1'000;
inline constexpr Duration kOpenMax = std::chrono::hours{24};
inline constexpr Duration kClosedForMax = std::chrono::hours{24 * 7};
inline constexpr int kEvidence = 10;  // reports kept with a resource
inline constexpr int kHoldersShown = 100;
inline constexpr int kWeight = 1'000;  // of a tenant
inline constexpr int kWeights = 1'000;
inline constexpr Duration kAgingMin = std::chrono::milliseconds{1};
inline constexpr Duration kAgingMax = std::chrono::hours{24 * 31};

// Of flows.
inline constexpr std::size_t kFlowStepName = 128;  // a signal's name as well
inline constexpr std::size_t kStepResult = 1 << 20;
inline constexpr std::size_t kSignalBytes = 256 << 10;
inline constexpr std::int64_t kFlowBytes = 32 << 20;  // results of one flow: all are read to resume
inline constexpr int kFlowSteps = 10'000;
inline constexpr int kFlowSignals = 1'000;  // that wait to be taken
// A flow that waits for a signal without a timeout looks again after so long.
inline constexpr Duration kSignalNap = std::chrono::hours{24 * 30};
// How often it is looked whether the task of a recorded flow is still kept.
inline constexpr Duration kFlowLook = std::chrono::hours{24};
// A sleep, the patience for a signal: what is longer is a mistake, or does not fit a clock.
inline constexpr Duration kFlowWaitMax = std::chrono::hours{24 * 366 * 100};
// Before a flow tries again to call a task whose queue is full.
inline constexpr Duration kQueueFullPause = std::chrono::seconds{5};

// Of schedules with steps.
inline constexpr int kSteps = 100;
inline constexpr int kStepTasks = 1'000;      // of one step
inline constexpr std::size_t kStepName = 55;  // "step:" and it make a tag

// Of items, checkpoints and deletions.
inline constexpr std::size_t kItemKey = 256;
inline constexpr std::size_t kItemAction = 64;
inline constexpr std::size_t kItemValue = 64 << 10;
inline constexpr std::size_t kItemError = 2 << 10;  // longer ones are cut
inline constexpr std::size_t kCheckpoint = 64 << 10;
inline constexpr std::size_t kItemBatch = 500;  // written together
inline constexpr std::size_t kItemBatchBytes = 1 << 20;
inline constexpr std::int64_t kItemsPerTask = 1'000'000;
inline constexpr int kItemsForgotten = 5'000;     // in one transaction
inline constexpr std::size_t kDeletionKind = 52;  // "deletion:" and it make a tag
inline constexpr std::size_t kDeletionKey = 256;
inline constexpr int kDeletionCap = 10'000;               // per cycle
inline constexpr Duration kDeletionTaken = seconds{30};   // by a node that may have died since
inline constexpr Duration kDeletionKept = hours{24 * 7};  // a mark that became a task

// Of the claim's plan.
// Tenants of one queue whose turns are remembered.
inline constexpr std::size_t kLeads = 1000;
// Where age counts: how many at the front of a line are asked who of them has waited longest.
inline constexpr int kAgingDepth = 256;
// Who has waited so long for units of a resource is not passed any more: what is free of it is
// kept for its turn. After the longer wait, what it needs of other resources is kept, too.
inline constexpr Duration kKeepAfter = std::chrono::seconds{30};
inline constexpr Duration kKeepAllAfter = std::chrono::minutes{10};

// Of the resources that patterns make.
// Names that are there because of patterns or of reports that they do not work, at a time. Tasks
// that need another one of a pattern wait until housekeeping has forgotten some that nobody uses;
// a report of another one is not remembered.
inline constexpr int kPatternNames = 100'000;
// A report that such a resource does not work is remembered for so long after the last one.
inline constexpr Duration kEvidenceKept = std::chrono::hours{24};
// Queues that are told that something which their tasks need is free.
inline constexpr int kFreedQueues = 100;

// How much one read brings, how far a tree of tasks is followed.
// Outputs and errors of finished tasks in one answer: the answer ends with the one that reaches it.
// Whoever got so much asks again for the rest.
inline constexpr std::size_t kFinishedBytes = std::size_t{16} << 20;
// Outputs of subtasks that a handler holds at once.
inline constexpr std::size_t kOutputsHeld = std::size_t{256} << 20;
// Finished tasks that one cancel walks through to find what is not finished below them, the nearest
// first. What lies behind more than that is not found: cancel it by its own id.
inline constexpr int kTreeFinished = 100'000;

static_assert(kListPageDefault <= kListPage);
static_assert(kSlots >= kClaimBatch);

}  // namespace stint::model::limits
