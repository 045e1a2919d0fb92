// The simulated world: many processes, each of one or more fibers, one virtual time, one seed.
//
// A fiber is a real thread, but exactly one runs at a time: it holds the baton. At every point (a
// store call, a clock read, a test point) the baton passes to a fiber drawn from the seed. When
// nobody can run, virtual time jumps to the next instant somebody waits for. So a run is a pure
// function of its seed, and the code under test runs unchanged.
//
//     fiber A ──point──╮                 ╭──point──╮
//     fiber B          ╰──point──╮       │         ╰── …
//     fiber C                    ╰─sleep─╯
//
// Thread rule: everything here is touched by the holder of the baton only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"

namespace stint::sim {

using Virtual = std::chrono::nanoseconds;  // since the start of the run
inline constexpr Virtual kNever = Virtual::max();

// Thrown through a fiber whose process died. It derives from nothing: what swallows it is a
// catch (...), and then the next point throws it again.
struct Crash {};

class World;
class Fiber;

// Fibers that live, freeze and die together.
class Process {
public:
    explicit Process(std::string name) : name_(std::move(name)) {}
    const std::string& name() const { return name_; }
    bool dead() const { return dead_; }
    Virtual paused_until() const { return paused_until_; }
    Virtual last_pause_end() const { return last_pause_end_; }
    // Called at the instant of death, before anything of the process unwinds: what is to be kept of
    // it (its files) is as it is now.
    void OnDeath(std::function<void()> witness) { witness_ = std::move(witness); }

private:
    friend class World;
    std::string name_;
    std::function<void()> witness_;
    bool dead_ = false;
    Virtual paused_until_{};
    Virtual last_pause_end_{};
    // Set by the nemesis: the process dies, or freezes, at the n-th point from now. 0 = not armed.
    int crash_in_ = 0;
    int pause_in_ = 0;
    Virtual pause_for_{};
};

// Cuts a sleep short. One sleeper at a time; ringing without one is remembered.
class Alarm {
public:
    void Ring();

private:
    friend class World;
    Fiber* sleeper_ = nullptr;
    bool rung_ = false;
};

class World {
public:
    // `print_trace`: every point goes to stdout as it happens.
    World(std::uint64_t seed, bool print_trace);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // The world of the calling thread, if it is a fiber of one.
    static World* Current();

    Virtual now() const { return now_; }
    // How far the store's clock has been set off the world's time, and when that was last done.
    Virtual clock_step() const { return clock_step_; }
    Virtual clock_stepped_at() const { return clock_stepped_at_; }
    void StepStoreClock(Virtual by) {
        clock_step_ += by;
        clock_stepped_at_ = now_;
    }
    std::uint64_t steps() const { return steps_; }
    std::uint64_t trace_hash() const { return trace_hash_; }
    base::SeededRandom& random() { return random_; }
    bool Chance(double probability) { return random_.Fraction() < probability; }
    Virtual Between(Virtual low, Virtual high);

    // The end of the run, on the director: everybody unwinds, so that what they use may go.
    void KillAll();

    Process& NewProcess(std::string name);
    void Spawn(Process& process, std::string name, std::function<void()> body);
    // Fibers of this process that have not ended.
    int Alive(const Process& process) const;

    // ---- called by the running fiber ----
    void Point(std::string_view name);
    void Sleep(Virtual time);
    void SleepUntil(Virtual instant);
    void SleepUntil(Virtual instant, Alarm& alarm);
    // Waits for a moment without a point of its own, also where throwing is impossible (a mutex).
    void Idle(Virtual time);
    // Marks an end for the director: it is scheduled next, and nobody else after it.
    void Stop();
    bool stopped() const { return stopped_; }
    Process& process();
    // The director sleeps until the instant, until `steps` points have passed, or until Stop().
    void Direct(Virtual until, std::uint64_t until_step);

    // ---- what the nemesis does ----
    void CrashIn(Process& process, int points) { process.crash_in_ = points; }
    void PauseIn(Process& process, int points, Virtual length);
    void Disarm(Process& process) { process.crash_in_ = process.pause_in_ = 0; }
    void Kill(Process& process);
    // The process ends of itself: its fibers unwind, nobody counts a crash.
    void Exit(Process& process);

    // No point, no switch and no crash inside: a store's transaction.
    class Shelter {
    public:
        Shelter();
        ~Shelter();
        Shelter(const Shelter&) = delete;
        Shelter& operator=(const Shelter&) = delete;

    private:
        Fiber* fiber_;
    };

    // A line of the story: part of the trace hash, kept for the report of a violation.
    void Say(std::string line);
    std::vector<std::string> RecentTrace(std::size_t lines) const;
    std::uint64_t crashes() const { return crashes_; }
    std::uint64_t pauses() const { return pauses_; }

private:
    friend class Fiber;
    friend class Alarm;
    struct Note {
        Virtual at{};
        const Fiber* fiber = nullptr;
        std::array<char, 30> what{};
        std::string line;
    };

    Fiber* Choose();
    void Switch(Fiber& self);
    void End(Fiber& self);
    void Record(const Fiber& fiber, std::string_view what, std::string line = {});
    void Mix(std::uint64_t value);
    void Strike(Process& process);
    void DieIfDead(Fiber& self);
    void BuryEnded();

    const bool print_trace_;
    base::SeededRandom random_;
    Virtual now_{};
    Virtual clock_step_{};
    Virtual clock_stepped_at_ = -std::chrono::hours{1};
    std::uint64_t steps_ = 0;
    std::uint64_t step_limit_ = UINT64_MAX;
    std::uint64_t trace_hash_ = 0xcbf29ce484222325u;
    std::uint64_t crashes_ = 0;
    std::uint64_t pauses_ = 0;
    bool stopped_ = false;
    int fibers_made_ = 0;
    std::list<Process> processes_;
    std::list<std::unique_ptr<Fiber>> fibers_;
    Fiber* director_ = nullptr;
    std::vector<Fiber*> choice_;  // scratch of Choose
    std::deque<Note> recent_;
};

}  // namespace stint::sim
