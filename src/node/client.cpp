#include "node/client.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/submit.h"
#include "node/ask.h"
#include "node/engine_impl.h"
#include "node/make_wake.h"
#include "node/open_store.h"
#include "node/resource_client.h"
#include "store/finished.h"
#include "wake/wake.h"

namespace stint::node {

using namespace stint::model;  // NOLINT(google-build-using-namespace): the doors speak its words

namespace {

constexpr std::size_t kHintsAtOnce = 100;  // of finished tasks; whoever waits for others polls

// Calls `request` with pieces of at most `most` and joins the answers.
template <class Reply, class T, class Request>
std::vector<Reply> InPieces(std::span<const T> all, std::size_t most, Request request) {
    std::vector<Reply> replies;
    replies.reserve(all.size());
    while (!all.empty()) {
        auto piece = all.first(std::min(most, all.size()));
        for (Reply& reply : request(piece)) replies.push_back(std::move(reply));
        all = all.subspan(piece.size());
    }
    return replies;
}

}  // namespace

struct Client::Impl {
    std::string url;
    std::unique_ptr<store::Store> own_store;
    std::unique_ptr<wake::Wake> own_wake;
    store::Store* store = nullptr;
    wake::Wake* wake = nullptr;  // null until Hints() is called, unless it is an engine's
    LogSink log;
    std::once_flag wake_made;
    std::atomic<bool> wake_there{false};

    // Most requests neither send nor await hints, and a waker has a thread and a connection.
    wake::Wake& Hints() {
        std::call_once(wake_made, [this] {
            if (wake == nullptr) {
                own_wake = MakeWake(ParseStoreUrl(url).value(), log);
                wake = own_wake.get();
            }
            wake_there = true;
        });
        return *wake;
    }

    ScheduleDesk& Desk() {
        std::call_once(desk_made_, [this] {
            desk_.emplace(*store, lazy_wake_, services::SystemZones());
        });
        return *desk_;
    }
    wake::Wake& LazyHints() { return lazy_wake_; }

    engine::Submitter& Submits() {
        std::call_once(submitter_made_, [this] {
            submitter_.emplace(
                *store,
                lazy_wake_,
                base::SystemClock(),
                base::SystemRandom(),
                log,
                nullptr,
                ids_at_once
            );
        });
        return *submitter_;
    }

    int ids_at_once = 1;  // until the first submit

private:
    // Passes hints on to a waker that is made for the first of them.
    class LazyWake final : public wake::Wake {
    public:
        explicit LazyWake(Impl& impl) : impl_(impl) {}
        void Signal(std::span<const wake::Hint> hints) override {
            // Nobody here listens before there is a waker.
            const bool news = !std::ranges::all_of(hints, &wake::Hint::others_know);
            if (news || impl_.wake_there) impl_.Hints().Signal(hints);
        }
        int Subscribe(std::function<void(const wake::Hint&)> listener) override {
            return impl_.Hints().Subscribe(std::move(listener));
        }
        void Unsubscribe(int subscription) override { impl_.Hints().Unsubscribe(subscription); }

    private:
        Impl& impl_;
    };

    LazyWake lazy_wake_{*this};
    std::optional<engine::Submitter> submitter_;
    std::once_flag submitter_made_;
    std::optional<ScheduleDesk> desk_;
    std::once_flag desk_made_;
};

// ---- opening -----------------------------------------------------------------------------------

Client Client::Open(const std::string& url, IfMissing if_missing, LogSink log) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed) throw StoreError(parsed.error().code, parsed.error().message);
    if (parsed->kind == StoreUrl::Kind::kMemory) {
        throw StoreError(
            Code::kInvalid,
            "the store is memory:, which lives and ends with one process: what this command did "
            "would be gone with it; use sqlite:PATH or postgres://user@host/database"
        );
    }
    if (parsed->kind == StoreUrl::Kind::kSqlite && if_missing == IfMissing::kRefuse &&
        !std::filesystem::exists(parsed->path)) {
        throw StoreError(
            Code::kNotFound,
            fmt::format(
                "there is no store at {}; name another with --store, or make this one with: stint "
                "store migrate",
                parsed->path
            )
        );
    }
    PrepareStoreDirectory(url);
    Client client;
    Impl& impl = *client.impl_;
    impl.url = url;
    impl.log = log;
    Ask([&] {
        impl.own_store = OpenStore(url, StoreOptions{.log = log});
        return 0;
    });
    impl.store = impl.own_store.get();
    return client;
}

Client Client::Of(Engine& engine) {
    Client client;
    client.impl_->url = engine.impl().options.store;
    client.impl_->store = engine.impl().store.get();
    client.impl_->wake = engine.impl().wake.get();
    client.impl_->wake_there = true;
    return client;
}

