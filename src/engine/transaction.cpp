#include <stint/transaction.h>

#include "store/store.h"

namespace stint {

Transaction::Transaction(store::Transaction* implementation) : implementation_(implementation) {
}
Transaction::Transaction(std::unique_ptr<store::Transaction> owned)
    : owned_(std::move(owned)), implementation_(owned_.get()) {
}
Transaction::~Transaction() = default;
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;
void* Transaction::native() const {
    return implementation_->native();
}

}  // namespace stint
