// A connection pool to the owner's socket.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/sqlite/protocol.h"
#include "store/sqlite/socket.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store::lite {

// The owner is gone. `sent`: it had received the whole request, so that it may have been carried
// out.
struct OwnerGone {
    bool sent = false;
};
// The owner is there and says nothing. `stopped`: it does not even greet newcomers, which takes no
// store and no disk: its process is stopped, or as good as.
struct OwnerSilent {
    bool sent = false;
    bool stopped = false;
};

class Client {
public:
    Client(std::string socket, HandleId handle, const SqliteOptions& options)
        : socket_(std::move(socket)),
          handle_(handle),
          reply_timeout_(options.reply_timeout),
          silence_(options.silence) {}

    // nullopt-like: null when nobody listens. Throws Unavailable when the owner refuses us, and
    // OwnerSilent.
    static std::unique_ptr<Client> Open(
        const std::string& socket, HandleId handle, const SqliteOptions& options
    );

    // Sends one request and returns the decoder's bytes of the reply. Throws OwnerGone or
    // OwnerSilent, or what the owner says.
    std::string Call(std::string_view request);

private:
    OwnerHello Hear(const Fd& fd);
    Fd Greet();
    Fd Take();
    void GiveBack(Fd fd);
    void AwaitReply(const Fd& fd);
    bool OwnerGreets();

    const std::string socket_;
    const HandleId handle_;
    const Duration reply_timeout_;
    const Duration silence_;
    std::mutex mutex_;
    std::condition_variable returned_;
    std::vector<Fd> idle_;  // guarded by mutex_
    int left_ = 16;         // guarded by mutex_: how many more may be opened
};

}  // namespace stint::store::lite