Client::Client() : impl_(std::make_unique<Impl>()) {
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;

void Client::WithDesk(const std::function<void(ScheduleDesk&)>& question) {
    Ask([&] { return question(impl_->Desk()), 0; });
}

const std::string& Client::url() const {
    return impl_->url;
}

StoreInfo Client::Info() {
    return Ask([&] { return impl_->store->Info(); });
}

Time Client::Now() {
    return Ask([&] { return impl_->store->Now(); });
}

// ---- changing ----------------------------------------------------------------------------------

void Client::ExpectManySubmits() {
    impl_->ids_at_once = engine::Submitter::kIdsAtOnce;
}

std::vector<Result<SubmitReply>> Client::Submit(std::span<const NewTask> tasks) {
    return impl_->Submits().SubmitForReplies({tasks.begin(), tasks.end()});
}

std::vector<CancelReply> Client::Cancel(
    std::span<const TaskId> tasks, std::string_view actor, std::string_view reason
) {
    auto replies = Ask([&] {
        return InPieces<CancelReply>(tasks, limits::kListPage, [&](auto piece) {
            return impl_->store->Cancel(piece, actor, reason);
        });
    });
    std::vector<wake::Hint> hints;
    for (std::size_t i = 0; i < replies.size() && hints.size() < kHintsAtOnce; ++i) {
        if (replies[i].kind != CancelReply::Kind::kCancelled) continue;
        hints.push_back({.kind = wake::Hint::Kind::kTaskFinished, .queue = {}, .task = tasks[i]});
    }
    if (!hints.empty()) impl_->Hints().Signal(hints);
    return replies;
}

std::vector<RetryReply> Client::Retry(std::span<const TaskId> tasks, std::string_view actor) {
    auto replies = Ask([&] {
        return InPieces<RetryReply>(tasks, limits::kListPage, [&](auto piece) {
            return impl_->store->Retry(piece, actor);
        });
    });
    // They are due now, in whichever queues: a hint without a name is for every claimer.
    wake::Hint hint{.kind = wake::Hint::Kind::kTaskAvailable, .queue = {}, .task = {}};
    auto requeued = [](const RetryReply& one) { return one.kind == RetryReply::Kind::kRequeued; };
    if (std::ranges::any_of(replies, requeued)) impl_->Hints().Signal({&hint, 1});
    return replies;
}

std::vector<RetryReply> Client::Discard(std::span<const TaskId> tasks, std::string_view actor) {
    return Ask([&] {
        return InPieces<RetryReply>(tasks, limits::kListPage, [&](auto piece) {
            return impl_->store->Discard(piece, actor);
        });
    });
}

Result<void> Client::Edit(TaskId task, const TaskEdit& edit, std::string_view actor) {
    return Ask([&] { return impl_->store->Edit(task, edit, actor); });
}

std::optional<QueueSettings> Client::ChangeQueue(
    const model::QueueChange& change, std::string_view actor
) {
    if (auto valid = Validate(change); !valid) {
        throw StoreError(valid.error().code, valid.error().message);
    }
    auto settings = Ask([&] { return impl_->store->ChangeQueue(change, actor); });
    if (settings && change.paused == false) {
        wake::Hint hint{.kind = wake::Hint::Kind::kTaskAvailable, .queue = change.name, .task = {}};
        impl_->Hints().Signal({&hint, 1});
    }
    return settings;
}

// ---- seeing ------------------------------------------------------------------------------------

std::optional<TaskRecord> Client::Get(TaskId task) {
    return Ask([&] { return impl_->store->Get(task); });
}

TaskPage Client::List(const ListRequest& request) {
    return Ask([&] { return impl_->store->List(request); });
}

std::map<CountKey, std::int64_t> Client::Counts(const TaskFilter& filter) {
    return Ask([&] { return impl_->store->Counts(filter); });
}

std::vector<AttemptRecord> Client::Attempts(TaskId task) {
    return Ask([&] { return impl_->store->Attempts(task); });
}

std::vector<AuditEntry> Client::Audit(const AuditRequest& request) {
    return Ask([&] { return impl_->store->Audit(request); });
}

std::vector<AuditEntry> Client::AuditOf(TaskId task) {
    std::vector<AuditEntry> all;
    AuditRequest request{.task = task};
    while (true) {
        auto page = Audit(request);
        all.insert(all.end(), page.begin(), page.end());
        if (static_cast<int>(page.size()) < request.limit) return all;
        request.after = page.back().seq;
    }
}

std::vector<TypeRecord> Client::Types() {
    return Ask([&] { return impl_->store->Types(); });
}

std::vector<QueueRecord> Client::Queues() {
    return Ask([&] { return impl_->store->Queues(); });
}

std::vector<SessionRecord> Client::Sessions() {
    return Ask([&] { return impl_->store->Sessions(); });
}

std::vector<NodeRecord> Client::Nodes() {
    return Ask([&] { return impl_->store->Nodes(); });
}

std::vector<Explanation> Client::Explain(TaskId task, const ClaimRequest& claimer) {
    return Ask([&] { return impl_->store->Explain(task, claimer); });
}

std::vector<CheckFinding> Client::Check() {
    return Ask([&] { return impl_->store->Check(); });
}

ResultClient Client::Results() {
    return ResultClient(*impl_->store, impl_->LazyHints());
}

EventClient Client::Events() {
    return EventClient(*impl_->store, impl_->LazyHints());
}

FlowClient Client::Flows() {
    return FlowClient(*impl_->store, impl_->LazyHints());
}

ResourceClient Client::Resources() {
    return ResourceClient(
        Ask([&]() -> std::reference_wrapper<store::ResourceStore> {
            return impl_->store->Resources();
        }),
        impl_->LazyHints()
    );
}

std::optional<Why> Client::WhyTask(TaskId task) {
    return Ask([&] { return ExplainTask(*impl_->store, task); });
}

QueueWhy Client::WhyQueue(const std::string& queue) {
    return Ask([&] { return ExplainQueue(*impl_->store, queue); });
}

IdleLook Client::LookIdle(const ClaimRequest& worker) {
    return Ask([&] { return node::LookIdle(*impl_->store, worker); });
}

// ---- waiting -----------------------------------------------------------------------------------

namespace {

// Counts hints of finished tasks, so that a wait ends at once where the store sends them.
class FinishListener {
public:
    explicit FinishListener(wake::Wake& wake) : wake_(wake) {
        subscription_ = wake_.Subscribe([this](const wake::Hint& hint) {
            if (hint.kind != wake::Hint::Kind::kTaskFinished) return;
            std::lock_guard guard(mutex_);
            hinted_ = true;
            changed_.notify_all();
        });
    }
    ~FinishListener() { wake_.Unsubscribe(subscription_); }
    FinishListener(const FinishListener&) = delete;
    FinishListener& operator=(const FinishListener&) = delete;

    void Pause(base::Instant until, std::stop_token stop) {
        base::Clock& clock = base::SystemClock();
        std::unique_lock lock(mutex_);
        while (!hinted_ && !stop.stop_requested() && clock.Now() < until) {
            clock.WaitUntil(lock, changed_, stop, until);
        }
        hinted_ = false;
    }

private:
    wake::Wake& wake_;
    int subscription_ = 0;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool hinted_ = false;
};

}  // namespace

std::vector<TaskId> Client::Wait(
    std::vector<TaskId> tasks,
    std::optional<Duration> limit,
    const std::function<void(const FinishedTask&)>& finished,
    std::stop_token stop
) {
    constexpr Duration kFirstPause{20}, kLongestPause{500};
    base::Clock& clock = base::SystemClock();
    base::Instant begun = clock.Now();
    FinishListener listener(impl_->Hints());
    Duration pause = kFirstPause;
    while (true) {
        auto done = Ask([&] {
            return InPieces<FinishedTask>(
                std::span<const TaskId>(tasks),
                limits::kListPage,
                [&](auto piece) { return impl_->store->Finished(piece); }
            );
        });
        std::size_t bytes = 0;
        for (const FinishedTask& task : done) {
            bytes += store::BytesOf(task);
            finished(task);
            std::erase(tasks, task.id);
        }
        base::Instant now = clock.Now();
        if (tasks.empty() || stop.stop_requested()) return tasks;
        if (limit && now >= begun + *limit) return tasks;
        if (bytes >= limits::kFinishedBytes / 2) continue;  // there may be more
        if (!done.empty()) pause = kFirstPause;
        base::Instant until = now + pause;
        if (limit) until = std::min(until, begun + *limit);
        listener.Pause(until, stop);
        pause = std::min(pause * 2, kLongestPause);
    }
}

// ---- whole stores ------------------------------------------------------------------------------

std::optional<std::string> SqlitePath(std::string_view url) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed || parsed->kind != StoreUrl::Kind::kSqlite) return std::nullopt;
    return parsed->path;
}

std::vector<std::string> Migrate(const std::string& url, bool dry_run, LogSink log) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed) throw StoreError(parsed.error().code, parsed.error().message);
    if (!dry_run) PrepareStoreDirectory(url);
    return Ask([&] { return MigrateStore(url, dry_run, StoreOptions{.log = std::move(log)}); });
}

void PrepareStoreDirectory(std::string_view url) {
    auto path = SqlitePath(url);
    if (!path) return;
    std::filesystem::path directory = std::filesystem::path(*path).parent_path();
    // Only the directory that is ours by name: elsewhere a missing one is more likely a mistake.
    if (directory.filename() != ".stint" || std::filesystem::exists(directory)) return;
    std::error_code error;
    std::filesystem::create_directory(directory, error);
    if (error) {
        throw StoreError(
            Code::kUnavailable,
            fmt::format("cannot make {}: {}", directory.string(), error.message())
        );
    }
    std::ofstream(directory / ".gitignore") << "# The data of Stint; not for version control.\n*\n";
}

}  // namespace stint::node
