// A TCP relay to a PostgreSQL server that cuts the line at a chosen word of the client: what the
// client sent up to there still reaches the server, the answer never comes back.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace stint::testing {

class CutProxy {
public:
    explicit CutProxy(int server_port) : server_port_(server_port) {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = Loopback(0);
        int bound = bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
        if (bound != 0) throw std::system_error(errno, std::generic_category(), "bind");
        listen(listener_, 16);
        socklen_t length = sizeof address;
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
        port_ = ntohs(address.sin_port);
        acceptor_ = std::jthread([this](std::stop_token stop) { Accept(stop); });
    }
    ~CutProxy() {
        acceptor_.request_stop();
        acceptor_.join();
        relays_.clear();
        close(listener_);
    }

    int port() const { return port_; }
    // The next connection that sends `word` is cut there; once. `deliver`: whether the server still
    // gets it.
    void CutAt(std::string word, bool deliver = true) {
        std::lock_guard guard(mutex_);
        word_ = std::move(word);
        deliver_ = deliver;
    }
    int cuts() const { return cuts_; }
    // Ends every line, and takes no new ones. Returns when a client would notice.
    void GoDown() {
        down_ = true;
        while (open_ > 0) std::this_thread::yield();
    }
    void ComeUp() { down_ = false; }

private:
    static sockaddr_in Loopback(int port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return address;
    }
    static bool Readable(int fd, int milliseconds = 20) {
        pollfd descriptor{fd, POLLIN, 0};
        return poll(&descriptor, 1, milliseconds) > 0;
    }

    void Accept(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            if (!Readable(listener_)) continue;
            int client = accept(listener_, nullptr, nullptr);
            if (client < 0) continue;
            if (down_) {
                close(client);
                continue;
            }
            ++open_;
            relays_.emplace_back([this, client](std::stop_token end) { Relay(client, end); });
        }
    }

    void Relay(int client, const std::stop_token& stop) {
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = Loopback(server_port_);
        bool up = connect(server, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        while (up && !down_ && !stop.stop_requested()) {
            pollfd descriptors[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
            if (poll(descriptors, 2, 20) <= 0) continue;
            if (descriptors[1].revents != 0) up = Copy(server, client, false, server);
            if (up && descriptors[0].revents != 0) up = Copy(client, server, true, server);
        }
        close(client);
        close(server);
        --open_;
    }

    // False at the end of the line.
    bool Copy(int from, int to, bool watch, int server) {
        std::array<char, 65536> buffer;
        ssize_t size = recv(from, buffer.data(), buffer.size(), 0);
        if (size <= 0) return false;
        bool cut = false, deliver = true;
        if (watch) {
            std::lock_guard guard(mutex_);
            std::string_view seen(buffer.data(), static_cast<std::size_t>(size));
            cut = !word_.empty() && seen.find(word_) != std::string_view::npos;
            deliver = deliver_;
            if (cut) word_.clear();
        }
        if (!cut || deliver) {
            if (send(to, buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) {
                return false;
            }
        }
        if (!cut) return true;
        // Let the server answer, so that what it was told has happened before the line goes dead.
        if (deliver && Readable(server, 30'000)) {
            [[maybe_unused]] ssize_t answered = recv(server, buffer.data(), buffer.size(), 0);
        }
        ++cuts_;
        return false;
    }

    const int server_port_;
    int listener_ = -1;
    int port_ = 0;
    std::mutex mutex_;
    std::string word_;  // guarded by mutex_, as is the next
    bool deliver_ = true;
    std::atomic<int> cuts_{0};
    std::atomic<bool> down_{false};
    std::atomic<int> open_{0};
    std::vector<std::jthread> relays_;  // the acceptor's; then the destructor's
    std::jthread acceptor_;
};

}  // namespace stint::testing
