// A worker is killed in the middle of its work; the next one finishes what it held.
#include <stint/stint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

using namespace std::chrono_literals;

inline constexpr stint::Task<int, int> kSquare{"crash.square"};

namespace {

stint::Options Store() {
    return {
        .store = "sqlite:crash.db", .lease = stint::LeaseOptions::Brisk(), .sweep_every = 200ms};
}

// A process that takes work and dies with it in its hands.
[[noreturn]] void DieAtWork() {
    stint::Engine engine(Store());
    engine.Handle(kSquare, [](stint::Context&, int) -> int {
        kill(getpid(), SIGKILL);
        return 0;
    });
    engine.Start();
    while (true) pause();
}

}  // namespace

int main() {
    std::vector<stint::TaskId> ids;
    {
        stint::Engine producer(Store());
        for (int i = 1; i <= 5; ++i) ids.push_back(producer.Submit(kSquare, i).value().id());
    }
    std::cout << "accepted " << ids.size() << " tasks\n";

    pid_t victim = fork();
    if (victim == 0) DieAtWork();
    int status = 0;
    waitpid(victim, &status, 0);
    std::cout << "the worker was killed by signal " << WTERMSIG(status) << '\n';

    stint::Engine engine(Store());
    engine.Handle(kSquare, [](stint::Context&, int n) { return n * n; });
    engine.Start();
    int sum = 0;
    for (stint::TaskId id : ids) sum += engine.Find(kSquare, id).Wait().value();
    std::cout << "all finished by another worker: 1 + 4 + 9 + 16 + 25 = " << sum << '\n';
}
