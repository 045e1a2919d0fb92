#include "store/sqlite/protocol.h"

namespace stint::store::lite {

bool Changes(Operation operation) {
    switch (operation) {
        case Operation::kReserveIds:
        case Operation::kPublishTypes:
        case Operation::kSubmit:
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
            return true;
        default:
            return false;
    }
}

}  // namespace stint::store::lite
