// A submitter of a chaos run: asks for one thing after the other, each under its own key, at a
// steady pace.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "chaos.h"

namespace stint::chaos {

namespace {

// A submitter that was killed goes on where its journal ends.
int Acknowledged(const char* journal) {
    std::ifstream file(journal);
    std::string line;
    int count = 0;
    while (std::getline(file, line)) count += line.starts_with("accepted ") ? 1 : 0;
    return count;
}

class Submitter {
public:
    Submitter(const char* store, int longest)
        : engine_(OpenEngine(ChaosOptions(store))), longest_(longest) {}

    // What events and needs refer to is there before the first of them.
    bool Prepare() {
        return Insist(
                   [&]() -> Result<std::int64_t> {
                       auto press = engine_.resources().Set(kPressName, {.capacity = kPressUnits});
                       if (!press) return press.error();
                       auto ink = engine_.resources().Set(kInkName, {.capacity = kInkUnits});
                       if (!ink) return ink.error();
                       auto workflow = engine_.PutWorkflow(TheWorkflow());
                       if (!workflow) return workflow.error();
                       return 0;
                   }
        ).has_value();
    }

    // The number of the task or the event; nothing: it was refused.
    std::optional<std::int64_t> Ask(const std::string& key, int number) {
        return Insist([&] { return AskOnce(key, number); });
    }

private:
    // Repeated until it is acknowledged, the same each time.
    template <class Once>
    std::optional<std::int64_t> Insist(Once once) {
        while (true) {
            Result<std::int64_t> answer = once();
            if (answer) return *answer;
            if (answer.error().code == Code::kInvalid || answer.error().code == Code::kConflict) {
                fmt::print(stderr, "refused: {}\n", answer.error().message);
                return std::nullopt;
            }
            PauseUntil(base::SystemClock().Now() + 100ms);
        }
    }

    Result<std::int64_t> AskOnce(const std::string& key, int number) {
        SubmitOptions options{.idempotency_key = key};
        switch (KindOf(number)) {
            case Kind::kParent:
                return NumberOf(engine_.Submit(kParent, FamilyOf(key), options));
            case Kind::kFlow:
                return NumberOf(engine_.Submit(
                    kFlow, Json{Codec<Journey>::Encode({key, number % 1000})}, options
                ));
            case Kind::kEvent:
                return NumberOf(engine_.Publish(
                    kHappened, HappeningOf(key, number), {.source = kSource, .id = key}
                ));
            case Kind::kPress:
                options.needs = std::vector<ResourceNeed>{{kPressName, PressUnits(key)}};
                return NumberOf(engine_.Submit(kPress, WorkOf(key), options));
            case Kind::kInk:
                return NumberOf(engine_.Submit(kInk, WorkOf(key), options));
            case Kind::kWork:
                break;
        }
        return NumberOf(engine_.Submit(kWork, WorkOf(key), options));
    }

    Work WorkOf(const std::string& key) const {
        return {key, static_cast<int>(HashOf(key) % static_cast<std::uint64_t>(longest_))};
    }
    template <class Out>
    static Result<std::int64_t> NumberOf(const Result<Run<Out>>& run) {
        if (!run) return run.error();
        return run->id().value();
    }
    static Result<std::int64_t> NumberOf(const Result<EventNo>& event) {
        if (!event) return event.error();
        return event->value();
    }

    Engine engine_;
    const int longest_;
};

}  // namespace

int RunSubmit(char** arguments) {
    int begin = Acknowledged(arguments[1]);
    Journal journal(arguments[1]);
    int count = std::stoi(arguments[2]);
    std::string prefix = arguments[3];
    std::chrono::nanoseconds every = std::chrono::nanoseconds{1s} / std::stoi(arguments[4]);
    Submitter submitter(arguments[0], std::stoi(arguments[5]));
    if (!submitter.Prepare()) return 1;
    base::Instant next = base::SystemClock().Now();
    const std::string enough = std::string(arguments[1]) + ".enough";
    for (int i = begin; i < count; ++i) {
        // The one that a killed submitter may have had accepted, unheard, is asked for in any case:
        // what is stored and in no journal would look like a task that is there twice.
        if (i > begin && std::filesystem::exists(enough)) break;
        std::string key = fmt::format("{}-{}-{}", KindName(KindOf(i)), prefix, i);
        PauseUntil(next += every);
        auto number = submitter.Ask(key, i);
        if (!number) return 1;
        journal.Write(fmt::format("accepted {} {}", key, *number));
    }
    journal.Write("all");
    return 0;
}

}  // namespace stint::chaos
