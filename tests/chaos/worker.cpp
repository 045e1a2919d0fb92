// A worker of a chaos run: handlers that say in the journal what they do.
#include <fmt/format.h>

#include <condition_variable>
#include <csignal>
#include <mutex>

#include "base/clock.h"
#include "base/random.h"
#include "base/test_point.h"
#include "chaos.h"

namespace stint::chaos {

namespace {

// Parents and flows would be over before anything strikes them.
constexpr int kLinger = 40;

// Works for a while without sleeping blindly: a stop request ends it.
bool WorkFor(const std::stop_token& stop, int milliseconds) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    auto until = base::SystemClock().Now() + std::chrono::milliseconds{milliseconds};
    while (base::SystemClock().Now() < until && !stop.stop_requested()) {
        base::SystemClock().WaitUntil(lock, wake, stop, until);
    }
    return !stop.stop_requested();
}

void MustWorkFor(Context& context, int milliseconds) {
    if (!WorkFor(context.stop(), milliseconds)) throw Retryable("stopped");
}

Outcome<Done> DoWork(Journal& journal, Context& context, const Work& work) {
    std::int64_t claim = context.fencing_number();
    journal.Write(fmt::format("start {} {}", work.key, claim));
    if (!WorkFor(context.stop(), work.milliseconds)) {
        journal.Write(fmt::format("stopped {} {}", work.key, claim));
        return Failed{.message = "stopped"};
    }
    journal.Write(fmt::format("end {} {}", work.key, claim));
    return Done{work.key, claim};
}

void HandlePlain(Engine& engine, Journal& journal) {
    auto work = [&](Context& context, const Work& work) { return DoWork(journal, context, work); };
    engine.Handle(kWork, work);
    engine.Handle(kPress, work);
    engine.Handle(kInk, [&](Context& context, const Work& work) {
        context.Require(kInkName);
        return DoWork(journal, context, work);
    });
}

// ---- subtasks ----------------------------------------------------------------------------------

class Parent {
public:
    explicit Parent(Journal& journal) : journal_(&journal) {}

    Outcome<FamilyDone> Start(Context& context, const Family& family) {
        return Round(context, family, {.key = family.key, .fencing = 0, .rounds = {}});
    }
    Outcome<FamilyDone> Resume(Context& context, const Family& family) {
        return Gather(context, family);
    }
    Outcome<FamilyDone> Error(Context& context, const Family& family, const SubtaskFailure&) {
        return Gather(context, family);
    }

private:
    Outcome<FamilyDone> Gather(Context& context, const Family& family) {
        FamilyDone done{.key = family.key, .fencing = 0, .rounds = {}};
        // What was gathered before this wait is the checkpoint; it is the same wait after a crash.
        if (auto saved = context.checkpoint<FamilyDone>()) done = *saved;
        std::vector<ChildDone> outputs = context.OutputsOf(kChild);
        int round = outputs.empty() ? -1 : outputs.front().round;
        journal_->Write(fmt::format(
            "gather {} {} {} {}", family.key, context.fencing_number(), round, outputs.size()
        ));
        if (round == static_cast<int>(done.rounds.size())) done.rounds.push_back(outputs);
        if (static_cast<int>(done.rounds.size()) < family.rounds) {
            context.Checkpoint(done);
            return Round(context, family, done);
        }
        MustWorkFor(context, kLinger);
        done.fencing = context.fencing_number();
        return done;
    }

    Outcome<FamilyDone> Round(Context& context, const Family& family, const FamilyDone& done) {
        int round = static_cast<int>(done.rounds.size());
        MustWorkFor(context, kLinger);
        for (int i = 0; i < family.children; ++i) {
            int length =
                static_cast<int>(HashOf(fmt::format("{}/{}/{}", family.key, round, i)) % 60);
            Child child{family.key, round, i, length, family.black_sheep && i == 0};
            SubmitOptions options;
            if (child.dies) options.retry = Retry::ErrorIsFinal();
            context.Subtask(kChild, child, options);
        }
        return Blocked{.note = fmt::format("round {}", round)};
    }

    Journal* journal_;
};

void HandleFamilies(Engine& engine, Journal& journal) {
    engine.Handle(kParent, Parent(journal));
    engine.Handle(kChild, [](Context& context, const Child& child) -> Outcome<ChildDone> {
        MustWorkFor(context, child.milliseconds);
        if (child.dies) return Failed{.message = "the black sheep", .retryable = false};
        return ChildDone{child.round, child.index, context.fencing_number()};
    });
}

// ---- flows -------------------------------------------------------------------------------------

// What each step answered goes into the journal each time the function passes it.
class Traveller {
public:
    Traveller(Journal& journal, Flow& flow, std::string key, std::int64_t claim)
        : journal_(journal), flow_(flow), key_(std::move(key)), claim_(claim) {}

