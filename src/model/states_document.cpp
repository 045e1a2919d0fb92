// Prints docs/internals/states.md from the transition table.
#include <fmt/format.h>

#include <array>

#include "model/state.h"

namespace stint::model {

namespace {

constexpr std::array kMeaning = {
    "waiting to be claimed, due or not",
    "held by a worker, under a lease",
    "waits for subtasks",
    "runs outside the engine and is completed from outside",
    "succeeded; with a warning flag where there is something to look at",
    "failed, will be tried again when due",
    "stopped by request",
    "failed for good, with a reason",
};
static_assert(kMeaning.size() == kStateCount);

std::string_view Code(std::optional<State> state) {
    return state ? StateCode(*state) : std::string_view{"(none)"};
}

void AppendStates(std::string& text) {
    text += "## States\n\n| State | Number | Terminal | Meaning |\n|---|---|---|---|\n";
    for (int i = 0; i < kStateCount; ++i) {
        auto state = static_cast<State>(i);
        text += fmt::format(
            "| {} | {} | {} | {} |\n",
            StateCode(state),
            i,
            IsTerminal(state) ? "yes" : "",
            kMeaning[i]
        );
    }
}

void AppendChart(std::string& text) {
    text += "\n## Chart\n\n```mermaid\nstateDiagram-v2\n";
    for (const Transition& t : Transitions()) {
        std::string_view from = t.from ? StateCode(*t.from) : std::string_view{"[*]"};
        text += fmt::format("    {} --> {} : {}\n", from, StateCode(t.to), EventName(t.event));
    }
    for (int i = 0; i < kStateCount; ++i) {
        if (IsTerminal(static_cast<State>(i))) {
            text += fmt::format("    {} --> [*]\n", StateCode(static_cast<State>(i)));
        }
    }
    text += "```\n";
}

void AppendTransitions(std::string& text) {
    text +=
        "\n## Transitions\n\n| From | Event | To | Made by | What happens "
        "|\n|---|---|---|---|---|\n";
    for (const Transition& t : Transitions()) {
        text += fmt::format(
            "| {} | `{}` | {} | {} | {} |\n",
            Code(t.from),
            EventName(t.event),
            StateCode(t.to),
            t.who,
            t.what
        );
    }
}

void AppendMatrix(std::string& text) {
    text += "\n## Every pair\n\nAn empty cell is refused.\n\n| Event | (none) |";
    for (int s = 0; s < kStateCount; ++s)
        text += fmt::format(" {} |", StateCode(static_cast<State>(s)));
    text += "\n|---|---|";
    for (int s = 0; s < kStateCount; ++s) text += "---|";
    text += '\n';
    for (int e = 0; e < kEventCount; ++e) {
        auto event = static_cast<Event>(e);
        text += fmt::format("| `{}` |", EventName(event));
        for (int s = -1; s < kStateCount; ++s) {
            auto from = s < 0 ? std::nullopt : std::optional(static_cast<State>(s));
            auto to = Next(from, event);
            text += to ? fmt::format(" {} |", StateCode(*to)) : std::string("  |");
        }
        text += '\n';
    }
}

}  // namespace

std::string StatesDocument() {
    std::string text =
        "# The states of a task\n\n"
        "This page is printed from the transition table in `src/model/state.cpp`; do not edit it. "
        "A test\n"
        "compares the two; `STINT_UPDATE_DOCS=1` in the environment of `model_test` rewrites this "
        "page.\n\n"
        "A task moves only along these transitions, and each one leaves exactly one audit entry in "
        "the\n"
        "same transaction. A task that waits for its due time, a resource or a free worker stays "
        "OPEN:\n"
        "`explain` names what it waits for. The claim of a task in ERROR records two transitions,\n"
        "`retry_due` and `claim`. A cancel of a running task only raises a flag; its end records "
        "the\n"
        "transition.\n\n";
    AppendStates(text);
    AppendChart(text);
    AppendTransitions(text);
    AppendMatrix(text);
    return text;
}

}  // namespace stint::model
