// stint::Transaction over a store's own, for handlers in the simulator. In programs the composition
// root (room node) supplies these; the simulator has none.
#include <stint/transaction.h>

#include "base/check.h"
#include "store/store.h"

namespace stint {

Transaction::Transaction(store::Transaction* implementation) : implementation_(implementation) {
    CHECK(implementation_ != nullptr);
}
Transaction::~Transaction() = default;

}  // namespace stint
