#include "cli/bench_rig.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "node/open_store.h"
#include "node/paths.h"

namespace stint::cli {

namespace {

constexpr Duration kCanaryTime = std::chrono::milliseconds{500};
constexpr Duration kLookEvery = std::chrono::milliseconds{2};
// Nothing happens for so long: it will not any more, and the workers' log says why.
constexpr Duration kStalled = std::chrono::seconds{30};

}  // namespace

double SecondsBetween(base::Instant from, base::Instant to) {
    return std::chrono::duration<double>(to - from).count();
}

// ---- directory ---------------------------------------------------------------------------------

BenchDirectory::BenchDirectory() {
    const char* place = std::getenv("TMPDIR");
    path_ =
        fmt::format("{}/stint-bench-XXXXXX", place != nullptr && *place != '\0' ? place : "/tmp");
    if (mkdtemp(path_.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "cannot make " + path_);
    }
}

BenchDirectory::~BenchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

// ---- the store ---------------------------------------------------------------------------------

BenchRig::BenchRig(Invocation& invocation, const BenchOptions& options, const char* kind, int bound)
    : invocation_(invocation),
      options_(options),
      kind_(kind),
      bound_(bound),
      until_(base::SystemClock().Now() + std::chrono::seconds{bound}),
      name_(fmt::format("stint_bench_{}", getpid())) {
    node::CountTogether(directory_.path() + "/tallies");
    MakeStore();
    if (scratch_) TellOfOthers();
    canary_ = Canary();
}

BenchRig::~BenchRig() {
    if (finished_) return;
    try {
        Finish();
    } catch (const std::exception& error) {
        invocation_.Warn(error.what());
    }
}

void BenchRig::MakeStore() {
    types_known_ = false;
    if (!options_.in_place) scratch_.emplace(invocation_.store_url());
    url_ = node::NamedAddress(scratch_ ? scratch_->url() : invocation_.store_url(), name_);
    if (!scratch_) RefuseUsedStore();
    OpenClient();
    meter_.emplace(url_, name_);
    taker_.emplace(*meter_);
}

void BenchRig::RefuseUsedStore() {
    OpenClient();
    if (options_.force || client_->Counts({}).empty()) return;
    throw CommandError(
        kConflict,
        "this store holds tasks already, which the benchmark would disturb; leave --in-place out, "
        "or add --force"
    );
}

void BenchRig::TellOfOthers() {
    auto left = scratch_->Sweep();
    for (const std::string& name : left.removed) {
        invocation_.Say("removed {}, which a benchmark left that was killed", name);
    }
    for (const std::string& name : left.stay) {
        invocation_.Warn(fmt::format(
            "{} looks like what a killed benchmark has left, and could not be removed", name
        ));
    }
}

void BenchRig::Finish() {
    finished_ = true;
    if (!scratch_) {
        StopWorkers();
        TakeBackTasks();
    }
    workers_.reset();
    client_.reset();
    taker_.reset();
    meter_.reset();
    if (scratch_) scratch_->Destroy();
}

// In the user's own store nothing of ours is to wait for a worker.
void BenchRig::TakeBackTasks() {
    if (!client_) return;
    SetPaused(false);
    node::ListRequest request;
    request.filter.queues = {kQueue};
    request.filter.states = {model::State::kOpen};
    request.limit = model::limits::kListPage;
    while (true) {
        std::vector<TaskId> ids;
        auto page = client_->List(request);
        for (const auto& task : page.tasks) {
            if (task.type.starts_with("bench.")) ids.push_back(task.id);
        }
        if (!ids.empty()) client_->Cancel(ids, "bench", "the benchmark is over");
        if (!page.next) return;
        request.before = page.next;
    }
}

void BenchRig::Renew() {
    workers_.reset();
    client_.reset();
    taker_.reset();
    meter_.reset();
    scratch_->Destroy();
    scratch_.reset();
    MakeStore();
}

void BenchRig::OpenClient() {
    client_.emplace(node::Client::Open(url_, node::Client::IfMissing::kCreate, invocation_.log()));
    client_->ExpectManySubmits();
}

void BenchRig::CloseClient() {
    client_.reset();
}

void BenchRig::Reconnect() {
    CloseClient();
    AwaitSettled();
    OpenClient();
}

// ---- bounds ------------------------------------------------------------------------------------

void BenchRig::Check() {
    CheckSignals(signals_);
    if (workers_) workers_->CheckAlive();
    if (base::SystemClock().Now() < until_) return;
    throw CommandError(
        kStillRunning,
        fmt::format(
            "not finished within {} s, so it was given up; allow more with --seconds, or measure "
            "less with --tasks",
            bound_
        )
    );
}

// Notices when a number does not change any more.
struct BenchRig::Stall {
    std::int64_t last = -1;
    base::Instant since = base::SystemClock().Now();

