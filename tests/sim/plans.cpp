#include "sim/plans.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <system_error>

#include "base/check.h"
#include "services/steps.h"

namespace stint::sim {

namespace {

using Output = Outcome<std::string>;
using std::chrono::milliseconds;

constexpr std::string_view kPrefix = "{\"n\":";
constexpr int kSlices = 4;

// The oracle knows which handlers run, also when one is torn away by a crash.
class Watched {
public:
    Watched(Setting& setting, Context& context)
        : setting_(setting),
          task_(context.id()),
          claim_no_(static_cast<int>(context.fencing_number())) {
        setting_.oracle.HandlerStarted(task_, claim_no_, context.stop());
    }
    ~Watched() { setting_.oracle.HandlerEnded(task_, claim_no_); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

private:
    Setting& setting_;
    const TaskId task_;
    const int claim_no_;
};

Output Done() {
    return Output(std::in_place_index<0>, "{\"ok\":true}");
}

// Works through its time in slices. False: it was asked to stop and obeys.
bool WorkThrough(Setting& setting, Context& context, const Plan& plan) {
    Virtual slice = Virtual(plan.work) / kSlices;
    const bool leaves_traces = context.type() != kTx && context.id().value() % 3 == 0;
    for (int i = 0; i < kSlices; ++i) {
        if (context.stop().stop_requested() && !plan.ignores_stop) return false;
        if (i % 2 == 1) context.Progress("slice", i, kSlices);
        setting.world.Point("handler.works");
        if (slice > Virtual::zero()) setting.world.Sleep(slice);
        // Also by one who has slept through the end of its lease.
        if (leaves_traces) context.Checkpoint(context.fencing_number());
    }
    return !context.stop().stop_requested() || plan.ignores_stop;
}

// The host's own write (the effect) and the completion, together or not at all.
Output CompleteTogether(Setting& setting, Context& context, store::Store& store) {
    Result<void> written;
    try {
        written = store.Write([&](store::Transaction& inner) -> Result<void> {
            setting.oracle.StageEffect(context.id());
            Transaction transaction(&inner);
            return context.CompleteIn(transaction);
        });
    } catch (const std::exception& error) {
        throw Retryable(error.what());
    }
    if (!written) return Failed{written.error().message};
    return Done();
}

// Some of them fail, and what that means is drawn as well.
Output MakeSubtasks(Setting& setting, Context& context, PlanBook& plans) {
    constexpr Task<Json, Json> kSubtask{kWork};
    constexpr std::array kBehaviours = {
        Behaviour::kSucceed,
        Behaviour::kSucceed,
        Behaviour::kFailRetryable,
        Behaviour::kFailFinally,
        Behaviour::kBlock,
    };
    base::SeededRandom& random = setting.world.random();
    for (auto left = 1 + random.Below(3); left > 0; --left) {
        Plan plan;
        plan.behaviour = kBehaviours.at(random.Below(kBehaviours.size()));
        // In a run about families long enough for somebody to look in.
        plan.work = milliseconds{random.Below(setting.focus == Focus::kFamilies ? 3'000 : 300)};
        context.Subtask(kSubtask, {PlanBook::Input(plans.Add(plan))});
    }
    return Blocked{
        .on_failure = static_cast<OnFailure>(random.Below(3)), .any = random.Below(4) == 0};
}

Output Misbehave(Setting& setting, Context& context, const Plan& plan, PlanBook& plans) {
    switch (plan.behaviour) {
        case Behaviour::kSucceed:
            break;
        case Behaviour::kFailRetryable:
            return Failed{"simulated failure"};
        case Behaviour::kFailFinally:
            return Failed{"simulated final failure", false};
        case Behaviour::kThrow:
            throw std::logic_error("simulated exception");
        case Behaviour::kThrowIo:
            throw std::system_error(std::make_error_code(std::errc::io_error));
        case Behaviour::kThrowOdd:
            throw 42;
        case Behaviour::kSnooze:
            return Snooze{milliseconds{700}};
        case Behaviour::kBackground: {
            auto token = LeaseToken::Parse(context.completion_token());
            CHECK(token.has_value());
            plans.handed.push_back({context.id(), *token});
            return Background{"outside", std::chrono::seconds{4}};
        }
        case Behaviour::kBlock:
            return MakeSubtasks(setting, context, plans);
        case Behaviour::kCrashProcess:
            setting.world.Kill(setting.world.process());
            setting.world.Point("handler.crash");
            break;
    }
    return Done();
}

// Nobody has planned it, and nobody is in a hurry: others shall find it running.
Plan RawPlan(Setting& setting) {
    base::SeededRandom& random = setting.world.random();
    Plan plan;
    plan.behaviour = random.Below(2) == 0 ? Behaviour::kFailRetryable : Behaviour::kSnooze;
    plan.until = 1 + static_cast<int>(random.Below(6));
    plan.work = milliseconds{random.Below(1'500)};
    return plan;
}

// Items and a checkpoint. One that has lost its task may read what its successor has saved.
void LeaveTraces(Setting& setting, Context& context) {
    (void)context.checkpoint<std::int64_t>();
    for (int i = 0; i < 3; ++i) {
        context.Item({.key = std::to_string(i), .action = "seen"});
        setting.world.Point("handler.items");
    }
    context.Checkpoint(context.fencing_number());
}

Output Behave(
    Setting& setting, Context& context, std::string_view input, PlanBook& plans, store::Store& store
) {
    Watched watched(setting, context);
    Plan plan = context.type() == kRaw ? RawPlan(setting) : plans.Of(input);
    bool leaves = plan.behaviour == Behaviour::kBackground || plan.behaviour == Behaviour::kBlock;
    if (context.type() == kTx && leaves) {
        plan.behaviour = Behaviour::kSnooze;  // its completion is the transaction's, nobody else's
    }
    if (context.type() == kBrisk) LeaveTraces(setting, context);
    if (!WorkThrough(setting, context, plan)) {
        // Obedient handlers differ: some throw, some return what they have.
        if (context.id().value() % 2 == 0) throw std::runtime_error("stopped as asked");
        return Failed{"stopped as asked"};
    }
    if (plan.behaviour == Behaviour::kBlock && context.stage() != Stage::kStart) {
        plan.behaviour = Behaviour::kSucceed;
    }
    if (plan.behaviour != Behaviour::kSucceed && context.fencing_number() < plan.until) {
        return Misbehave(setting, context, plan, plans);
    }
    if (context.type() == kTx) return CompleteTogether(setting, context, store);
    if (!context.stop().stop_requested()) {
        setting.oracle.HandlerSucceeds(context.id(), static_cast<int>(context.fencing_number()));
    }
    return Done();
}

}  // namespace

std::int64_t PlanBook::Add(Plan plan) {
    plans_.push_back(plan);
    return static_cast<std::int64_t>(plans_.size()) - 1;
}

Plan PlanBook::Of(std::string_view input) const {
    std::int64_t marker = Marker(input);
    if (marker < 0 || marker >= static_cast<std::int64_t>(plans_.size())) return {};
    return plans_[static_cast<std::size_t>(marker)];
}

std::string PlanBook::Input(std::int64_t marker) {
    return fmt::format("{}{}}}", kPrefix, marker);
}

std::int64_t PlanBook::Marker(std::string_view input) {
    if (!input.starts_with(kPrefix)) return -1;
    std::int64_t marker = -1;
    std::from_chars(input.data() + kPrefix.size(), input.data() + input.size(), marker);
    return marker;
}

namespace {

// The oracle hears of it as of every other handler.
engine::HandlerEntry WatchedSteps(Setting& setting, const model::RetryPolicy& retry) {
    engine::HandlerEntry entry = services::StepsHandler();
    entry.defaults.retry = retry;
    entry.handler = [&setting, inner = entry.handler](Context& context, std::string_view input) {
        Watched watched(setting, context);
        return inner(context, input);
    };
    return entry;
}

}  // namespace

void FillRegistry(
    engine::Registry& registry, Setting& setting, PlanBook& plans, store::Store& store
) {
    model::RetryPolicy retry;
    retry.max_attempts = 6;
    retry.first_delay = std::chrono::milliseconds{300};
    retry.max_delay = std::chrono::seconds{3};
    for (std::string_view type : {kWork, kBrisk, kTx, kRaw, kLeft, kRight, kJoined}) {
        model::TypeDefaults defaults;
        defaults.type = type;
        defaults.retry = retry;
        if (type == kBrisk) {
            defaults.queue = "brisk";
            defaults.timeout = std::chrono::milliseconds{1'500};
            defaults.retry.on = model::RetryPolicy::On::kAll;
        }
        registry.Add(
            {.type = std::string(type),
             .defaults = defaults,
             .handler = [&setting, &plans, &store](
                            Context& context, std::string_view input
                        ) { return Behave(setting, context, input, plans, store); }}
        );
    }
    retry.max_attempts = 0;  // whatever the weather: what began goes on
    registry.Add(WatchedSteps(setting, retry));
}

}  // namespace stint::sim
