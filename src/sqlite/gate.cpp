#include "sqlite/gate.h"

#include <sqlite3.h>

#include <utility>

namespace stint::sqlite {

namespace {
constexpr int kStepsBetweenLooks = 1000;
}

// Installed once for good: setting an authorizer makes every prepared statement be prepared again.
Gate::Gate(Connection& db, Protected is_protected)
    : db_(db), is_protected_(std::move(is_protected)) {
    sqlite3_set_authorizer(db_.handle(), &Gate::Authorize, this);
}

Gate::~Gate() {
    sqlite3_set_authorizer(db_.handle(), nullptr, nullptr);
}

void Gate::Open(base::Instant until) {
    until_ = until;
    watching_ = true;
    sqlite3_progress_handler(db_.handle(), kStepsBetweenLooks, &Gate::Progress, this);
    sqlite3_commit_hook(db_.handle(), &Gate::RefuseCommit, this);
}

void Gate::Close() {
    watching_ = false;
    sqlite3_progress_handler(db_.handle(), 0, nullptr, nullptr);
    sqlite3_commit_hook(db_.handle(), nullptr, nullptr);
}

bool Gate::overdue() const {
    return base::SystemClock().Now() > until_;
}

int Gate::Progress(void* self) {
    const auto* gate = static_cast<const Gate*>(self);
    return gate->watching_ && gate->overdue() ? 1 : 0;
}

int Gate::RefuseCommit(void*) {
    return 1;
}

int Gate::
    Authorize(void* self, int action, const char* a, const char* b, const char*, const char*) {
    const auto* gate = static_cast<const Gate*>(self);
    return !gate->watching_ || gate->Allows(action, a, b) ? SQLITE_OK : SQLITE_DENY;
}

bool Gate::Allows(int action, const char* a, const char* b) const {
    switch (action) {
        case SQLITE_READ:
        case SQLITE_SELECT:
        case SQLITE_FUNCTION:
        case SQLITE_RECURSIVE:
            return true;
        case SQLITE_TRANSACTION:
        case SQLITE_SAVEPOINT:
        case SQLITE_ATTACH:
        case SQLITE_DETACH:
        case SQLITE_PRAGMA:
            return false;
        default:
            return !(a != nullptr && is_protected_(a)) && !(b != nullptr && is_protected_(b));
    }
}

}  // namespace stint::sqlite
