// The roles of a chaos run, driven by chaos.py:
//
//   stint_chaos worker STORE JOURNAL NAME STATE_DIR   works until it is killed or told to stop
//   stint_chaos submit STORE JOURNAL COUNT PREFIX PER_SECOND LONGEST_MS
//                                                     asks COUNT times, each under its own key, or
//                                                     until there is a file JOURNAL.enough
//   stint_chaos count  STORE    prints how much is not over yet, and how many executions are
//   stint_chaos calm   STORE    pauses the schedules, so that work comes to an end
//   stint_chaos check  STORE JOURNAL_DIR              merges the journals with the store
//
// With STINT_CHAOS_BUG=NAME a planted bug is switched on, where the build has them: a check that
// has never failed proves nothing.
#include <fmt/format.h>

#include <cstdlib>

#include "base/planted_bug.h"
#include "evidence.h"
#include "node/open_store.h"
#include "store/events.h"
#include "store/schedules.h"

namespace stint::chaos {

namespace {

struct Left {
    std::int64_t tasks = 0, unfinished = 0, events = 0, executions = 0;
    friend bool operator==(const Left&, const Left&) = default;
};

Left LookOnce(store::Store& store) {
    Left left;
    for (const auto& [key, count] : store.Counts({})) {
        left.tasks += count;
        if (!model::IsTerminal(key.state)) left.unfinished += count;
        if (key.type == model::kStepsType && key.state == model::State::kComplete) {
            left.executions += count;
        }
    }
    for (const auto& [key, count] : store.Events().CountEvents()) {
        if (key.state == model::EventState::kPending) left.events += count;
    }
    return left;
}

bool Plant(const char* name) {
#ifdef STINT_PLANTED_BUGS
    base::Bug bug = base::BugNamed(name);
    if (bug == base::Bug::kNone) return false;
    base::PlantBug(bug);
    return true;
#else
    (void)name;
    return false;
#endif
}

}  // namespace

// Twice the same: an event that was taken between the two counts has left its mark in one of them.
int RunCount(char** arguments) {
    auto store = node::OpenStore(arguments[0], {});
    Left left = LookOnce(*store);
    Left again = LookOnce(*store);
    bool quiet = left == again && left.unfinished == 0 && left.events == 0;
    fmt::print(
        "{} {} {} {}\n", quiet ? "quiet" : "busy", again.unfinished, again.events, again.executions
    );
    return 0;
}

int RunCalm(char** arguments) {
    auto store = node::OpenStore(arguments[0], {});
    for (const char* name : {kTicks, kStepped}) {
        store->Schedules().SetPaused(kDefaultTenant, name, true, "chaos");
    }
    return 0;
}

int RunCheck(char** arguments) {
    Findings findings;
    auto store = node::OpenStore(arguments[0], {});
    Evidence evidence(*store, arguments[1], findings);
    CheckEveryTask(evidence, findings);
    CheckPlain(evidence, findings);
    CheckResources(evidence, findings);
    CheckSchedules(evidence, findings);
    CheckFamilies(evidence, findings);
    CheckFlows(evidence, findings);
    CheckEvents(evidence, findings);
    for (const auto& finding : store->Check()) {
        if (!finding.ok) findings.Add("store check: {}: {}", finding.what, finding.detail);
    }
    fmt::print("{}violations {}\n", findings.counts(), findings.problems());
    return findings.problems() == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
    if (const char* bug = std::getenv("STINT_CHAOS_BUG"); bug != nullptr && !Plant(bug)) {
        fmt::print(stderr, "stint_chaos: this build has no planted bug {}\n", bug);
        return 2;
    }
    std::string role = argc > 1 ? argv[1] : "";
    if (role == "worker" && argc == 6) return RunWorker(argv + 2);
    if (role == "submit" && argc == 8) return RunSubmit(argv + 2);
    if (role == "count" && argc == 3) return RunCount(argv + 2);
    if (role == "calm" && argc == 3) return RunCalm(argv + 2);
    if (role == "check" && argc == 4) return RunCheck(argv + 2);
    fmt::print(stderr, "usage: see the head of main.cpp\n");
    return 2;
}

}  // namespace stint::chaos

int main(int argc, char** argv) try {
    return stint::chaos::Main(argc, argv);
} catch (const std::exception& error) {
    fmt::print(stderr, "stint_chaos: {}\n", error.what());
    return 3;
}
