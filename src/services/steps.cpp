#include "services/steps.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "base/planted_bug.h"
#include "engine/context.h"
#include "model/steps.h"

namespace stint::services {

namespace {

using base::Bug;
using base::Planted;
using model::Step;
using model::StepsInput;

// What is saved before a step begins.
struct Place {
    std::size_t step = 0;         // that is about to begin
    std::int64_t after_wait = 0;  // the first task of the wait before it; 0 = there was none
    int failed = 0;               // tasks of the steps before it
    std::string first_failure;

    Json Encode() const {
        return Json{base::JsonText(base::Json{
            {"step", step},
            {"after_wait", after_wait},
            {"failed", failed},
            {"first_failure", first_failure}})};
    }
    static Place Decode(const Json& saved) {
        base::Json json = base::ReadJson(saved.text);
        Place place;
        place.step = json.at("step").get<std::size_t>();
        place.after_wait = json.at("after_wait").get<std::int64_t>();
        place.failed = json.at("failed").get<int>();
        place.first_failure = json.at("first_failure").get<std::string>();
        return place;
    }
};

class Execution {
public:
    Execution(engine::AttemptContext& context, StepsInput input)
        : context_(context), input_(std::move(input)) {}

    Outcome<std::string> Run() {
        Place place;
        if (auto saved = context_.checkpoint<Json>()) place = Place::Decode(*saved);
        // An operator's retry begins with the step that has failed.
        if (context_.stage() == Stage::kStart) return Begin(place);
        std::int64_t wait = WaitNow();
        // It was about to begin, and nobody knows more: the wait is still the one before it.
        if (wait == place.after_wait && !Planted(Bug::kStepSkipped)) return Begin(place);
        return End(place, wait);
    }

private:
    std::int64_t WaitNow() {
        const std::vector<WaitedTask>& waited = context_.waited();
        return waited.empty() ? 0 : waited.front().id.value();
    }

    // All tasks of the step are over.
    Outcome<std::string> End(Place place, std::int64_t wait) {
        const Step& step = input_.steps.at(place.step);
        int failed = 0;
        for (const WaitedTask& one : context_.waited()) {
            if (!one.finished || one.complete) continue;
            if (++failed == 1 && place.first_failure.empty()) {
                place.first_failure = Describe(step, one);
            }
        }
        place.failed += failed;
        if (failed > 0 && !step.go_on) {
            return Failed{
                .message = fmt::format(
                    "step {}/{} {}: {} of {} tasks failed; the first: {}",
                    place.step + 1,
                    input_.steps.size(),
                    step.name,
                    failed,
                    context_.waited().size(),
                    place.first_failure
                ),
                .retryable = false,
                .klass = "step_failed"};
        }
        ++place.step;
        place.after_wait = wait;
        if (place.step < input_.steps.size()) return Begin(place);
        if (place.failed > 0) {
            context_.Warn(
                fmt::format("{} tasks failed; the first: {}", place.failed, place.first_failure)
            );
        }
        return Outcome<std::string>(
            std::in_place_index<0>,
            base::JsonText(base::Json{{"steps", input_.steps.size()}, {"failed", place.failed}})
        );
    }

    Outcome<std::string> Begin(const Place& place) {
        const Step& step = input_.steps.at(place.step);
        context_.Checkpoint(place.Encode());
        for (model::NewTask task : step.tasks) {
            task.actor = input_.actor;
            task.tags.insert(task.tags.end(), input_.tags.begin(), input_.tags.end());
            task.tags.push_back("step:" + step.name);
            context_.AddTask(std::move(task));
        }
        return Blocked{
            .on = {},
            .on_failure = OnFailure::kWaitForAll,
            .any = Planted(Bug::kStepEndsEarly),
            .note = fmt::format("step {}/{} {}", place.step + 1, input_.steps.size(), step.name)};
    }

    std::string Describe(const Step& step, const WaitedTask& one) {
        auto failure = context_.FailureOf(one.id);
        return fmt::format(
            "task {} of step {}: {}",
            one.task.value(),
            step.name,
            failure ? failure->message : std::string("it has begun anew")
        );
    }

    engine::AttemptContext& context_;
    const StepsInput input_;
};

Outcome<std::string> Handle(Context& context, std::string_view text) {
    auto* ours = dynamic_cast<engine::AttemptContext*>(&context);
    CHECK(ours != nullptr);
    auto input = model::DecodeStepsInput(text);
    if (!input) {
        return Failed{
            .message = input.error().message, .retryable = false, .klass = "steps_invalid"};
    }
    return Execution(*ours, std::move(*input)).Run();
}

}  // namespace

engine::HandlerEntry StepsHandler() {
    engine::HandlerEntry entry;
    entry.type = model::kStepsType;
    entry.handler = &Handle;
    return entry;
}

}  // namespace stint::services
