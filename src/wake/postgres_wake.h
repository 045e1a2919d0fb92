// Hints between the processes that share a PostgreSQL database: NOTIFY, sent after the commit on a
// connection of its own and put together where many come at once, so that no transaction of a task
// waits for it. (Of rare submits the store tells with their commit: store/postgres/announce.h.)
//
// Two threads of its own: one listens, one sends. Without a direct connection (a transaction pooler
// in between) it delivers within the process only, says so once, and polling finds the rest.
#pragma once

#include <stint/log.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "postgres/listener.h"
#include "wake/local.h"

namespace stint::wake {

struct PostgresWakeOptions {
    std::string url;  // for libpq; the server itself, not a pooler
    std::string schema =
        "stint";  // the channels are called <schema>_task_available and …_completed
    LogSink log;
    // Between two notifications of one process; longer as long as hints come without a pause.
    Duration between = std::chrono::milliseconds{2};
    Duration between_at_most = std::chrono::milliseconds{10};
    Duration heartbeat_every = std::chrono::seconds{30};
    Duration retry_every = std::chrono::seconds{5};
};

class PostgresWake final : public Wake {
public:
    explicit PostgresWake(PostgresWakeOptions options);
    ~PostgresWake() override;

    // Subscribers in this process hear it at once; others after the next notification. Never blocks
    // on the network.
    void Signal(std::span<const Hint> hints) override;
    int Subscribe(std::function<void(const Hint&)> listener) override;
    void Unsubscribe(int subscription) override;
    bool Hears() const override { return listening_; }

    // For tests: whether the connection for listening stands.
    bool listening() const { return listening_; }

private:
    void ListenLoop(const std::stop_token& stop);
    void ListenWhileOpen(const std::stop_token& stop);
    void SendLoop(const std::stop_token& stop);
    void Send(const std::set<std::string>& queues, const std::set<TaskId>& finished);
    void Deliver(const postgres::Notification& notification);
    // Sleeps; false when asked to stop.
    bool Rest(const std::stop_token& stop, Duration time);

    const PostgresWakeOptions options_;
    const std::string available_channel_;
    const std::string completed_channel_;
    const base::Logger log_;
    LocalWake local_;
    postgres::Listener listener_;                   // the listening thread's, but for Interrupt()
    std::unique_ptr<postgres::Connection> sender_;  // the sending thread's
    std::atomic<bool> listening_{false};

    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::set<std::string> queues_;  // to be told; guarded by mutex_
    std::set<TaskId> finished_;     // to be told; guarded by mutex_

    std::jthread listen_thread_;
    std::jthread send_thread_;
};

}  // namespace stint::wake
