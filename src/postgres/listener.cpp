#include "postgres/listener.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/result.h"

namespace stint::postgres {

using base::MakeError;

void Notify(Connection& connection, std::span<const Notification> notifications) {
    static const Statement notify{"stint_notify", "SELECT pg_notify($1, $2)"};
    std::vector<Params> params;
    for (const Notification& notification : notifications) {
        params.push_back(Params().Text(notification.channel).Text(notification.payload));
    }
    std::vector<Command> commands;
    for (const Params& each : params) commands.push_back({&notify, &each});
    if (!commands.empty()) connection.Pipeline(commands, Commits::kYes);
}

std::string QuoteName(std::string_view name) {
    std::string quoted = "\"";
    for (char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + '"';
}

Listener::Listener(ConnectOptions options, std::vector<std::string> channels)
    : options_(std::move(options)),
      channels_(std::move(channels)),
      interrupt_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    CHECK(interrupt_fd_ >= 0);
    options_.prepare = ConnectOptions::Prepare::kNever;
    options_.settings.clear();
}

Listener::~Listener() {
    close(interrupt_fd_);
}

Result<void> Listener::Open() {
    connection_.reset();
    try {
        connection_ = Connection::Open(options_);
        for (const std::string& channel : channels_) {
            connection_->Script("LISTEN " + QuoteName(channel));
        }
        Result<void> works = Probe();
        if (!works) connection_.reset();
        return works;
    } catch (const SqlError& error) {
        connection_.reset();
        return MakeError(Code::kUnavailable, "cannot listen for wake-ups: {}", error.what());
    } catch (const std::exception& error) {
        connection_.reset();
        return MakeError(Code::kUnavailable, "{}", error.what());
    }
}

Result<void> Listener::Probe() {
    if (!connection_->direct()) {
        return MakeError(
            Code::kUnavailable,
            "wake-ups need a direct connection, and {} goes through a pooler: name the server "
            "itself "
            "as the address for wake-ups, or go without (work is then found by polling)",
            connection_->address()
        );
    }
    static const Statement standby{"", "SELECT pg_is_in_recovery()"};
    if (connection_->Query(standby, {}, Commits::kNo).Bool(0, 0)) {
        return MakeError(
            Code::kUnavailable, "{} is a standby, which sends no wake-ups", connection_->address()
        );
    }
    // The proof of the pudding: a hint to ourselves, on a channel nobody else uses.
    std::string channel = "stint_probe_" + std::to_string(PQbackendPID(connection_->native()));
    connection_->Script("LISTEN " + QuoteName(channel));
    connection_->Script("NOTIFY " + QuoteName(channel));
    base::Clock& clock = base::SystemClock();
    base::Instant deadline = clock.Now() + std::chrono::seconds{5};
    bool arrived = false;
    while (!arrived && clock.Now() < deadline) {
        std::vector<Notification> heard = Wait(std::chrono::milliseconds{100});
        arrived = std::any_of(heard.begin(), heard.end(), [&](const Notification& notification) {
            return notification.channel == channel;
        });
    }
    if (!arrived) {
        return MakeError(
            Code::kUnavailable, "{} does not deliver wake-ups", connection_->address()
        );
    }
    connection_->Script("UNLISTEN " + QuoteName(channel));
    return {};
}

void Listener::Collect(std::vector<Notification>& heard) {
    while (PGnotify* notify = PQnotifies(connection_->native())) {
        heard.push_back({notify->relname, notify->extra});
        PQfreemem(notify);
    }
}

std::vector<Notification> Listener::Wait(std::chrono::milliseconds timeout) {
    CHECK_WHY(connection_, "Wait() without Open()");
    std::vector<Notification> heard;
    // Some may have come along with the answer to a heartbeat.
    Collect(heard);
    if (!heard.empty()) return heard;
    pollfd descriptors[2] = {
        {PQsocket(connection_->native()), POLLIN, 0}, {interrupt_fd_, POLLIN, 0}};
    int ready = poll(descriptors, 2, static_cast<int>(timeout.count()));
    if (ready > 0 && (descriptors[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] ssize_t size = read(interrupt_fd_, &count, sizeof count);
    }
    if (ready > 0 && descriptors[0].revents != 0 && !connection_->StillThere()) {
        std::string address = connection_->address();
        connection_.reset();
        throw ConnectionLost("lost the wake-up connection to " + address);
    }
    Collect(heard);
    return heard;
}

void Listener::Heartbeat() {
    CHECK_WHY(connection_, "Heartbeat() without Open()");
    static const Statement channels{"", "SELECT array_agg(c) FROM pg_listening_channels() c"};
    try {
        std::vector<std::string> known = connection_->Query(channels, {}, Commits::kNo).Texts(0, 0);
        for (const std::string& channel : channels_) {
            if (std::find(known.begin(), known.end(), channel) == known.end()) {
                throw ConnectionLost("the server no longer knows us as a listener");
            }
        }
    } catch (const std::exception& error) {
        connection_.reset();
        throw ConnectionLost(error.what());
    }
}

void Listener::Interrupt() {
    std::uint64_t one = 1;
    [[maybe_unused]] ssize_t size = write(interrupt_fd_, &one, sizeof one);
}

}  // namespace stint::postgres
