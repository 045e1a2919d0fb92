// Worker processes of the demo and the benchmark.
#pragma once

#include <string>
#include <vector>

#include "cli/child.h"
#include "cli/signals.h"
#include "node/client.h"

namespace stint::cli {

class WorkerProcesses {
public:
    // `words` follow `stint worker start`. Their log is kept until the end.
    WorkerProcesses(std::string store, std::vector<std::string> words);
    ~WorkerProcesses();  // kills them
    WorkerProcesses(const WorkerProcesses&) = delete;
    WorkerProcesses& operator=(const WorkerProcesses&) = delete;

    void Start(int count);  // so many more
    std::size_t size() const { return children_.size(); }
    pid_t pid(std::size_t index) const { return children_.at(index).pid(); }
    void KillAndRestart(std::size_t index);
    // Throws CommandError with the end of the log when one has ended by itself.
    void CheckAlive();
    // Waits until all have a live session; throws CommandError after a while.
    void AwaitLive(node::Client& client, const StopOnSignal& signals);
    void Stop();  // asks all of them, waits, kills what does not follow

    std::string LogTail() const;

private:
    Child Spawn() const;

    std::string store_;
    std::vector<std::string> words_;
    std::string log_;
    std::vector<Child> children_;
};

// Throws CommandError when a signal came.
void CheckSignals(const StopOnSignal& signals);

// Sleeps, but not past a signal.
void Pause(const StopOnSignal& signals, Duration duration);

}  // namespace stint::cli
