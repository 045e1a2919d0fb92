#include "interleave/interleave.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace stint::interleave {

namespace {

using postgres::Commits;
using postgres::Connection;
using postgres::Params;
using postgres::Statement;

// Who expects none has enough to read, and who expects some has seen them.
constexpr std::size_t kEnoughViolations = 2;

std::unique_ptr<Connection> Connect(const std::string& url, const std::string& name) {
    postgres::ConnectOptions options;
    options.url = url;
    options.application_name = name;
    options.prepare = postgres::ConnectOptions::Prepare::kNever;
    return Connection::Open(options);
}

// One session: does the step it is told to do, on its own thread.
class Actor {
public:
    Actor(const std::string& url, Script script)
        : script_(std::move(script)),
          connection_(Connect(url, script_.name)),
          pid_(PQbackendPID(connection_->native())),
          thread_([this](std::stop_token stop) { Loop(stop); }) {}
    ~Actor() {
        thread_.request_stop();
        changed_.notify_all();
    }

    bool finished() const { return started_ == script_.steps.size(); }
    bool busy() {
        std::lock_guard guard(mutex_);
        return working_;
    }
    std::string next_name() const {
        return fmt::format("{}.{}", script_.name, script_.steps[started_].name);
    }
    const std::string& name() const { return script_.name; }
    int pid() const { return pid_; }
    std::string TakeError() {
        std::lock_guard guard(mutex_);
        return std::exchange(error_, {});
    }

    void Begin() {
        std::lock_guard guard(mutex_);
        ++started_;
        working_ = true;
        changed_.notify_all();
    }
    bool WaitDone(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, time, [&] { return !working_; });
    }

private:
    void Loop(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (changed_.wait(lock, stop, [&] { return working_; })) {
            const Step& step = script_.steps[started_ - 1];
            lock.unlock();
            std::string error;
            try {
                step.run(*connection_);
            } catch (const std::exception& refused) {
                error = fmt::format("{}: {}", step.name, refused.what());
            }
            lock.lock();
            if (!error.empty()) error_ = error;
            working_ = false;
            changed_.notify_all();
        }
    }

    const Script script_;
    const std::unique_ptr<Connection> connection_;
    const int pid_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::size_t started_ = 0;  // the runner's
    bool working_ = false;     // guarded by mutex_, as is the next
    std::string error_;
    std::jthread thread_;
};

class Order {
public:
    Order(const std::string& url, std::vector<Script> scripts, Connection& monitor)
        : monitor_(monitor) {
        for (Script& script : scripts) {
            actors_.push_back(std::make_unique<Actor>(url, std::move(script)));
        }
    }

    void Run(const std::vector<int>& turns, Outcome& outcome) {
        std::vector<int> waiting(turns.begin(), turns.end());
        while (!waiting.empty()) {
            // The first in order that is not waiting for a lock.
            auto next = std::find_if(waiting.begin(), waiting.end(), [&](int actor) {
                return !actors_[static_cast<std::size_t>(actor)]->busy();
            });
            if (next == waiting.end()) {
                SettleAll(outcome);
                continue;
            }
            Actor& actor = *actors_[static_cast<std::size_t>(*next)];
            waiting.erase(next);
            (path_ += path_.empty() ? "" : " ") += actor.next_name();
            actor.Begin();
            if (!DoneOrBlocked(actor)) {
                ++outcome.waits;
                path_ += "(waits)";
            }
            NoteErrors(outcome);
        }
        SettleAll(outcome);
        NoteErrors(outcome);
    }
    const std::string& path() const { return path_; }

private:
    // The store's own connections call themselves like the script that uses it. Only a wait for
    // somebody of the scenario is one: the server's own vacuum may hold a table for a moment.
    bool Blocked(const Actor& actor) {
        static const Statement blocked{
            "",
            "SELECT count(*) FROM pg_stat_activity a, unnest(pg_blocking_pids(a.pid)) AS by (pid) "
            "JOIN pg_stat_activity b ON b.pid = by.pid "
            "WHERE (a.pid = $1 OR a.application_name = $2) AND b.backend_type = 'client backend'"};
        Params params;
        params.Int4(actor.pid()).Text(actor.name());
        return monitor_.Query(blocked, params, Commits::kNo).Int(0, 0) > 0;
    }

    bool DoneOrBlocked(Actor& actor) {
        int seen = 0;
        for (int i = 0; i < 10'000; ++i) {
            if (actor.WaitDone(std::chrono::milliseconds{2})) return true;
            // Twice in a row: the lock may be handed over just now.
            seen = Blocked(actor) ? seen + 1 : 0;
            if (seen >= 2) return false;
        }
        throw std::runtime_error("a step neither ends nor waits for a lock: " + path_);
    }

    // Whoever waits for a lock gets it when the holder goes on, or the server breaks a deadlock.
    void SettleAll(Outcome& outcome) {
        for (int i = 0; i < 5'000; ++i) {
            bool any_free = false, any_busy = false;
            for (const auto& actor : actors_) {
                bool busy = !actor->WaitDone(std::chrono::milliseconds{1});
                any_busy |= busy;
                any_free |= !busy && !actor->finished();
            }
            NoteErrors(outcome);
            if (any_free || !any_busy) return;
        }
        throw std::runtime_error("everybody waits for ever: " + path_);
    }

    void NoteErrors(Outcome& outcome) {
        for (const auto& actor : actors_) {
            std::string error = actor->TakeError();
            if (!error.empty()) outcome.errors.push_back(fmt::format("{}: {}", path_, error));
        }
    }

    Connection& monitor_;
    std::vector<std::unique_ptr<Actor>> actors_;
    std::string path_;
};

}  // namespace

Outcome RunAllOrders(const std::string& url, const Scenario& scenario) {
    Outcome outcome;
    std::unique_ptr<Connection> monitor = Connect(url, "interleave monitor");
    std::vector<int> turns;
    bool more = true;
    while (more) {
        scenario.prepare();
        std::vector<Script> scripts = scenario.scripts();
        if (turns.empty()) {
            for (std::size_t i = 0; i < scripts.size(); ++i) {
                turns.insert(turns.end(), scripts[i].steps.size(), static_cast<int>(i));
            }
        }
        std::string path;
        {
            Order order(url, std::move(scripts), *monitor);
            order.Run(turns, outcome);
            path = order.path();
        }
        ++outcome.orders;
        std::string wrong = scenario.check();
        if (!wrong.empty()) outcome.violations.push_back(path + ": " + wrong);
        more = std::next_permutation(turns.begin(), turns.end()) &&
               outcome.violations.size() < kEnoughViolations;
    }
    return outcome;
}

}  // namespace stint::interleave
