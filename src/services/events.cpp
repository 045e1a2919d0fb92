#include "services/events.h"

#include <algorithm>

#include "base/result.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "engine/store_failure.h"
#include "model/limits.h"
#include "store/event_words.h"
#include "store/quiet.h"

namespace stint::services {

namespace limits = model::limits;
using store::Action;
using store::EventOutcome;
using store::FireReply;
using store::FiringRecord;

namespace {

constexpr Duration kFirstLater = std::chrono::seconds{1};
constexpr int kDoublings = 6;  // then every minute
constexpr int kTidiesPerCycle = 20;
constexpr Duration kFirstPause = std::chrono::milliseconds{50};
constexpr Duration kLongestPause = std::chrono::seconds{1};
constexpr int kAwayInARow = 3;  // then it is the store, not the event
using PublishId = RandomId<struct PublishIdTag>;

// For as long as it waits: after a second, two, four, … a minute.
Duration LaterAfter(int tries) {
    return kFirstLater * (1 << std::clamp(tries - 1, 0, kDoublings));
}

}  // namespace

EventService::EventService(
    store::Store& store,
    wake::Wake& wake,
    base::Clock& clock,
    base::Random& random,
    EventServiceOptions options
)
    : store_(store),
      wake_(wake),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      log_(options_.log, "events"),
      idle_(options_.poll.min) {
    subscription_ = wake_.Subscribe([this](const wake::Hint& hint) { Hear(hint); });
}

EventService::~EventService() {
    Stop();
    wake_.Unsubscribe(subscription_);
}

void EventService::Hear(const wake::Hint& hint) {
    using Kind = wake::Hint::Kind;
    if (hint.kind == Kind::kTaskAvailable) return;
    if (hint.kind == Kind::kTaskFinished) {
        // It may be a member of a join.
        std::lock_guard guard(mutex_);
        if (definitions_ && !definitions_->has_joins()) return;
    }
    told_ = true;
    pulse_.Poke();
}

void EventService::Start() {
    thread_ = base::StartThread([this](std::stop_token stop) {
        while (!stop.stop_requested()) pulse_.Wait(clock_, stop, RunOnce());
    });
}

void EventService::Stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
}

base::Instant EventService::Later(Duration time) {
    double share = 0.8 + 0.4 * random_.Fraction();
    return clock_.Now() +
           Duration(static_cast<std::int64_t>(static_cast<double>(time.count()) * share));
}

base::Instant EventService::RunOnce() {
    try {
        base::Instant next = Process();
        if (clock_.Now() >= tidy_at_) {
            Tidy();
            tidy_at_ = Later(options_.tidy_every);
        }
        if (failing_) log_.Info("events are processed again");
        failing_ = false;
        return std::min(next, tidy_at_);
    } catch (const std::exception& error) {
        told_ = true;
        if (!failing_) log_.Warn("events cannot be processed now", {{"error", error.what()}});
        failing_ = true;
        return Later(options_.error_wait);
    }
}

base::Instant EventService::Process() {
    if (!told_.exchange(false)) {
        auto quiet = store::QuietFor(store_, &store::Quiet::events, looked_);
        if (quiet) return clock_.Now() + std::min(*quiet, options_.poll.max);
    }
    looked_ = base::SystemClock().Now();
    store::NextEventsReply next = store_.Events().NextEvents({.taken = options_.taken});
    // Also without events: whether finished tasks are worth a look depends on them.
    std::shared_ptr<const Definitions> definitions = At(next.revision);
    if (next.events.empty()) {
        base::Instant again = Later(idle_);
        idle_ = std::min(2 * idle_, options_.poll.max);
        return again;
    }
    idle_ = options_.poll.min;
    // In pieces: what one event fires may be large, and what many fire is not held together.
    std::vector<EventOutcome> piece;
    std::size_t bytes = 0;
    for (const model::EventRecord& event : next.events) {
        piece.push_back(OutcomeOf(event, *definitions, next.now, bytes));
        if (bytes < limits::kStatementBytes && &event != &next.events.back()) continue;
        base::TestPoint("events.before_fire");
        Fire(piece);
        piece.clear();
        bytes = 0;
    }
    return clock_.Now();
}

// ---- definitions ----

std::shared_ptr<const Definitions> EventService::At(std::int64_t revision) {
    {
        std::lock_guard guard(mutex_);
        if (definitions_ && revision_ == revision) return definitions_;
    }
    auto read = std::make_shared<const Definitions>(store_.Events().Workflows());
    std::lock_guard guard(mutex_);
    definitions_ = read;
    // They are at least as new as the revision; if newer, they are read once more.
    revision_ = revision;
    read_at_ = clock_.Now();
    return read;
}