    Journeyed Travel(int number) {
        Effect("first");
        int twice = flow_.Call("call", kDouble, number);
        Saw("call", twice);
        flow_.Start("post", kPost, {flow_.id().value(), number});
        auto left = flow_.Start("left", kDouble, twice);
        auto right = flow_.Start("right", kDouble, twice + 1);
        flow_.AwaitAll(left, right);
        int sum = flow_.Await(left) + flow_.Await(right);
        Saw("sum", sum);
        flow_.Sleep("rest", std::chrono::milliseconds{20 + HashOf(key_) % 300});
        auto word = flow_.AwaitSignal<int>("word", kPatience);
        Saw("word", word.value_or(-1));
        std::string id = flow_.NewId("id");
        Saw("id", id);
        std::string stamp = Effect("last");
        return {key_, id, stamp, sum, word.value_or(-1)};
    }

private:
    std::string Effect(std::string_view name) {
        std::string stamp = flow_.Run(name, [&](const LocalStep& step) {
            journal_.Write(
                fmt::format("effect {} {} {} {}", key_, claim_, name, step.idempotency_key)
            );
            // Deaf to a stop, as the world is: what it says afterwards may be said too late.
            PauseUntil(base::SystemClock().Now() + std::chrono::milliseconds{kLinger});
            // Another one each time: what was recorded can be told from what was not.
            return fmt::format("{:016x}", base::SystemRandom().Next());
        });
        Saw(name, stamp);
        return stamp;
    }
    template <class T>
    void Saw(std::string_view name, const T& what) {
        journal_.Write(fmt::format("saw {} {} {} {}", key_, claim_, name, what));
    }

    Journal& journal_;
    Flow& flow_;
    const std::string key_;
    const std::int64_t claim_;
};

Outcome<Json> Untyped(Outcome<std::string> outcome) {
    return std::visit(
        []<class T>(T&& end) -> Outcome<Json> {
            if constexpr (std::is_same_v<std::remove_cvref_t<T>, std::string>) {
                return Json{std::forward<T>(end)};
            } else {
                return std::forward<T>(end);
            }
        },
        std::move(outcome)
    );
}

void HandleFlows(Engine& engine, Journal& journal) {
    engine.Handle(kFlow, [&](Context& context, const Json& input) -> Outcome<Json> {
        std::int64_t claim = context.fencing_number();
        auto flow = detail::EraseFlow<Journey, Journeyed>([&](Flow& flow, const Journey& journey) {
            return Traveller(journal, flow, journey.key, claim).Travel(journey.number);
        });
        return Untyped(detail::PlayFlow(context, input.text, flow));
    });
    engine.Handle(kDouble, [](Context& context, int number) {
        MustWorkFor(context, number % 40);
        return 2 * number;
    });
    engine.Handle(kPost, [&](Context& context, const Postcard& card) {
        // As long as the flow needs to come to the place where it waits for it.
        MustWorkFor(context, static_cast<int>(HashOf(std::to_string(card.flow)) % 250));
        auto said = engine.flows().Signal(TaskId(card.flow), "word", card.number, {.id = "card"});
        // A flow that is over has had it: this is the same signal again.
        if (!said && said.error().code != Code::kConflict) throw Retryable(said.error().message);
    });
}

// ---- events, schedules -------------------------------------------------------------------------

void HandleEvents(Engine& engine) {
    auto handle = [](Context& context, const Happening& event) {
        MustWorkFor(context, event.number % 30);
        return Done{event.key, context.fencing_number()};
    };
    engine.Handle(kLeft, handle);
    engine.Handle(kRight, handle);
    engine.Handle(kMore, handle);
    engine.Handle(kPair, [](Context& context, const Joined& joined) {
        return Done{joined.key, context.fencing_number()};
    });
}

// Whoever reaches the store first makes them.
void PutSchedules(Engine& engine) {
    engine.Handle(kTick, [](Context&, const Tick&) {});
    (void)engine.schedules().Put(
        kTicks,
        when::Every{kTickEvery},
        kTick,
        {},
        {.missed = {.kind = OnMissed::Kind::kAll, .limit = 1000}, .instant_field = "at"}
    );
    engine.Handle(kPart, [](Context& context, const int& length) { MustWorkFor(context, length); });
    std::vector<ScheduleStep> steps;
    for (const char* name : {"first", "second"}) {
        ScheduleStep& step = steps.emplace_back();
        step.name = name;
        step.on_failure = ScheduleStep::OnFailure::kContinue;
        for (int i = 0; i < kParts; ++i) step.tasks.push_back(Later(kPart, 20 * (i + 1)));
    }
    (void)engine.schedules().PutSteps(kStepped, when::Every{2s}, steps);
}

// Between two things that belong together there is little time to be struck: now and then there is
// more of it, at any of the moments that have a name.
void Dawdle() {
    base::SetTestPointListener([](std::string_view) {
        std::uint64_t chance = base::SystemRandom().Next() % 512;
        if (chance >= 32) return;
        PauseUntil(base::SystemClock().Now() + std::chrono::milliseconds{chance});
    });
}

LogSink IntoJournal(Journal& journal) {
    return [&journal](const LogRecord& record) {
        if (record.level < LogLevel::kWarn) return;
        std::string fields;
        for (const auto& [key, value] : record.fields) fields += fmt::format(" {}={}", key, value);
        journal.Write(fmt::format(
            "log {} {}: {}{}", LogLevelName(record.level), record.room, record.message, fields
        ));
    };
}

}  // namespace

int RunWorker(char** arguments) {
    Journal journal(arguments[1]);
    Options options = ChaosOptions(arguments[0]);
    options.node_name = arguments[2];
    options.state_dir = arguments[3];
    options.log = IntoJournal(journal);
    Engine engine = OpenEngine(options);
    HandlePlain(engine, journal);
    HandleFamilies(engine, journal);
    HandleFlows(engine, journal);
    HandleEvents(engine);
    PutSchedules(engine);
    Dawdle();
    // Signals wait from here on: who sees the line may send one.
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    journal.Write("up");
    return engine.RunUntilSignal();
}

}  // namespace stint::chaos
