// A worker that runs one flow and may be killed in the middle: flow_victim STORE EFFECTS KEY N
//
// Submits the flow under KEY (the same flow for the same key), works until it is complete and
// prints its output; with N > 0 it kills itself at the N-th moment between two steps. Each effect
// of the flow adds a line to the file EFFECTS. Exit code 0: the flow is complete.
#include <fcntl.h>
#include <stint/stint.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "base/test_point.h"

namespace {

using namespace std::chrono_literals;
using namespace stint;

constexpr Task<int, int> kDouble{"kill.double"};
constexpr Task<int, Json> kFlow{"kill.flow"};

std::string effects_file;

void Effect(const std::string& line) {
    int file = open(effects_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    std::string text = line + "\n";
    if (write(file, text.data(), text.size()) < 0) _exit(3);
    close(file);
}

Json Play(Flow& flow, int in) {
    flow.Run("reserve", [] { Effect("reserve"); });
    int twice = flow.Call("charge", kDouble, in);
    auto signal = flow.AwaitSignal<int>("shipped", 1h);
    int version = flow.Version("version", 0, 2);
    bool silent = !flow.AwaitSignal<int>("silence", 10ms).has_value();
    flow.Sleep("rest", 20ms);
    std::string id = flow.NewId();
    flow.Run("thank", [&](const LocalStep& step) { Effect("thank " + step.idempotency_key); });
    auto one = flow.Start("one", kDouble, twice);
    auto two = flow.Start("two", kDouble, twice + 1);
    std::size_t first = flow.AwaitAny("first", std::vector{one, two});
    flow.AwaitAll(one, two);
    int sum = flow.Await(one) + flow.Await(two) + signal.value_or(0);
    return {
        "{\"sum\":" + std::to_string(sum) + ",\"id\":\"" + id +
        "\",\"first\":" + std::to_string(first) + ",\"version\":" + std::to_string(version) +
        ",\"silent\":" + (silent ? "true" : "false") + "}"};
}

bool IsBoundary(std::string_view point) {
    return point.starts_with("flow.") || point == "settle.before" || point == "settle.after";
}

void KillAt(int number) {
    static std::atomic<int> left;
    left = number;
    base::SetTestPointListener([](std::string_view point) {
        if (IsBoundary(point) && --left == 0) kill(getpid(), SIGKILL);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    effects_file = argv[2];
    Options options;
    options.store = argv[1];
    options.lease = {.lease = 1s, .heartbeat_every = 200ms, .self_stop = 800ms};
    options.poll = {.min = 5ms, .max = 50ms};
    options.sweep_every = 100ms;
    options.schedules = false;
    Engine engine(options);
    engine.Handle(kDouble, [](Context&, int in) { return 2 * in; });
    engine.Handle(kFlow, Play);
    if (int number = std::atoi(argv[4]); number > 0) KillAt(number);
    engine.Start();
    TaskId task = engine.Submit(kFlow, 21, {.idempotency_key = argv[3]}).value().id();
    engine.flows().Signal(task, "shipped", 7, {.id = "the parcel"}).value();
    auto output = engine.Find(kFlow, task).WaitFor(60s);
    if (!output) {
        std::cout << output.error().message << "\n";
        return 1;
    }
    std::cout << task.value() << " " << output->text << "\n";
    return 0;
}
