// What a benchmark may know of a store's work, and how it makes that work harder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stint::node {

// From now on this process adds what it asks of its stores to the counts in that file, together
// with all others that do. Before it opens any store. Throws std::system_error.
void CountTogether(const std::string& path);

// Sums since some time in the past: only differences mean anything.
struct StoreWork {
    std::int64_t commits = 0;
    std::optional<std::int64_t> syncs;
    std::int64_t log_bytes = 0;
};

// The same address; connections that are made with it call themselves so, where they have a name.
std::string NamedAddress(const std::string& url, const std::string& name);

// All throw StoreError.
class StoreMeter {
public:
    // `name`: what the processes that are measured call their connections.
    StoreMeter(const std::string& url, std::string name);
    ~StoreMeter();
    StoreMeter(const StoreMeter&) = delete;
    StoreMeter& operator=(const StoreMeter&) = delete;

    StoreWork Read();
    // A server learns of some of it late: what connections count they hand in when they end.
    bool late() const;
    int Unsettled();  // connections that have not yet
    std::vector<std::pair<std::string, std::string>> DurabilitySettings();
    // CPU time of the server's processes; nullopt: why_no_server_cpu() says why.
    std::optional<std::chrono::nanoseconds> ServerCpu();
    std::string why_no_server_cpu() const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// In all processes that count together: handlers of the benchmark that have begun so far, and
// statements, also those of a StoreMeter.
std::uint64_t HandledTogether();
std::int64_t StatementsTogether();

// Somebody who has looked at the store long ago and does not let go, for as long as it lives.
class Pin {
public:
    // How it holds on: "snapshot", "xid" or "dump" (PostgreSQL), "reader" (SQLite). Throws
    // StoreError, also for a way that this store does not know.
    Pin(const std::string& url, std::string_view how);
    ~Pin();
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    static std::string DefaultFor(const std::string& url);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace stint::node
