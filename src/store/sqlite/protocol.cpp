#include "store/sqlite/protocol.h"

namespace stint::store::lite {

bool Changes(Operation operation) {
    switch (operation) {
        case Operation::kReserveIds:
        case Operation::kPublishTypes:
        case Operation::kSubmit:
        case Operation::kSubmitAll:
        case Operation::kOpenSession:
        case Operation::kRenew:
        case Operation::kCloseSession:
        case Operation::kClaim:
        case Operation::kSettle:
        case Operation::kReclaim:
        case Operation::kFinishBackground:
        case Operation::kCancel:
        case Operation::kRetry:
        case Operation::kDiscard:
        case Operation::kEdit:
        case Operation::kChangeQueue:
        case Operation::kHousekeep:
        case Operation::kSchedulePut:
        case Operation::kScheduleRemove:
        case Operation::kScheduleSetPaused:
        case Operation::kScheduleFire:
        case Operation::kScheduleFireVisits:
        case Operation::kScheduleForgetRuns:
        case Operation::kCalendarPut:
        case Operation::kCalendarRemove:
        case Operation::kVisitsPut:
        case Operation::kVisitsRemove:
        case Operation::kPublish:
        case Operation::kPutWorkflow:
        case Operation::kRemoveWorkflow:
        case Operation::kNextEvents:
        case Operation::kFire:
        case Operation::kTidyEvents:
        case Operation::kFlowBegin:
        case Operation::kFlowRecord:
        case Operation::kFlowAwait:
        case Operation::kFlowSignal:
        case Operation::kFlowFork:
        case Operation::kFlowTidy:
        case Operation::kResourceChange:
        case Operation::kResourceRemove:
        case Operation::kResourceReopen:
        case Operation::kResourceClose:
        case Operation::kOrderSet:
        case Operation::kOrderRemove:
        case Operation::kResultWrite:
        case Operation::kMarkDeletion:
        case Operation::kUnmarkDeletion:
        case Operation::kTakeDeletions:
        case Operation::kBeginDeletion:
        case Operation::kSetPace:
            return true;
        default:
            return false;
    }
}

}  // namespace stint::store::lite
