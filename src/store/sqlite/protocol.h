// What owner and client agree on.
//
//   connect      owner → client   hello: magic, version, refusal ("" = welcome)
//                client → owner   hello: magic, version, handle
//   then, any number of times
//                client → owner   begin by, operation, arguments
//                owner → client   outcome, reply or message
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite/process.h"
#include "store/sqlite/wire.h"
#include "store/sqlite/wire_events.h"
#include "store/sqlite/wire_results.h"
#include "store/sqlite/wire_types.h"

namespace stint::store::lite {

inline constexpr std::uint32_t kMagic = 0x53544e54;  // "STNT"
inline constexpr int kProtocolVersion = 13;

enum class Operation : std::uint8_t {
    kInfo = 1,
    kNow,
    kReserveIds,
    kPublishTypes,
    kTypes,
    kSubmit,
    kSubmitAll,
    kOpenSession,
    kRenew,
    kCloseSession,
    kSessions,
    kNodes,
    kClaim,
    kSettle,
    kReclaim,
    kFinishBackground,
    kSettledBy,
    kCancel,
    kRetry,
    kDiscard,
    kEdit,
    kGet,
    kFindByIdempotencyKey,
    kList,
    kCounts,
    kAttempts,
    kWaited,
    kAudit,
    kFinished,
    kExplain,
    kCrowds,
    kChangeQueue,
    kQueues,
    kHousekeep,
    kCheck,
    kSchedulePut,
    kScheduleGet,
    kScheduleList,
    kScheduleRemove,
    kScheduleSetPaused,
    kScheduleDue,
    kScheduleFire,
    kScheduleFireVisits,
    kScheduleRuns,
    kScheduleForgetRuns,
    kCalendarPut,
    kCalendars,
    kCalendarRemove,
    kVisitsPut,
    kVisitsRemove,
    kVisits,
    kPublish,
    kPutWorkflow,
    kRemoveWorkflow,
    kWorkflows,
    kNextEvents,
    kFire,
    kGetEvent,
    kListEvents,
    kCountEvents,
    kFirings,
    kJoins,
    kTidyEvents,
    kFlowBegin,
    kFlowRecord,
    kFlowAwait,
    kFlowSignal,
    kFlowFork,
    kFlowGet,
    kFlowList,
    kFlowTidy,
    kResourceChange,
    kResourceRemove,
    kResourceReopen,
    kResourceClose,
    kOrderSet,
    kOrderRemove,
    kResourceList,
    kResourceFind,
    kOrders,
    kResultWrite,
    kResultSummary,
    kItems,
    kMarkDeletion,
    kUnmarkDeletion,
    kFindDeletion,
    kDeletions,
    kTakeDeletions,
    kBeginDeletion,
    kSetPace,
};

bool Changes(Operation operation);  // or only reads

// Until when the owner may begin a request, on the clock that all processes of a machine share. A
// client waits at least as long: an owner that was stopped and goes on later must not carry out
// what was given up.
struct BeginBy {
    std::int64_t nanoseconds = 0;
};
template <class A>
void Fields(A& a, BeginBy& x) {
    a(x.nanoseconds);
}

enum class Outcome : std::uint8_t {
    kReply,
    kUnavailable,
    kCommitUnknown,
    kWrongSchema,
    kUnstorable,
};

struct OwnerHello {
    std::uint32_t magic = kMagic;
    int version = kProtocolVersion;
    std::string refusal;
};
struct ClientHello {
    std::uint32_t magic = kMagic;
    int version = kProtocolVersion;
    HandleId handle;
};

template <class A>
void Fields(A& a, OwnerHello& x) {
    a(x.magic, x.version, x.refusal);
}
template <class A>
void Fields(A& a, ClientHello& x) {
    a(x.magic, x.version, x.handle);
}

}  // namespace stint::store::lite
