#include "wake/postgres_wake.h"

#include "base/thread.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace stint::wake {

namespace {

// PostgreSQL allows 7 999 bytes.
constexpr std::size_t kPayload = 7'000;
// More than this many finished tasks at once are found by polling.
constexpr std::size_t kFinishedAtMost = 10'000;

// Among the names of queues, none of which has a space.
constexpr std::string_view kEvents = "stint events";

postgres::ConnectOptions Connect(const PostgresWakeOptions& options) {
    postgres::ConnectOptions connect;
    connect.url = options.url;
    connect.application_name = "stint wake";
    connect.reply_timeout = std::chrono::seconds{15};
    // Whoever hears of a task may read it: that was committed, and flushed, before. The
    // notification itself need not survive the server, and nobody waits for the disk because of it.
    connect.settings = {{"synchronous_commit", "off"}};
    return connect;
}

std::vector<std::string> Payloads(const std::set<TaskId>& finished) {
    std::vector<std::string> payloads;
    for (TaskId task : finished) {
        std::string text = task.ToString();
        if (payloads.empty() || payloads.back().size() + text.size() + 1 > kPayload) {
            payloads.push_back(std::move(text));
        } else {
            (payloads.back() += ',') += text;
        }
    }
    return payloads;
}

}  // namespace

PostgresWake::PostgresWake(PostgresWakeOptions options)
    : options_(std::move(options)),
      available_channel_(options_.schema + "_task_available"),
      completed_channel_(options_.schema + "_task_completed"),
      log_(options_.log, "wake"),
      listener_(Connect(options_), {available_channel_, completed_channel_}),
      listen_thread_(base::StartThread([this](std::stop_token stop) { ListenLoop(stop); })),
      send_thread_(base::StartThread([this](std::stop_token stop) { SendLoop(stop); })) {
}

PostgresWake::~PostgresWake() {
    listen_thread_.request_stop();
    send_thread_.request_stop();
    listener_.Interrupt();
    wake_.notify_all();
    listen_thread_.join();
    send_thread_.join();
}

void PostgresWake::Signal(std::span<const Hint> hints) {
    local_.Signal(hints);
    {
        std::lock_guard guard(mutex_);
        for (const Hint& hint : hints) {
            if (hint.others_know) continue;
            if (hint.kind == Hint::Kind::kTaskAvailable) {
                queues_.insert(hint.queue);
            } else if (hint.kind == Hint::Kind::kEventPublished) {
                queues_.insert(std::string(kEvents));
            } else if (finished_.size() < kFinishedAtMost) {
                finished_.insert(hint.task);
            }
        }
    }
    wake_.notify_all();
}

int PostgresWake::Subscribe(std::function<void(const Hint&)> listener) {
    return local_.Subscribe(std::move(listener));
}

void PostgresWake::Unsubscribe(int subscription) {
    local_.Unsubscribe(subscription);
}

bool PostgresWake::Rest(const std::stop_token& stop, Duration time) {
    std::unique_lock lock(mutex_);
    base::Clock& clock = base::SystemClock();
    base::Instant until = clock.Now() + time;
    while (!stop.stop_requested() && clock.Now() < until) clock.WaitUntil(lock, wake_, stop, until);
    return !stop.stop_requested();
}

// ---- listening ---------------------------------------------------------------------------------

void PostgresWake::ListenLoop(const std::stop_token& stop) {
    std::string last_complaint;
    while (!stop.stop_requested()) {
        Result<void> opened = listener_.Open();
        if (!opened) {
            // The same reason is not worth a second line.
            if (opened.error().message != last_complaint) {
                last_complaint = opened.error().message;
                log_.Warn(
                    "no wake-ups from other processes; polling goes on", {{"why", last_complaint}}
                );
            }
            if (!Rest(stop, options_.retry_every)) return;
            continue;
        }
        last_complaint.clear();
        listening_ = true;
        // What was said while nobody listened is lost: everybody looks once.
        const std::array<Hint, 2> look = {
            Hint{Hint::Kind::kTaskAvailable, {}, {}}, Hint{Hint::Kind::kEventPublished, {}, {}}};
        local_.Signal(look);
        try {
            ListenWhileOpen(stop);
        } catch (const std::exception& error) {
            log_.Info("the connection for wake-ups broke", {{"why", error.what()}});
        }
        listening_ = false;
    }
}

void PostgresWake::ListenWhileOpen(const std::stop_token& stop) {
    base::Clock& clock = base::SystemClock();
    base::Instant checked = clock.Now();
    while (!stop.stop_requested()) {
        for (const postgres::Notification& heard : listener_.Wait(std::chrono::seconds{1})) {
            Deliver(heard);
        }
        if (clock.Now() - checked < options_.heartbeat_every) continue;
        listener_.Heartbeat();
        checked = clock.Now();
    }
}

void PostgresWake::Deliver(const postgres::Notification& notification) {
    if (notification.channel == available_channel_ && notification.payload == kEvents) {
        Hint hint{Hint::Kind::kEventPublished, {}, {}};
        local_.Signal({&hint, 1});
        return;
    }
    if (notification.channel == available_channel_) {
        Hint hint{Hint::Kind::kTaskAvailable, notification.payload, {}};
        local_.Signal({&hint, 1});
        return;
    }
    std::vector<Hint> hints;
    const char* at = notification.payload.data();
    const char* end = at + notification.payload.size();
    while (at < end) {
        std::int64_t number = 0;
        auto [rest, error] = std::from_chars(at, end, number);
        if (error != std::errc{} || number <= 0) break;  // not ours
        hints.push_back({Hint::Kind::kTaskFinished, {}, TaskId(number)});
        at = rest < end ? rest + 1 : end;
    }
    local_.Signal(hints);
}

// ---- sending -----------------------------------------------------------------------------------

void PostgresWake::SendLoop(const std::stop_token& stop) {
    Duration between = options_.between;
    while (!stop.stop_requested()) {
        std::set<std::string> queues;
        std::set<TaskId> finished;
        {
            std::unique_lock lock(mutex_);
            bool burst = !queues_.empty() || !finished_.empty();
            between = burst ? std::min(2 * between, options_.between_at_most) : options_.between;
            wake_.wait(lock, stop, [&] { return !queues_.empty() || !finished_.empty(); });
            queues.swap(queues_);
            finished.swap(finished_);
        }
        if (queues.empty() && finished.empty()) continue;
        try {
            Send(queues, finished);
        } catch (const std::exception&) {
            // A hint may be lost. The next one opens a new connection.
            sender_.reset();
        }
        // The first of a burst goes at once, those behind it together.
        if (!Rest(stop, between)) return;
    }
}

void PostgresWake::Send(const std::set<std::string>& queues, const std::set<TaskId>& finished) {
    if (!sender_ || !sender_->StillThere()) sender_ = postgres::Connection::Open(Connect(options_));
    std::vector<postgres::Notification> notifications;
    for (const std::string& queue : queues) notifications.push_back({available_channel_, queue});
    for (std::string& payload : Payloads(finished)) {
        notifications.push_back({completed_channel_, std::move(payload)});
    }
    postgres::Notify(*sender_, notifications);
}

}  // namespace stint::wake
