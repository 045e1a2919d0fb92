// LISTEN on a connection of its own. Hints only: whatever is heard or missed, the tables tell the
// truth.
//
// For one thread at a time, except Interrupt().
#pragma once

#include <stint/result.h>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/connection.h"

namespace stint::postgres {

struct Notification {
    std::string channel;
    std::string payload;
};

class Listener {
public:
    Listener(ConnectOptions options, std::vector<std::string> channels);
    ~Listener();

    // Connects, listens and sends itself a hint to see whether hints arrive here at all. The error
    // says why they cannot: unreachable, behind a transaction pooler, or a standby.
    Result<void> Open();
    bool open() const { return connection_ != nullptr; }

    // What was heard; empty after `timeout` or Interrupt(). Throws ConnectionLost when the
    // connection broke: then Open() again, and look into the tables once, for what was missed.
    std::vector<Notification> Wait(std::chrono::milliseconds timeout);

    // Asks the server whether it still knows this connection as a listener. Throws ConnectionLost.
    void Heartbeat();

    // Ends a Wait() from another thread.
    void Interrupt();

private:
    Result<void> Probe();
    void Collect(std::vector<Notification>& heard);

    ConnectOptions options_;
    const std::vector<std::string> channels_;
    std::unique_ptr<Connection> connection_;
    int interrupt_fd_;
};

// Sends them all in one transaction of its own.
void Notify(Connection& connection, std::span<const Notification> notifications);

// A name as SQL wants it: quoted, with quotes doubled.
std::string QuoteName(std::string_view name);

}  // namespace stint::postgres
