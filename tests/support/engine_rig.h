// For tests: a worker, driven step by step or with threads, on a memory store whose
// clock moves only when told.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/registry.h"
#include "engine/submit.h"
#include "engine/worker.h"
#include "support/troubled_store.h"
#include "wake/local.h"

namespace stint::engine {

using namespace std::chrono_literals;

// Waits for a condition that other threads bring about; fails the test after a generous while.
inline bool Eventually(const std::function<bool()>& condition) {
    auto end = base::SystemClock().Now() + 30s;
    std::mutex mutex;
    std::condition_variable nobody;
    std::unique_lock lock(mutex);
    while (!condition()) {
        if (base::SystemClock().Now() > end) return false;
        nobody.wait_for(lock, 500us);  // lets those others have the processor
    }
    return true;
}

// A door that a handler waits at until the test opens it.
class Gate {
public:
    void Open() {
        {
            std::lock_guard guard(mutex_);
            open_ = true;
        }
        changed_.notify_all();
    }
    void Pass() {
        std::unique_lock lock(mutex_);
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_; });
    }
    // False: nobody came.
    bool WaitForVisitors(int count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 30s, [&] { return waiting_ >= count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    int waiting_ = 0;
};

class TemporaryDirectory {
public:
    TemporaryDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "stint-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
    std::string path() const { return path_; }

private:
    std::string path_;
};

using Handler = std::function<Outcome<std::string>(Context&, std::string_view)>;
inline Outcome<std::string> Done(std::string output = "null") {
    return Outcome<std::string>(std::in_place_index<0>, std::move(output));
}

struct Rig {
    base::ManualClock clock;
    base::SeededRandom random{7};
    base::Random* worker_random = &random;
    base::SeededRandom store_random{8};
    store::MemoryStore memory{clock, store_random};
    TroubledStore store{memory};
    wake::LocalWake wake;
    Registry registry;
    WorkerOptions options;
    Metrics metrics;
    std::unique_ptr<Worker> worker;
    std::unique_ptr<Submitter> submitter;

    std::mutex log_mutex;
    std::vector<std::string> log;

    Rig() {
        options.slots = 2;
        options.hostname = "here";
        options.pid = 1;
        options.version = "test";
        options.log = [this](const LogRecord& record) {
            std::lock_guard guard(log_mutex);
            log.push_back(std::string(record.room) + ": " + std::string(record.message));
        };
        submitter = std::make_unique<Submitter>(store, wake, clock, random, options.log, &metrics);
    }

    void Handle(const std::string& type, Handler handler, model::TypeDefaults defaults = {}) {
        registry.Add({.type = type, .defaults = std::move(defaults), .handler = std::move(handler)}
        );
    }
    Worker& Make(store::Store* reserved = nullptr) {
        worker.reset();
        worker = std::make_unique<Worker>(
            WorkerParts{store, wake, registry, clock, *worker_random, reserved, &metrics}, options
        );
        return *worker;
    }
    Worker& Open(store::Store* reserved = nullptr) {
        Make(reserved).Open();
        return *worker;
    }

    TaskId Submit(const std::string& type, model::NewTask task = {}) {
        task.type = type;
        auto id = submitter->Submit(std::move(task));
        EXPECT_TRUE(id) << (id ? "" : id.error().message);
        return id ? *id : TaskId{};
    }
    model::TaskRecord Get(TaskId id) { return memory.Get(id).value(); }
    model::State StateOf(TaskId id) { return Get(id).state; }

    // Everything that can be done without time passing. Returns how many attempts ran.
    int Drive() {
        int ran = 0;
        for (int quiet = 0; quiet < 2;) {
            worker->ClaimOnce();
            bool any = worker->RunOneAttempt();
            ran += any ? 1 : 0;
            worker->SettleOnce();
            quiet = any ? 0 : quiet + 1;
        }
        return ran;
    }
    bool Logged(std::string_view text) {
        std::lock_guard guard(log_mutex);
        for (const std::string& line : log) {
            if (line.find(text) != std::string::npos) return true;
        }
        return false;
    }
};

// With threads: the randomness is shared.
struct ThreadedRig : Rig {
    ThreadedRig() { worker_random = &base::SystemRandom(); }
};

}  // namespace stint::engine