std::shared_ptr<const Definitions> EventService::Recent() {
    {
        std::lock_guard guard(mutex_);
        if (definitions_ && clock_.Now() < read_at_ + options_.poll.max) return definitions_;
    }
    return At(-1);
}

// ---- what an event fires ----

EventOutcome EventService::OutcomeOf(
    const model::EventRecord& event, const Definitions& definitions, Time now, std::size_t& bytes
) {
    EventOutcome outcome;
    outcome.event = event.no;
    outcome.later = LaterAfter(event.tries);
    outcome.last =
        now - event.published_at > limits::kEventPatience && event.tries > limits::kEventTries;
    outcome.refusal = model::TooDeep(event.depth);
    if (!outcome.refusal.empty()) return outcome;
    outcome.wait = definitions.Unreadable(event.tenant);
    Definitions::Wants wants;
    if (event.type == model::kTaskComplete) {
        auto task = store_.Get(store::CompletedBy(event));
        if (task) wants = definitions.ArrivalsOf(*task);
        if (!task) wants.refusal = "the task that it is about is kept no longer";
    } else {
        wants = definitions.ActionsFor(event);
    }
    bytes += wants.bytes;
    outcome.actions = std::move(wants.actions);
    outcome.refusal = std::move(wants.refusal);
    if (!outcome.refusal.empty()) outcome.wait.clear();
    KeepTenantsApart(event.tenant, outcome.actions);
    return outcome;
}

// An event finishes tasks of its own tenant; the others are not there for it.
void EventService::KeepTenantsApart(TenantId tenant, std::vector<Action>& actions) {
    for (Action& action : actions) {
        auto* finish = std::get_if<Action::Finish>(&action.what);
        if (finish == nullptr) continue;
        finish->jitter = random_.Fraction();
        TaskId id = finish->what.task;
        auto task = store_.Get(id);
        if (task && task->tenant == tenant) continue;
        action.what = Action::Refusal{fmt::format("there is no task {}", id.value())};
    }
}

// Together; if that does not work, each alone, so that one that the store cannot take holds up no
// other. What was not done comes again by itself.
void EventService::Fire(std::span<const EventOutcome> outcomes) {
    if (outcomes.size() > 1) {
        try {
            Tell(store_.Events().Fire(outcomes));
            return;
        } catch (const store::CommitUnknown&) {
            throw;
        } catch (const std::exception& error) {
            log_.Warn("events are processed one by one", {{"error", error.what()}});
        }
    }
    int away = 0;  // in a row
    for (const EventOutcome& outcome : outcomes) {
        try {
            Tell(store_.Events().Fire({&outcome, 1}));
            away = 0;
        } catch (const store::CommitUnknown&) {
            throw;
        } catch (const store::Unavailable&) {
            // It may be this event alone: a lock that somebody holds, say.
            if (++away == kAwayInARow) throw;
        } catch (const store::Unstorable& error) {
            NoteFailure(outcome, error.what(), limits::kFailedTries);
        } catch (const std::exception& error) {
            NoteFailure(outcome, error.what(), limits::kEventTries);
        }
    }
    if (away > 0) throw store::Unavailable("the store could not take the last events");
}

// The store cannot take what the event fires: that is said with the event, which comes again and is
// refused when it has had so many tries.
void EventService::NoteFailure(const EventOutcome& failed, const std::string& why, int tries) {
    log_.Warn(
        "the store cannot take what an event fires",
        {{"event", failed.event.ToString()}, {"error", why}}
    );
    auto event = store_.Events().GetEvent(failed.event);
    if (!event) return;
    EventOutcome note;
    note.event = failed.event;
    note.later = failed.later;
    std::string reason = "the store cannot take what it fires: " + why;
    (event->tries >= tries ? note.refusal : note.wait) = std::move(reason);
    Tell(store_.Events().Fire({&note, 1}));
}

void EventService::Tell(std::span<const FireReply> replies) {
    std::vector<wake::Hint> hints;
    for (const FireReply& reply : replies) {
        for (const std::string& queue : reply.queues) {
            hints.push_back({wake::Hint::Kind::kTaskAvailable, queue, {}});
        }
        for (const FiringRecord& fired : reply.fired) {
            if (fired.kind == FiringRecord::Kind::kFinished) {
                hints.push_back({wake::Hint::Kind::kTaskFinished, {}, fired.task});
            }
            if (fired.kind != FiringRecord::Kind::kRefused) continue;
            log_.Warn(
                "an event matched, but its action is refused",
                {{"event", fired.event.ToString()},
                 {"workflow", fired.workflow},
                 {"trigger", fired.trigger},
                 {"why", fired.message}}
            );
        }
    }
    if (!hints.empty()) wake_.Signal(hints);
}

