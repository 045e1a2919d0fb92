#include "sim/world.h"

#include <fmt/format.h>
#include <semaphore.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include "base/check.h"

namespace stint::sim {

namespace {

constexpr std::size_t kRecentNotes = 400;
constexpr std::uint64_t kLongestStepNs = 20'000;

double Seconds(Virtual time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

// A plain semaphore: the standard one spins before it sleeps, which costs twice as much here, where
// the other side never answers at once.
class Baton {
public:
    Baton() { CHECK(sem_init(&semaphore_, 0, 0) == 0); }
    ~Baton() { sem_destroy(&semaphore_); }
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;
    void Give() { sem_post(&semaphore_); }
    void Await() {
        while (sem_wait(&semaphore_) != 0) {  // interrupted by a signal
        }
    }

private:
    sem_t semaphore_{};
};

class Fiber {
public:
    Fiber(World& owner, Process& home, int order, std::string label)
        : world(owner), process(home), number(order), name(std::move(label)) {}

    World& world;
    Process& process;
    const int number;
    const std::string name;
    Baton baton;
    std::thread thread;  // not joinable: the director, which is the caller's own thread
    Virtual wake_at{};
    int shelter = 0;
    bool ended = false;
};

namespace {
thread_local Fiber* current = nullptr;
}

World::World(std::uint64_t seed, bool print_trace) : print_trace_(print_trace), random_(seed) {
    CHECK(current == nullptr);
    Process& process = NewProcess("world");
    fibers_.push_back(std::make_unique<Fiber>(*this, process, fibers_made_++, "director"));
    director_ = fibers_.back().get();
    current = director_;
}

World::~World() {
    KillAll();
    current = nullptr;
}

void World::KillAll() {
    // Everybody dies; each unwinds alone. Round and round, because one may wait for what another
    // holds while it unwinds.
    stopped_ = false;
    for (Process& process : processes_) {
        if (&process != &director_->process) process.dead_ = true;
    }
    step_limit_ = 0;  // every choice is the director from now on
    for (bool left = true; left;) {
        left = false;
        for (auto& fiber : fibers_) {
            if (fiber->ended || fiber.get() == director_) continue;
            left = true;
            fiber->baton.Give();
            director_->baton.Await();
        }
    }
    BuryEnded();
}

World* World::Current() {
    return current != nullptr ? &current->world : nullptr;
}

Virtual World::Between(Virtual low, Virtual high) {
    CHECK(low <= high);
    auto width = static_cast<std::uint64_t>((high - low).count());
    return low + Virtual(static_cast<std::int64_t>(random_.Below(width + 1)));
}

Process& World::NewProcess(std::string name) {
    return processes_.emplace_back(std::move(name));
}

void World::Spawn(Process& process, std::string name, std::function<void()> body) {
    BuryEnded();
    auto fiber = std::make_unique<Fiber>(*this, process, fibers_made_++, std::move(name));
    fiber->wake_at = now_;
    Fiber* self = fiber.get();
    fibers_.push_back(std::move(fiber));
    self->thread = std::thread([this, self, run = std::move(body)]() mutable {
        self->baton.Await();
        current = self;
        try {
            DieIfDead(*self);
            run();
        } catch (const Crash&) {
        }
        run = nullptr;  // what the body owns dies while it holds the baton
        End(*self);
    });
}

int World::Alive(const Process& process) const {
    return static_cast<int>(std::count_if(fibers_.begin(), fibers_.end(), [&](const auto& fiber) {
        return &fiber->process == &process && !fiber->ended;
    }));
}

// The dead keep their places until somebody spawns: their threads hold nothing any more.
void World::BuryEnded() {
    for (auto fiber = fibers_.begin(); fiber != fibers_.end();) {
        if ((*fiber)->ended) {
            (*fiber)->thread.join();
            for (Note& note : recent_) {
                if (note.fiber == fiber->get()) {
                    note.line = (*fiber)->process.name() + "/" + (*fiber)->name + " " + note.line;
                    note.fiber = nullptr;
                }
            }
            fiber = fibers_.erase(fiber);
        } else {
            ++fiber;
        }
    }
}

Fiber* World::Choose() {
    if (stopped_ || steps_ >= step_limit_) return director_;
    for (;;) {
        choice_.clear();
        Virtual next = kNever;
        for (auto& fiber : fibers_) {
            if (fiber->ended) continue;
            Virtual ready = fiber->wake_at;
            if (!fiber->process.dead_) ready = std::max(ready, fiber->process.paused_until_);
            if (ready <= now_) {
                choice_.push_back(fiber.get());
            } else {
                next = std::min(next, ready);
            }
        }
        if (!choice_.empty()) return choice_[random_.Below(choice_.size())];
        CHECK_WHY(next != kNever, "every fiber waits for ever");
        now_ = next;
    }
}

void World::Switch(Fiber& self) {
    Fiber* next = Choose();
    if (next == &self) return;
    next->baton.Give();
    self.baton.Await();
}

void World::End(Fiber& self) {
    Record(self, "ended");
    self.ended = true;
    // In the destructor the director waits for exactly this.
    Fiber* next = Choose();
    current = nullptr;
    next->baton.Give();
}

void World::Strike(Process& process) {
    if (process.crash_in_ > 0 && --process.crash_in_ == 0) Kill(process);
    if (process.pause_in_ > 0 && --process.pause_in_ == 0) {
        process.paused_until_ = now_ + process.pause_for_;
        process.last_pause_end_ = process.paused_until_;
        ++pauses_;
        Record(*current, "frozen");
    }
}

void World::DieIfDead(Fiber& self) {
    if (self.process.dead_ && self.shelter == 0 && std::uncaught_exceptions() == 0) throw Crash{};
}

void World::Point(std::string_view name) {
    if (current == nullptr) return;
    // A store that opens its transaction in the middle (a planted bug does) lets others in.
    if (current->shelter > 0 && !name.starts_with("memory.")) return;
    Fiber& self = *current;
    ++steps_;
    now_ += Virtual(static_cast<std::int64_t>(random_.Below(kLongestStepNs)));
    self.wake_at = now_;
    Record(self, name);
    Strike(self.process);
    Switch(self);
    DieIfDead(self);
}

void World::Sleep(Virtual time) {
    SleepUntil(now_ + time);
}

void World::SleepUntil(Virtual instant) {
    CHECK(current != nullptr && current->shelter == 0);
    current->wake_at = instant;
    Switch(*current);
    DieIfDead(*current);
}

void World::SleepUntil(Virtual instant, Alarm& alarm) {
    if (std::exchange(alarm.rung_, false)) return;
    alarm.sleeper_ = current;
    try {
        SleepUntil(instant);
    } catch (...) {
        alarm.sleeper_ = nullptr;
        throw;
    }
    alarm.sleeper_ = nullptr;
    alarm.rung_ = false;
}

void Alarm::Ring() {
    rung_ = true;
    if (sleeper_ != nullptr) {
        sleeper_->wake_at = std::min(sleeper_->wake_at, sleeper_->world.now());
    }
}

void World::Idle(Virtual time) {
    current->wake_at = now_ + time;
    Switch(*current);
}

void World::Stop() {
    stopped_ = true;
}

Process& World::process() {
    CHECK(current != nullptr);
    return current->process;
}

void World::Direct(Virtual until, std::uint64_t until_step) {
    CHECK(current == director_);
    step_limit_ = until_step;
    director_->wake_at = until;
    Switch(*director_);
    step_limit_ = UINT64_MAX;
}

void World::PauseIn(Process& process, int points, Virtual length) {
    process.pause_in_ = points;
    process.pause_for_ = length;
}

void World::Kill(Process& process) {
    if (process.dead_) return;
    ++crashes_;
    Exit(process);
    Say("process " + process.name() + " dies");
}

void World::Exit(Process& process) {
    process.dead_ = true;
    if (process.witness_) std::exchange(process.witness_, nullptr)();
    for (auto& fiber : fibers_) {
        if (&fiber->process == &process) fiber->wake_at = now_;
    }
}

World::Shelter::Shelter() : fiber_(current) {
    if (fiber_ != nullptr) ++fiber_->shelter;
}
World::Shelter::~Shelter() {
    if (fiber_ != nullptr) --fiber_->shelter;
}

void World::Mix(std::uint64_t value) {
    trace_hash_ = (trace_hash_ ^ value) * 0x100000001b3u;
    trace_hash_ ^= trace_hash_ >> 29;
}

void World::Record(const Fiber& fiber, std::string_view what, std::string line) {
    Mix(static_cast<std::uint64_t>(now_.count()));
    Mix(static_cast<std::uint64_t>(fiber.number));
    for (char c : what) Mix(static_cast<unsigned char>(c));
    for (char c : line) Mix(static_cast<unsigned char>(c));
    Note note{now_, &fiber, {}, std::move(line)};
    what.copy(note.what.data(), note.what.size() - 1);
    if (print_trace_) {
        fmt::print(
            "{:>14.6f} {}/{} {} {}\n",
            Seconds(now_),
            fiber.process.name(),
            fiber.name,
            note.what.data(),
            note.line
        );
    }
    recent_.push_back(std::move(note));
    if (recent_.size() > kRecentNotes) recent_.pop_front();
}

void World::Say(std::string line) {
    CHECK(current != nullptr);
    Record(*current, "", std::move(line));
}

std::vector<std::string> World::RecentTrace(std::size_t lines) const {
    std::vector<std::string> trace;
    std::size_t first = recent_.size() > lines ? recent_.size() - lines : 0;
    for (std::size_t i = first; i < recent_.size(); ++i) {
        const Note& note = recent_[i];
        std::string who =
            note.fiber != nullptr ? note.fiber->process.name() + "/" + note.fiber->name : "";
        trace.push_back(
            fmt::format("{:>14.6f} {} {} {}", Seconds(note.at), who, note.what.data(), note.line)
        );
    }
    return trace;
}

}  // namespace stint::sim
