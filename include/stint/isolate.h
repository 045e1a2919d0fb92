// Process isolation: each attempt of an isolated task type runs in a child process made by running
// the program again. Hence the first line of main():
//
//     int main(int argc, char** argv) {
//         if (stint::IsIsolatedChild(argc, argv)) return stint::RunIsolated(RegisterHandlers);
//
// where RegisterHandlers(stint::HandlerRegistry&) registers the isolated handlers. Without that
// line registering an isolated type fails with a message that shows it.
//
// The child leads a process group of its own. All of that group ends with the attempt, and with the
// process that started it, however that one dies.
#pragma once

#include <stint/engine.h>

#include <functional>
#include <memory>

namespace stint {

class HandlerRegistry {
public:
    HandlerRegistry();
    ~HandlerRegistry();

    template <class In, class Out, HandlerFor<In, Out> F>
    void Handle(const Task<In, Out>& task, F handler) {
        Bind(task.name, detail::Erase<In, Out>(std::move(handler)));
    }
    template <class In, class Out, StagesFor<In, Out> H>
    void Handle(const Task<In, Out>& task, H handler) {
        Bind(task.name, detail::EraseStages<In, Out>(std::move(handler)));
    }
    void Bind(std::string_view name, detail::ErasedHandler handler);
    const detail::ErasedHandler* Find(std::string_view name) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// True in a child started for one attempt. Calling it also tells the engine that the line is there.
bool IsIsolatedChild(int argc, char** argv);

// Runs the one attempt this child was started for and returns the exit code for main().
int RunIsolated(const std::function<void(HandlerRegistry&)>& register_handlers);

}  // namespace stint
