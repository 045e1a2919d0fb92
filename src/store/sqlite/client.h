// A connection pool to the owner's socket.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/sqlite/protocol.h"
#include "store/sqlite/socket.h"

namespace stint::store::lite {

// The owner is gone. `sent`: it had received the whole request, so that it may have been carried
// out.
struct OwnerGone {
    bool sent = false;
};

class Client {
public:
    Client(std::string socket, HandleId handle, Duration reply_timeout)
        : socket_(std::move(socket)), handle_(handle), reply_timeout_(reply_timeout) {}

    // nullopt-like: null when nobody listens. Throws Unavailable when the owner refuses us.
    static std::unique_ptr<Client> Open(
        const std::string& socket, HandleId handle, Duration reply_timeout
    );

    // Sends one request and returns the decoder's bytes of the reply. Throws OwnerGone, or what the
    // owner says.
    std::string Call(const std::string& request);

private:
    Fd Greet();  // throws OwnerGone
    Fd Take();
    void GiveBack(Fd fd);

    const std::string socket_;
    const HandleId handle_;
    const Duration reply_timeout_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<Fd> idle_;  // guarded by mutex_
    int left_ = 16;         // guarded by mutex_: how many more may be opened
};

}  // namespace stint::store::lite
