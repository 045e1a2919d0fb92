// Who may touch the file: the process that holds the lock beside it.
#pragma once

#include <optional>
#include <string>

#include "store/sqlite/socket.h"

namespace stint::store::lite {

class OwnerLock {
public:
    // nullopt: another process, or another handle of this one, has it. Throws Unavailable when the
    // lock's file cannot be made.
    static std::optional<OwnerLock> TryTake(const std::string& database);
    // What the holder wrote about itself: "pid 12 on host: command". Empty when nobody did.
    static std::string Holder(const std::string& database);

private:
    explicit OwnerLock(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;  // the lock goes with it
};

}  // namespace stint::store::lite
