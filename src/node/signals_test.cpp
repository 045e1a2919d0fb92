// Programs that are nothing but a worker, stopped the way supervisors stop them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stint/stint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>

namespace stint {
namespace {

using namespace std::chrono_literals;

constexpr Task<std::string, std::string> kWork{"signals.work"};

// A worker in a process of its own. The pipe carries one byte per handler that began.
class WorkerProcess {
public:
    using Handler = std::function<Outcome<std::string>(Context&)>;

    WorkerProcess(Options options, const Handler& handler) {
        EXPECT_EQ(pipe2(begun_, O_CLOEXEC), 0);
        pid_ = fork();
        if (pid_ == 0) _exit(Work(std::move(options), handler));
        close(begun_[1]);
    }
    ~WorkerProcess() {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
        close(begun_[0]);
    }
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    bool WaitForHandler() const {
        pollfd wait{begun_[0], POLLIN, 0};
        char byte = 0;
        return poll(&wait, 1, 60'000) == 1 && read(begun_[0], &byte, 1) == 1;
    }
    static constexpr int kStillThere = 1000;
    void Send(int signal_number) const { kill(pid_, signal_number); }
    // The exit code, or the number of the signal that ended it, negative.
    int Wait() {
        pollfd gone{begun_[0], 0, 0};  // the other end is closed by its end
        if (poll(&gone, 1, 60'000) != 1) return kStillThere;
        int status = 0;
        waitpid(std::exchange(pid_, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

private:
    int Work(Options options, const Handler& handler) const {
        // The store and its threads exist before anybody waits for signals.
        Engine engine(std::move(options));
        engine.Handle(kWork, [&](Context& context, const std::string&) -> Outcome<std::string> {
            if (write(begun_[1], "b", 1) != 1) return Failed{.message = "nobody listens"};
            return handler(context);
        });
        if (!engine.Submit(kWork, "work")) return 99;
        return engine.RunUntilSignal();
    }

    int begun_[2] = {-1, -1};
    pid_t pid_ = -1;
};

class Signals : public testing::Test {
protected:
    Signals()
        : file_(
              std::filesystem::temp_directory_path() /
              ("stint-signals-" + std::to_string(getpid()) + ".db")
          ) {
        Clean();
    }
    ~Signals() override { Clean(); }
    void Clean() const {
        for (const char* suffix : {"", "-wal", "-shm", ".lock", ".sock"}) {
            std::filesystem::remove(file_.string() + suffix);
        }
    }
    Options WorkerOptions() const {
        return {.store = "sqlite:" + file_.string(), .drain = 10min, .stop_grace = 300ms};
    }

    std::filesystem::path file_;
};

void WaitForStop(Context& context) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    wake.wait(lock, context.stop(), [] { return false; });
}

TEST_F(Signals, ATermSignalEndsTheProgramWithItsExitCode) {
    WorkerProcess worker(WorkerOptions(), [](Context&) -> Outcome<std::string> {
        return std::string();
    });
    ASSERT_TRUE(worker.WaitForHandler());
    worker.Send(SIGTERM);
    EXPECT_EQ(worker.Wait(), 0);
}

TEST_F(Signals, ASecondSignalDoesNotWaitForTheDrain) {
    WorkerProcess worker(WorkerOptions(), [](Context& context) -> Outcome<std::string> {
        WaitForStop(context);
        return Failed{.message = "stopped"};
    });
    ASSERT_TRUE(worker.WaitForHandler());
    worker.Send(SIGINT);
    worker.Send(SIGTERM);
    EXPECT_EQ(worker.Wait(), 0);
}

}  // namespace
}  // namespace stint
