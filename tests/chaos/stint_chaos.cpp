// The three roles of a chaos run, driven by chaos.py:
//
//   stint_chaos worker STORE JOURNAL NAME STATE_DIR   works until it is killed or told to stop
//   stint_chaos submit STORE JOURNAL COUNT PREFIX PER_SECOND LONGEST_MS
//                                                     submits COUNT tasks, each under its own key
//   stint_chaos check  STORE JOURNAL_DIR              merges the journals with the store
//
// A journal line is written with one write() before the next thing happens, so it survives a kill
// of the process. The handler's output names the claim it ran under: the stored outcome of a task
// must be that of its last claim, whatever else ran.
#include <fcntl.h>
#include <fmt/format.h>
#include <stint/stint.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "base/random.h"
#include "model/limits.h"
#include "model/task.h"
#include "node/open_store.h"
#include "store/store.h"

using namespace std::chrono_literals;

namespace {

struct Work {
    std::string key;
    int milliseconds = 0;
};
struct Done {
    std::string key;
    std::int64_t fencing = 0;
    std::string worker;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Work, key, milliseconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Done, key, fencing, worker)

constexpr stint::Retry kPatient{
    .max_attempts = 0, .on = stint::Retry::On::kAll, .first_delay = 50ms};
constexpr stint::Task<Work, Done> kWork{"chaos.work", {.queue = "chaos", .retry = kPatient}};

class Journal {
public:
    explicit Journal(const char* path) : file_(open(path, O_WRONLY | O_CREAT | O_APPEND, 0644)) {
        if (file_ < 0) throw std::runtime_error(std::string("cannot open the journal ") + path);
    }
    ~Journal() { close(file_); }
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    void Write(const std::string& line) {
        std::string whole = line + "\n";
        if (write(file_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
            throw std::runtime_error("the journal is full");
        }
    }

private:
    int file_;
};

// Short leases: a killed worker's tasks come back within a few seconds.
stint::Options ChaosOptions(std::string store) {
    stint::Options options{
        .store = std::move(store),
        .slots = 6,
        .lease = {.lease = 2s, .heartbeat_every = 400ms, .self_stop = 1400ms},
        .poll = {.min = 20ms, .max = 200ms},
        .drain = 2s,
        .stop_grace = 500ms,
        .error_wait = 300ms,
        .sweep_every = 300ms,
    };
    return options;
}

// Works for a while without sleeping blindly: a stop request ends it.
bool WorkFor(stint::Context& context, int milliseconds) {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    auto until = stint::base::SystemClock().Now() + std::chrono::milliseconds{milliseconds};
    while (stint::base::SystemClock().Now() < until && !context.stop().stop_requested()) {
        stint::base::SystemClock().WaitUntil(lock, wake, context.stop(), until);
    }
    return !context.stop().stop_requested();
}

int RunWorker(char** arguments) {
    Journal journal(arguments[1]);
    std::string name = arguments[2];
    stint::Options options = ChaosOptions(arguments[0]);
    options.state_dir = arguments[3];
    options.node_name = name;
    options.log = [&journal](const stint::LogRecord& record) {
        if (record.level < stint::LogLevel::kWarn) return;
        std::string fields;
        for (const auto& [key, value] : record.fields) fields += fmt::format(" {}={}", key, value);
        journal.Write(fmt::format(
            "log {} {}: {}{}", LogLevelName(record.level), record.room, record.message, fields
        ));
    };
    stint::Engine engine(std::move(options));
    engine.Handle(kWork, [&](stint::Context& context, const Work& work) -> stint::Outcome<Done> {
        journal.Write(fmt::format("start {} {}", work.key, context.fencing_number()));
        if (!WorkFor(context, work.milliseconds)) {
            journal.Write(fmt::format("stopped {} {}", work.key, context.fencing_number()));
            return stint::Failed{.message = "stopped"};
        }
        journal.Write(fmt::format("end {} {}", work.key, context.fencing_number()));
        return Done{work.key, context.fencing_number(), name};
    });
    // Signals wait from here on: who sees the line may send one.
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    journal.Write("up");
    return engine.RunUntilSignal();
}

// A submitter that was killed goes on where its journal ends.
int Acknowledged(const char* journal) {
    std::ifstream file(journal);
    std::string line;
    int count = 0;
    while (std::getline(file, line)) count += line.starts_with("accepted ") ? 1 : 0;
    return count;
}

// Every submit is repeated under its key until it is acknowledged; only then is it journalled.
int RunSubmit(char** arguments) {
    int begin = Acknowledged(arguments[1]);
    Journal journal(arguments[1]);
    int count = std::stoi(arguments[2]);
    std::string prefix = arguments[3];
    std::chrono::nanoseconds every = std::chrono::nanoseconds{1s} / std::stoi(arguments[4]);
    int longest = std::stoi(arguments[5]);
    stint::Engine engine(ChaosOptions(arguments[0]));
    std::mutex mutex;
    std::condition_variable_any never;
    auto pause_until = [&](stint::base::Instant until) {
        std::unique_lock lock(mutex);
        while (stint::base::SystemClock().Now() < until) {
            stint::base::SystemClock().WaitUntil(lock, never, {}, until);
        }
    };
    stint::base::Instant next = stint::base::SystemClock().Now();
    for (int i = begin; i < count; ++i) {
        std::string key = fmt::format("{}-{}", prefix, i);
        // The same request each time it is asked under this key.
        stint::base::SeededRandom random(std::hash<std::string>{}(key));
        Work work{key, static_cast<int>(random.Below(static_cast<std::uint64_t>(longest)))};
        pause_until(next += every);
        while (true) {
            auto run = engine.Submit(kWork, work, {.idempotency_key = key});
            if (run) {
                journal.Write(fmt::format("accepted {} {}", key, run->id().value()));
                break;
            }
            if (run.error().code == stint::Code::kInvalid ||
                run.error().code == stint::Code::kConflict) {
                fmt::print(stderr, "submit of {} was refused: {}\n", key, run.error().message);
                return 1;
            }
            pause_until(stint::base::SystemClock().Now() + 100ms);
        }
    }
    journal.Write("all");
    return 0;
}

// ---- the checker ----

struct Findings {
    int problems = 0;
    int recovered = 0;    // attempts that were taken from a dead or frozen worker
    int quarantined = 0;  // tasks whose worker died again and again while they ran alone
    template <class... Args>
    void Add(fmt::format_string<Args...> format, Args&&... args) {
        if (++problems <= 20)
            fmt::print("VIOLATION {}\n", fmt::format(format, std::forward<Args>(args)...));
    }
};

struct Journals {
    std::map<std::string, std::int64_t> accepted;         // key → task
    std::map<std::string, std::set<std::int64_t>> ended;  // key → claims that ended
    std::int64_t starts = 0;
    std::set<std::pair<std::string, std::int64_t>> started;  // (key, claim)
};

Journals ReadJournals(const char* directory, Findings& findings) {
    Journals journals;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::ifstream file(entry.path());
        std::string line;
        while (std::getline(file, line)) {
            std::istringstream words(line);
            std::string what, key;
            std::int64_t number = 0;
            if (!(words >> what >> key >> number)) continue;
            if (what == "accepted") journals.accepted[key] = number;
            if (what == "end") journals.ended[key].insert(number);
            if (what == "start") {
                ++journals.starts;
                if (!journals.started.emplace(key, number).second) {
                    findings.Add("{}: claim {} was started twice (I4, I5)", key, number);
                }
            }
        }
    }
    return journals;
}

void CheckAudit(
    stint::store::Store& store, stint::TaskId id, const std::string& key, Findings& findings
) {
    using stint::model::Event;
    std::optional<stint::model::State> state;
    int terminal = 0;
    for (const auto& entry : store.Audit({.task = id, .after = 0, .limit = 1000})) {
        if (entry.from != state)
            findings.Add("{}: the audit log has a gap before entry {} (I15)", key, entry.seq);
        if (stint::model::Next(entry.from, entry.event) != entry.to) {
            findings.Add(
                "{}: the audit log holds a forbidden transition at {} (I15)", key, entry.seq
            );
        }
        state = entry.to;
        if (entry.event == Event::kReclaim) ++findings.recovered;
        if (stint::model::IsTerminal(entry.to)) ++terminal;
    }
    if (terminal != 1)
        findings.Add("{}: {} terminal transitions instead of one (I2)", key, terminal);
}

int Crashes(stint::store::Store& store, stint::TaskId id) {
    int crashes = 0;
    for (const auto& attempt : store.Attempts(id)) {
        if (attempt.end == stint::model::AttemptEnd::kCrashed) ++crashes;
    }
    return crashes;
}

void CheckTask(
    stint::store::Store& store,
    const std::string& key,
    std::int64_t number,
    const Journals& journals,
    Findings& findings
) {
    stint::TaskId id(number);
    auto record = store.Get(id);
    if (!record) return findings.Add("{}: accepted as {}, now gone (I1)", key, number);
    CheckAudit(store, id, key, findings);
    if (record->reason.starts_with("quarantined: ")) {
        ++findings.quarantined;
        if (Crashes(store, id) < stint::model::limits::kMaxCrashes) {
            findings.Add("{}: quarantined without its crashes", key);
        }
        return;
    }
    if (record->state != stint::model::State::kComplete) {
        return findings.Add("{}: ended {} ({})", key, StateName(record->state), record->reason);
    }
    auto done = stint::Codec<Done>::Decode(record->output);
    if (done.key != key) findings.Add("{}: holds the outcome of {}", key, done.key);
    if (done.fencing != record->claim_no) {
        findings.Add(
            "{}: the outcome of claim {} was accepted, the last claim is {} (I3)",
            key,
            done.fencing,
            record->claim_no
        );
    }
    auto ended = journals.ended.find(key);
    if (ended == journals.ended.end() || !ended->second.contains(done.fencing)) {
        findings.Add("{}: no worker's journal has the end of claim {}", key, done.fencing);
    }
    int complete = 0;
    for (const auto& attempt : store.Attempts(id)) {
        if (attempt.end == stint::model::AttemptEnd::kComplete) ++complete;
        if (attempt.end == stint::model::AttemptEnd::kRunning)
            findings.Add("{}: an attempt is still running", key);
    }
    if (complete != 1)
        findings.Add("{}: {} attempts ended complete instead of one (I2)", key, complete);
}

int RunCheck(char** arguments) {
    Findings findings;
    auto store = stint::node::OpenStore(arguments[0], {});
    Journals journals = ReadJournals(arguments[1], findings);
    std::set<std::int64_t> ids;
    for (const auto& [key, number] : journals.accepted) {
        if (!ids.insert(number).second)
            findings.Add("{}: shares task {} with another key (I8)", key, number);
        CheckTask(*store, key, number, journals, findings);
    }
    stint::model::TaskFilter filter;
    filter.queues = {"chaos"};
    std::int64_t stored = 0;
    for (const auto& [key, count] : store->Counts(filter)) stored += count;
    if (stored != static_cast<std::int64_t>(journals.accepted.size())) {
        findings.Add("{} tasks are stored, {} were accepted", stored, journals.accepted.size());
    }
    for (const auto& finding : store->Check()) {
        if (!finding.ok) findings.Add("store check: {}: {}", finding.what, finding.detail);
    }
    fmt::print(
        "accepted {} stored {} starts {} recovered {} quarantined {} violations {}\n",
        journals.accepted.size(),
        stored,
        journals.starts,
        findings.recovered,
        findings.quarantined,
        findings.problems
    );
    return findings.problems == 0 ? 0 : 1;
}

// How many of the accepted tasks are terminal: printed for the driver, which waits for all.
int RunCount(char** arguments) {
    auto store = stint::node::OpenStore(arguments[0], {});
    stint::model::TaskFilter filter;
    filter.queues = {"chaos"};
    std::int64_t terminal = 0, all = 0;
    for (const auto& [key, count] : store->Counts(filter)) {
        all += count;
        if (IsTerminal(key.state)) terminal += count;
    }
    fmt::print("{} {}\n", terminal, all);
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string role = argc > 1 ? argv[1] : "";
    if (role == "worker" && argc == 6) return RunWorker(argv + 2);
    if (role == "submit" && argc == 8) return RunSubmit(argv + 2);
    if (role == "check" && argc == 4) return RunCheck(argv + 2);
    if (role == "count" && argc == 3) return RunCount(argv + 2);
    fmt::print(stderr, "usage: see the head of stint_chaos.cpp\n");
    return 2;
} catch (const std::exception& error) {
    fmt::print(stderr, "stint_chaos: {}\n", error.what());
    return 3;
}