void EventService::Tidy() {
    for (int i = 0; i < kTidiesPerCycle; ++i) {
        store::TidyReply reply = store_.Events().Tidy({});
        for (const model::JoinInstance& join : reply.expired) {
            log_.Warn(
                "a join has expired",
                {{"workflow", join.key.workflow},
                 {"join", join.key.join},
                 {"key", join.key.key},
                 {"why", join.message}}
            );
        }
        if (!reply.more) return;
    }
}

// ---- publishing ----

namespace {

Result<EventNo> Number(const store::PublishReply& reply) {
    using Kind = store::PublishReply::Kind;
    if (reply.kind == Kind::kInvalid) return Error{Code::kInvalid, reply.message};
    if (reply.kind == Kind::kConflict) return Error{Code::kConflict, reply.message};
    if (reply.refused) {
        return base::MakeError(Code::kLimit, "event {} {}", reply.no.value(), reply.message);
    }
    return reply.no;
}

}  // namespace

Result<EventNo> EventService::Publish(model::NewEvent event) {
    if (event.id.empty()) event.id = random_.MakeId<PublishId>().ToString();
    store::PublishReply reply;
    try {
        reply = Surely([&] { return store_.Events().Publish({&event, 1}).at(0); });
    } catch (const std::exception& error) {
        return engine::StoreFailure(error);
    }
    auto no = Number(reply);
    if (!no) return no;
    wake::Hint hint{wake::Hint::Kind::kEventPublished, {}, {}};
    if (reply.kind == store::PublishReply::Kind::kAccepted) wake_.Signal({&hint, 1});
    return no;
}

// The event's id makes a second time harmless.
template <class Work>
std::invoke_result_t<Work> EventService::Surely(Work work) {
    const base::Instant until = clock_.Now() + limits::kReadBack;
    std::string unknown;  // why the first one that may have happened has no answer
    for (Duration pause = Duration::zero();; pause = std::min(2 * pause, kLongestPause)) {
        try {
            return work();
        } catch (const store::CommitUnknown& error) {
            if (unknown.empty()) unknown = error.what();
        } catch (const store::Unavailable&) {
            if (unknown.empty()) throw;
        }
        if (clock_.Now() < until) {
            // At once for the first time, then with growing pauses.
            if (pause > Duration::zero()) engine::Pulse().Wait(clock_, {}, clock_.Now() + pause);
            if (pause == Duration::zero()) pause = kFirstPause / 2;
            continue;
        }
        throw store::CommitUnknown(fmt::format(
            "{}; the store could not be asked again within {} s, so the event may or may not be "
            "stored: publish it again with the same source and id, which is safe",
            unknown,
            std::chrono::duration_cast<std::chrono::seconds>(limits::kReadBack).count()
        ));
    }
}

// ---- in this process ----

Result<std::vector<FiringRecord>> EventService::HandleHere(const model::NewEvent& event) {
    if (auto valid = Validate(event); !valid) return valid.error();
    model::EventRecord record;
    record.tenant = event.tenant;
    record.source = event.source;
    record.id = event.id;
    record.type = event.type;
    record.data = event.data;
    record.cause = event.cause;
    record.time = event.time.value_or(store_.Now());
    std::shared_ptr<const Definitions> definitions = Recent();
    if (std::string why = definitions->Unreadable(event.tenant); !why.empty()) {
        return Error{Code::kUnavailable, why + "; publish it without in_process"};
    }
    Definitions::Wants wants = definitions->ActionsFor(record);
    if (!wants.refusal.empty()) return Error{Code::kLimit, "the event " + wants.refusal};
    if (wants.actions.empty()) return std::vector<FiringRecord>();
    KeepTenantsApart(event.tenant, wants.actions);
    return FireHere(event, std::move(wants.actions));
}

// What it fires is done and recorded in one transaction. The record makes tasks that follow from it
// as deep as they are, and a second time harmless.
Result<std::vector<FiringRecord>> EventService::FireHere(
    const model::NewEvent& event, std::vector<Action> actions
) {
    EventOutcome outcome;
    outcome.actions = std::move(actions);
    outcome.last = true;
    outcome.here = event;
    outcome.here->data = "null";  // they stay in this process
    if (event.id.empty()) outcome.here->id = random_.MakeId<PublishId>().ToString();
    FireReply reply = Surely([&] { return store_.Events().Fire({&outcome, 1}).at(0); });
    auto no = Number(reply.published.value_or(store::PublishReply()));
    if (!no) return no.error();
    Tell({&reply, 1});
    if (reply.published->kind == store::PublishReply::Kind::kAccepted) return reply.fired;
    store::FiringFilter before;
    before.event = *no;
    before.limit = limits::kListPage;
    return store_.Events().Firings(before);
}

}  // namespace stint::services
