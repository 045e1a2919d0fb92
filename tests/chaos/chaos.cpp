#include "chaos.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "base/random.h"
#include "node/open_engine.h"

namespace stint::chaos {

Kind KindOf(int number) {
    // Out of twenty: plain ones are cheap and many, the others bring several tasks each.
    switch (number % 20) {
        case 3:
        case 13:
            return Kind::kParent;
        case 7:
        case 17:
            return Kind::kFlow;
        case 11:
        case 12:
            return Kind::kEvent;
        case 15:
            return Kind::kInk;
        default:
            return number % 4 == 2 ? Kind::kPress : Kind::kWork;
    }
}

std::string_view KindName(Kind kind) {
    constexpr std::string_view kNames[] = {"work", "press", "ink", "parent", "flow", "event"};
    return kNames[static_cast<std::size_t>(kind)];
}

std::uint64_t HashOf(std::string_view text) {
    std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
    for (unsigned char byte : text) hash = (hash ^ byte) * 1099511628211ull;
    return base::SeededRandom(hash).Next();
}

int PressUnits(std::string_view key) {
    return HashOf(key) % 3 == 0 ? 2 : 1;
}

Family FamilyOf(const std::string& key) {
    std::uint64_t hash = HashOf(key);
    return {
        .key = key,
        .children = 2 + static_cast<int>(hash % 4),
        .rounds = 1 + static_cast<int>(hash / 7 % 3),
        .black_sheep = hash / 31 % 5 == 0};
}

Happening HappeningOf(const std::string& key, int number) {
    // Numbers 11 and 12 of every second score share their pair, so that members of one key come
    // twice.
    bool alone = number / 20 % 2 == 0;
    std::string prefix = key.substr(0, key.rfind('-'));
    std::string pair = alone ? key : fmt::format("{}-score{}", prefix, number / 20);
    return {key, pair, number, number % 2 == 1};
}

Workflow TheWorkflow() {
    Workflow workflow(kWorkflow);
    InputMap same = {{"key", "${key}"}, {"pair", "${pair}"}, {"number", "${number}"}};
    workflow.On<Happening>(kHappened).Submit("left", kLeft, same);
    workflow.On<Happening>(kHappened).Submit("right", kRight, same);
    workflow.On<Happening>(kHappened).Match("wanted = true").Submit("more", kMore, same);
    workflow.Join(kJoin, kLeft, kRight)
        .By("input.pair")
        .Policy(JoinPolicy::kEach)
        .Within(1h)
        .Submit(kPair);
    return workflow;
}

Journal::Journal(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_APPEND, 0644)) {
    if (file_ < 0) throw std::runtime_error(std::string("cannot open the journal ") + path);
}
Journal::~Journal() {
    close(file_);
}
void Journal::Write(const std::string& line) {
    std::string whole = line + "\n";
    if (write(file_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
        throw std::runtime_error("the journal is full");
    }
}

void PauseUntil(base::Instant until) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (base::SystemClock().Now() < until) {
        base::SystemClock().WaitUntil(lock, never, {}, until);
    }
}

Options ChaosOptions(std::string store) {
    return {
        .store = std::move(store),
        .slots = 6,
        .lease = {.lease = 2s, .heartbeat_every = 400ms, .self_stop = 1400ms},
        .poll = {.min = 20ms, .max = 200ms},
        .drain = 2s,
        .stop_grace = 500ms,
        .error_wait = 300ms,
        .sweep_every = 300ms,
    };
}

Engine OpenEngine(const Options& options) {
    auto pause = [](Duration) {
        PauseUntil(base::SystemClock().Now() + 200ms);
        return true;
    };
    return std::move(node::OpenEngine(options, pause).value());
}

}  // namespace stint::chaos