    void Look(std::int64_t number, const WorkerProcesses& workers) {
        base::Instant now = base::SystemClock().Now();
        if (number != last) {
            last = number;
            since = now;
        }
        if (now - since < kStalled) return;
        std::string log = workers.LogTail();
        throw CommandError(
            kFailed,
            fmt::format(
                "no task was finished for {} s; {}",
                std::chrono::duration_cast<std::chrono::seconds>(kStalled).count(),
                log.empty() ? "the workers do not say why" : "the workers' last words:\n" + log
            )
        );
    }
};

// ---- tasks -------------------------------------------------------------------------------------

std::vector<model::NewTask> BenchRig::Requests(const char* type, int count) const {
    model::NewTask task;
    task.type = type;
    task.queue = kQueue;
    // A hundred bytes, as bench/compare gives everybody else.
    task.input =
        R"({"n":1,"at":0,"user":"customer-000123","action":"send_invoice","language":"en",)"
        R"("filler":"----------"})";
    task.actor = "bench";
    return std::vector<model::NewTask>(static_cast<std::size_t>(count), task);
}

std::vector<TaskId> BenchRig::Fill(
    const std::vector<model::NewTask>& batch, int count, const char* what
) {
    LearnTypes();
    invocation_.Say("bench {}: submitting {} {}", kind_, count, what);
    ProgressBar bar(invocation_.progress(), static_cast<std::size_t>(count));
    std::vector<TaskId> ids;
    ids.reserve(static_cast<std::size_t>(count));
    base::Instant begun = base::SystemClock().Now();
    while (ids.size() < static_cast<std::size_t>(count)) {
        Check();
        std::size_t left = static_cast<std::size_t>(count) - ids.size();
        for (auto& reply : client().Submit({batch.data(), std::min(batch.size(), left)})) {
            ids.push_back(Need(std::move(reply)).id);
        }
        bar.Update(ids.size());
    }
    fill_rate_ = count / SecondsBetween(begun, base::SystemClock().Now());
    return ids;
}

std::int64_t BenchRig::Count(std::vector<model::State> states) {
    model::TaskFilter filter;
    filter.queues = {kQueue};
    filter.states = std::move(states);
    std::int64_t sum = 0;
    for (const auto& [key, count] : client().Counts(filter)) sum += count;
    return sum;
}

void BenchRig::SetPaused(bool paused) {
    client().ChangeQueue({.name = kQueue, .paused = paused}, "bench");
}

// ---- measured parts ----------------------------------------------------------------------------

// Unless told, it is what workers choose themselves.
std::optional<int> BenchRig::Prefetch() const {
    if (options_.batch == 0) return std::nullopt;
    return std::max(0, options_.batch - options_.slots);
}

void BenchRig::AddPrefetch(base::OrderedJson& result) const {
    auto ahead = Prefetch();
    result["prefetch"] = ahead ? base::OrderedJson(*ahead) : base::OrderedJson("default");
}

std::vector<std::string> BenchRig::WorkerWords() const {
    std::vector<std::string> words = {
        "--bench-types",
        "--bench-directory",
        directory_.path(),
        "--queues",
        kQueue,
        "--slots",
        std::to_string(options_.slots)};
    if (auto ahead = Prefetch()) {
        words.insert(words.end(), {"--prefetch", std::to_string(*ahead)});
    }
    return words;
}

std::vector<pid_t> BenchRig::Workers() const {
    std::vector<pid_t> pids;
    for (std::size_t i = 0; workers_ && i < workers_->size(); ++i) pids.push_back(workers_->pid(i));
    return pids;
}

void BenchRig::StartWorkers() {
    workers_.emplace(url_, WorkerWords());
    workers_->Start(options_.processes);
    if (!client_) OpenClient();
    workers_->AwaitLive(client(), signals_);
}

// A worker registers its types when it starts. Tasks that were submitted before that are looked up
// and changed then, which is not what is to be measured.
void BenchRig::LearnTypes() {
    if (std::exchange(types_known_, true) || workers_) return;
    StartWorkers();
    StopWorkers();
}

void BenchRig::StopWorkers() {
    if (!workers_) return;
    workers_->Stop();
    workers_.reset();
}

// A server learns what a connection has done for certain only when that ends.
void BenchRig::AwaitSettled() {
    base::Instant limit = base::SystemClock().Now() + std::chrono::seconds{10};
    while (meter_->Unsettled() > 0 && base::SystemClock().Now() < limit) {
        CheckSignals(signals_);
        Pause(signals_, Duration{5});
    }
}

void BenchRig::BeginMeasured() {
    taker_->Begin(Workers());
    handled_before_ = node::HandledTogether();
}

BenchFacts BenchRig::EndMeasured(std::int64_t tasks) {
    taker_->End(Workers(), tasks);
    StopWorkers();
    CloseClient();
    AwaitSettled();
    BenchFacts facts = taker_->Settle();
    OpenClient();
    return facts;
}

std::int64_t BenchRig::Handled() const {
    return static_cast<std::int64_t>(node::HandledTogether() - handled_before_);
}

void BenchRig::AwaitHandled(std::int64_t count, const char* what) {
    invocation_.Say("bench {}: {}", kind_, what);
    ProgressBar bar(invocation_.progress(), static_cast<std::size_t>(count));
    Stall stall;
    for (std::int64_t handled = Handled(); handled < count; handled = Handled()) {
        Check();
        stall.Look(handled, *workers_);
        bar.Update(static_cast<std::size_t>(handled));
        Pause(signals_, kLookEvery);
    }
    bar.Update(static_cast<std::size_t>(count));
}

void BenchRig::AwaitAllDone() {
    Stall stall;
    for (std::int64_t left = Unfinished(); left > 0; left = Unfinished()) {
        Check();
        stall.Look(left, *workers_);
        Pause(signals_, kLookEvery);
    }
}

std::int64_t BenchRig::AwaitComplete(std::int64_t count) {
    Stall stall;
    auto complete = [&] { return Count({model::State::kComplete}); };
    std::int64_t done = complete();
    for (; done < count; done = complete()) {
        Check();
        stall.Look(done, *workers_);
        Pause(signals_, kLookEvery);
    }
    return done;
}

void BenchRig::AwaitFinished(const std::vector<TaskId>& tasks) {
    // The last first: when those are over, all are but for a few.
    constexpr std::size_t kPage = model::limits::kListPage;
    for (std::size_t end = tasks.size(); end > 0;) {
        std::size_t begin = end > kPage ? end - kPage : 0;
        std::vector<TaskId> page(
            tasks.begin() + static_cast<std::ptrdiff_t>(begin),
            tasks.begin() + static_cast<std::ptrdiff_t>(end)
        );
        auto left = client().Wait(
            page, kStalled, [](const auto&) {}, signals_.token()
        );
        Check();
        if (!left.empty()) {
            throw CommandError(
                kFailed,
                fmt::format(
                    "{} tasks are not finished; the workers' log:\n{}",
                    left.size(),
                    workers_->LogTail()
                )
            );
        }
        end = begin;
    }
}

// ---- the answer --------------------------------------------------------------------------------

double BenchRig::Canary() {
    base::Clock& clock = base::SystemClock();
    model::QueueChange change{.name = "bench-canary"};
    base::Instant begun = clock.Now();
    int commits = 0;
    do {
        Check();
        change.cap = 1'000'000 + commits;
        client().ChangeQueue(change, "bench");
        ++commits;
    } while (clock.Now() - begun < kCanaryTime);
    return commits / SecondsBetween(begun, clock.Now());
}

base::OrderedJson BenchRig::Header(int tasks) {
    node::StoreInfo info = client().Info();
    base::OrderedJson settings = base::OrderedJson::object();
    for (const auto& [name, value] : meter_->DurabilitySettings()) settings[name] = value;
    return {
        {"bench", kind_},
        {"version", node::kVersion},
        {"store", info.kind},
        {"store_version", info.version},
        {"durability", info.durability},
        {"durability_settings", settings},
        {"tasks", tasks},
        {"processes", options_.processes},
        {"slots", options_.slots},
    };
}

void BenchRig::Conclude(base::OrderedJson& result, const BenchFacts& facts) {
    result["canary_commits_per_s"] = canary_;
    result["canary_after_commits_per_s"] = Canary();
    AddFacts(result, facts, *meter_);
}

namespace {

std::string Shown(const base::OrderedJson& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_null()) return "-";
    if (value.is_number_float()) {
        auto number = value.get<double>();
        return fmt::format("{:.{}f}", number, number < 10 ? 4 : 2);
    }
    if (!value.is_object()) return base::JsonText(value);
    std::vector<std::string> members;
    for (const auto& [name, member] : value.items()) {
        std::string text = Shown(member);
        if (!text.empty()) members.push_back(fmt::format("{}={}", name, text));
    }
    return fmt::format("{}", fmt::join(members, " "));
}

}  // namespace

void BenchRig::Print(const base::OrderedJson& result, const Listing* parts) {
    std::vector<std::pair<std::string, Cell>> facts;
    for (const auto& [name, value] : result.items()) {
        if (!value.is_array()) facts.push_back({name, {Shown(value)}});
    }
    if (parts != nullptr && invocation_.out().format() == Format::kTable) {
        invocation_.out().Print(*parts);
        invocation_.out().Line("");
    }
    invocation_.out().Print(facts, result, kind_);
}

void AddPercentiles(base::OrderedJson& result, std::vector<double> milliseconds) {
    Percentiles percentiles = Summarise(std::move(milliseconds));
    result["p50_ms"] = percentiles.p50;
    result["p95_ms"] = percentiles.p95;
    result["p99_ms"] = percentiles.p99;
    result["max_ms"] = percentiles.max;
}

}  // namespace stint::cli
