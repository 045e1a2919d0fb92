// The demonstrations: each has a file of its own and adds itself to `stint demo`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/workers.h"

namespace stint::cli {

void AddCrashDemo(Program& program, CLI::App& group);
void AddFanoutDemo(Program& program, CLI::App& group);
void AddThrottleDemo(Program& program, CLI::App& group);
void AddScheduleDemo(Program& program, CLI::App& group);

// Throws CommandError for a number that is not between the two.
void CheckWithin(const char* flag, int value, int least, int most);

// How the workers of a demonstration are started: so that a death is noticed within seconds.
std::vector<std::string> DemoWorkerWords(
    const std::string& queue, int slots, const std::vector<std::string>& more = {}
);

// A queue of its own on the user's store, worker processes that serve only that, and a live view.
// Repeatable on one store, and nobody else's tasks are touched.
class DemoStage {
public:
    // Throws CommandError for a store that processes cannot share.
    // `more`: words for the workers.
    DemoStage(Invocation& invocation, int slots, const std::vector<std::string>& more = {});

    node::Client& client() { return client_; }
    const std::string& queue() const { return queue_; }
    WorkerProcesses& workers() { return workers_; }
    const StopOnSignal& signals() const { return signals_; }

    // A task of the queue.
    model::NewTask Task(std::string type, std::string input) const;
    std::vector<TaskId> Submit(const std::vector<model::NewTask>& tasks);
    void StartWorkers(int count);  // and waits until they are there
    std::map<model::State, std::size_t> Counts();

    // Shows how many of the queue's tasks are finished until `total` are. `each` is called at every
    // look. False: it took too long, which is said with the workers' log.
    using Look = std::function<void(
        std::size_t done, const std::map<model::State, std::size_t>& counts, ProgressBar& bar
    )>;
    bool Watch(std::size_t total, const Look& each = {});

    // Since the stage was made.
    Duration Took() const;

private:
    StopOnSignal signals_;  // first: every thread made later leaves the signals to it
    Invocation& invocation_;
    const base::Instant begun_;
    node::Client client_;
    const std::string queue_;
    WorkerProcesses workers_;
};

// Kills the worker of a task that runs, and again until a task was hit: what a worker has sent
// before its death may still end the task.
class HolderKill {
public:
    explicit HolderKill(DemoStage& stage) : stage_(stage) {}
    // At every look from the moment on at which it is time for it. `holding`: what it is told to be
    // doing.
    void Look(ProgressBar& bar, std::string_view holding);
    int kills() const { return kills_; }

private:
    bool Crashed(TaskId task);
    std::optional<SessionId> SessionOf(std::int64_t pid);

    struct Kill {
        SessionId session;
        TaskId task;
    };
    DemoStage& stage_;
    std::optional<Kill> last_;
    int kills_ = 0;
    bool hit_ = false;
};

// A demo without the kill that it announced has shown nothing.
void WarnIfNotKilled(const Invocation& invocation, bool killed);
// Nor has one whose kill hit nothing.
void WarnIfNothingHit(const Invocation& invocation, bool killed, std::size_t recovered);

// The verdict: a line of counts for a person, an object for a program. Returns the exit code.
int PrintVerdict(
    const Invocation& invocation,
    DemoStage& stage,
    const std::string& line,
    base::OrderedJson json,
    bool good
);

}  // namespace stint::cli
