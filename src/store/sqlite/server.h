// The owner's door: serves store operations to other processes of the same user.
//
// Threads: one accepts; one per connection runs its requests in turn.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/log.h"
#include "store/sqlite/direct_store.h"
#include "store/sqlite/protocol.h"
#include "store/sqlite/socket.h"

namespace stint::store::lite {

class Server {
public:
    // REQUIRES: this process holds the lock. Throws Unavailable when the socket cannot be made.
    Server(DirectStore& store, std::string path, const SqliteOptions& options);
    // Requests that run are answered; what was sent and not begun is not.
    ~Server();

private:
    struct Client {
        Fd fd;
        std::atomic<bool> done = false;
        std::jthread thread;
    };

    void AcceptLoop();
    void Admit(Fd fd);
    void ForgetDone();
    void Serve(Client& client);
    std::string Answer(std::string_view request, const Opener& opener);
    std::string Carry(Operation operation, Decoder& in, const Opener& opener);

    DirectStore& store_;
    const std::string path_;
    const int max_clients_;
    const Duration take_timeout_;
    const std::size_t answer_max_;
    const base::Logger log_;
    Fd listener_;
    Fd stop_;                                     // becomes readable when it is time to stop
    std::list<std::unique_ptr<Client>> clients_;  // only the accepting thread, then the destructor
    std::jthread acceptor_;
};

}  // namespace stint::store::lite
