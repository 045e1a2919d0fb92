// stint worker start | list
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <limits>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "cli/handlers.h"
#include "cli/program.h"
#include "cli/task_view.h"
#include "model/placement.h"
#include "node/command_tasks.h"
#include "node/json_view.h"
#include "node/measure.h"
#include "node/open_engine.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

struct StartOptions {
    bool until_idle = false;
    bool bench = false;
    std::string bench_directory;  // where the benchmark that started this worker keeps things
};

// The engine checks the range; here it only has to fit.
int SmallNumber(const node::Config& config, std::string_view key) {
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    return static_cast<int>(std::min(config.Number(key), kMost));
}

stint::Options EngineOptions(const Invocation& invocation) {
    const node::Config& config = invocation.config();
    stint::Options options;
    options.store = config.Text("store");
    options.slots = SmallNumber(config, "worker.slots");
    if (config.Text("worker.prefetch") != "auto") {
        options.prefetch = SmallNumber(config, "worker.prefetch");
    }
    options.queues = config.Names("worker.queues");
    options.labels = config.Names("worker.labels");
    options.at_once_of_queue = config.Limits("worker.at_once_of_queue");
    options.at_once_of_resource = config.Limits("worker.at_once_of_resource");
    for (const node::ProbeSetting& setting : config.probes()) {
        options.probes.push_back(setting.probe);
    }
    options.lease = config.Lease("worker.lease");
    options.poll.max = config.Time("worker.poll_max");
    options.poll.min = std::min(options.poll.min, options.poll.max);
    options.drain = config.Time("worker.drain");
    options.sweep_every = config.Time("worker.sweep_every");
    options.node_name = config.Text("worker.name");
    options.log = invocation.log();
    return options;
}

// Ends the process's own wait for a signal once there is nothing to do. It looks twice: between two
// looks a retry may have become due.
class IdleWatch {
public:
    IdleWatch(node::Client client, node::ClaimRequest worker)
        : client_(std::move(client)),
          worker_(std::move(worker)),
          thread_([this](std::stop_token stop) { Watch(stop); }) {}

    // What was left when it found nothing to do; nothing if a signal came before.
    std::vector<node::LeftOver> Finish() {
        thread_.request_stop();
        thread_.join();
        return std::move(left_);
    }

private:
    void Watch(std::stop_token stop) {
        base::Clock& clock = base::SystemClock();
        base::Instant next = clock.Now() + kLookEvery;
        int idle = 0;
        while (idle < 2) {
            if (!SleepUntil(next, stop)) return left_.clear();
            base::Instant begun = clock.Now();
            try {
                node::IdleLook look = client_.LookIdle(worker_);
                idle = look.idle ? idle + 1 : 0;
                left_ = std::move(look.left);
            } catch (const node::StoreError&) {
                idle = 0;  // not reachable now; the worker itself says so
            }
            // Many tasks that are not due yet take long to look at: at most a tenth of the time.
            next = clock.Now() +
                   std::max<base::Instant::duration>(kLookEvery, 9 * (clock.Now() - begun));
        }
        kill(getpid(), SIGTERM);
    }

    // False: stopped.
    static bool SleepUntil(base::Instant until, std::stop_token stop) {
        std::mutex mutex;
        std::condition_variable_any nobody;
        std::unique_lock lock(mutex);
        base::Clock& clock = base::SystemClock();
        while (clock.Now() < until && !stop.stop_requested()) {
            clock.WaitUntil(lock, nobody, stop, until);
        }
        return !stop.stop_requested();
    }

    static constexpr Duration kLookEvery = std::chrono::milliseconds{200};

    node::Client client_;
    const node::ClaimRequest worker_;
    std::vector<node::LeftOver> left_;
    std::jthread thread_;
};

void TellWhatIsLeft(const Invocation& invocation, const std::vector<node::LeftOver>& left) {
    for (const node::LeftOver& one : left) {
        std::string detail = one.detail.empty() ? "" : fmt::format(" ({})", one.detail);
        std::string example =
            one.example.valid() ? fmt::format("; see: stint task why {}", one.example.value()) : "";
        invocation.Say("left {}: {}. {}{}{}", one.tasks, one.condition, one.text, detail, example);
    }
}

void Announce(const Invocation& invocation, const stint::Options& options, bool until_idle) {
    std::vector<std::string> types = {"echo", "demo.*"};
    for (const node::CommandTask& task : invocation.config().commands()) types.push_back(task.name);
    invocation.Say(
        "worker on {}: {} slots, {}, types {}",
        node::WithoutSecrets(options.store),
        options.slots,
        options.queues.empty() ? "all queues"
                               : fmt::format("queues {}", fmt::join(options.queues, ", ")),
        fmt::join(types, ", ")
    );
    if (until_idle) {
        invocation.Say("it stops when nothing is left to do that it could start");
    } else {
        invocation.Say("Ctrl-C lets running tasks finish, a second one stops at once");
    }
}

sigset_t StopSignals() {
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    return ours;
}

// False: a signal came, which ends the wait for a store.
bool PauseUnlessSignalled(Duration duration) {
    sigset_t ours = StopSignals();
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    timespec left{
        .tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(duration - seconds).count()};
    return sigtimedwait(&ours, nullptr, &left) < 0;
}

int StartWorker(Invocation& invocation, const StartOptions& start) {
    stint::Options options = EngineOptions(invocation);
    if (!start.bench_directory.empty()) {
        node::CountTogether(start.bench_directory + "/tallies");
        options.state_dir = start.bench_directory + "/state";
    }
    if (options.store == "memory:") {
        throw CommandError(
            kUsage,
            "the store is memory:, into which no other process can submit; use sqlite:PATH or "
            "postgres://user@host/database"
        );
    }
    node::PrepareStoreDirectory(invocation.store_url());
    // Before any thread exists: all of them leave the signals to RunUntilSignal.
    sigset_t ours = StopSignals();
    pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    try {
        std::optional<Engine> opened = node::OpenEngine(options, PauseUnlessSignalled);
        if (!opened) return kOk;
        Engine& engine = *opened;
        std::vector<std::string> types = {"echo", "demo.sleep", "demo.fail", "demo.crash"};
        if (start.bench) {
            HandleBench(engine);
            types = {"bench.noop", "bench.stamp", "bench.fanout"};
        } else {
            HandleBuiltins(engine);
            node::HandleCommands(engine, invocation.config().commands());
            for (const auto& task : invocation.config().commands()) types.push_back(task.name);
            Announce(invocation, options, start.until_idle);
        }
        std::optional<IdleWatch> watch;
        if (start.until_idle) {
            node::ClaimRequest like;
            like.queues = options.queues;
            like.types = types;
            like.labels = model::CanonicalLabels(options.labels);
            like.queue_room = options.at_once_of_queue;
            like.resource_room = options.at_once_of_resource;
            watch.emplace(node::Client::Of(engine), std::move(like));
        }
        int status = engine.RunUntilSignal();
        if (watch) TellWhatIsLeft(invocation, watch->Finish());
        return status == 0 ? kOk : kFailed;
    } catch (const std::invalid_argument& error) {
        throw CommandError(kUsage, error.what());
    }
}

Tint TintOf(model::SessionState state) {
    switch (state) {
        case model::SessionState::kLive:
            return Tint::kGood;
        case model::SessionState::kDraining:
            return Tint::kBusy;
        case model::SessionState::kClosed:
            return Tint::kFaint;
        case model::SessionState::kExpired:
            return Tint::kBad;
    }
    return Tint::kPlain;
}

bool IsLive(const model::SessionRecord& session) {
    return session.state == model::SessionState::kLive ||
           session.state == model::SessionState::kDraining;
}

struct ListOptions {
    bool all = false;
    bool nodes = false;
};

// The machines, with what works on each now.
int ListNodes(const Invocation& invocation, node::Client& client) {
    Time now = client.Now();
    auto sessions = client.Sessions();
    Listing listing;
    listing.name = "nodes";
    listing.headers = {"NODE", "NAME", "WORKERS", "RUNNING", "SEEN"};
    for (const model::NodeRecord& node : client.Nodes()) {
        int workers = 0, running = 0, slots = 0;
        for (const model::SessionRecord& session : sessions) {
            if (session.node != node.id || !IsLive(session)) continue;
            ++workers;
            running += session.running;
            slots += session.slots;
        }
        listing.rows.push_back(
            {{node.id.ToString()},
             {node.hostname},
             {std::to_string(workers)},
             {fmt::format("{}/{}", running, slots)},
             {Ago(node.last_seen, now)}}
        );
        listing.objects.push_back(
            {{"id", node.id.ToString()},
             {"name", node.hostname},
             {"workers", workers},
             {"running", running},
             {"slots", slots},
             {"last_seen", base::Iso8601(node.last_seen)}}
        );
        listing.ids.push_back(node.id.ToString());
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) invocation.Say("no worker has run on this store yet");
    return kOk;
}

int ListWorkers(Invocation& invocation, const ListOptions& options) {
    node::Client client = invocation.LookAtStore();
    if (options.nodes) return ListNodes(invocation, client);
    Time now = client.Now();
    Listing listing;
    listing.name = "workers";
    listing.headers = {
        "SESSION", "NODE", "PID", "STATE", "DOING", "RUNNING", "QUEUES", "LABELS", "SEEN"};
    for (const model::SessionRecord& session : client.Sessions()) {
        bool live = IsLive(session);
        if (!live && !options.all) continue;
        listing.rows.push_back(
            {{session.id.ToString().substr(0, 8)},
             {session.hostname},
             {std::to_string(session.pid)},
             {std::string(model::SessionStateName(session.state)), TintOf(session.state)},
             // What it did last says nothing of a worker that is over.
             {live ? session.worker_state : "-"},
             {live ? fmt::format("{}/{}", session.running, session.slots) : "-"},
             {session.queues.empty() ? "all" : fmt::format("{}", fmt::join(session.queues, ","))},
             {session.labels.empty() ? "-" : fmt::format("{}", fmt::join(session.labels, ","))},
             {Ago(session.renewed_at, now)}}
        );
        listing.objects.push_back(node::ToJson(session));
        listing.ids.push_back(session.id.ToString());
    }
    invocation.out().Print(listing);
    if (listing.rows.empty()) {
        invocation.Say("no worker is running on this store; start one: stint worker start");
    }
    return kOk;
}

void DefineStart(Syntax& syntax, StartOptions& options) {
    syntax.Setting("--queues", "worker.queues", "A,B", "queues served; all when not given");
    syntax.Setting(
        "--labels", "worker.labels", "A,B", "labels carried, for tasks that require them"
    );
    syntax.Setting("--slots", "worker.slots", "N", "tasks running at once (8)");
    syntax.Setting(
        "--prefetch", "worker.prefetch", "N", "tasks claimed ahead of free slots (auto)"
    );
    syntax.Setting(
        "--at-once-of-queue",
        "worker.at_once_of_queue",
        "Q=N",
        "at most N of queue Q at once here; several with commas"
    );
    syntax.Setting(
        "--at-once-of-resource",
        "worker.at_once_of_resource",
        "R=N",
        "likewise of resource R, or of each name of host:*"
    );
    syntax.Setting("--lease", "worker.lease", "PRESET", "default, brisk, patient, or a duration");
    syntax.Setting("--poll-max", "worker.poll_max", "DURATION", "longest pause when idle (5s)");
    syntax.Setting("--drain", "worker.drain", "DURATION", "time to finish at a stop (25s)");
    syntax.Setting(
        "--sweep-every", "worker.sweep_every", "DURATION", "looks for dead workers' tasks (5s)"
    );
    syntax.Setting("--name", "worker.name", "LABEL", "label of this machine (its host name)");
    syntax.Switch(
        "--until-idle",
        options.until_idle,
        "stop when nothing that it could start is left, and say what is"
    );
    syntax.Switch("--bench-types", options.bench, "handle the types of stint bench");
    syntax.Hidden();
    syntax.Text("--bench-directory", options.bench_directory, "DIR", "of the benchmark");
    syntax.Hidden();
}

}  // namespace

void AddWorker(Program& program) {
    CLI::App& group = program.Group(program.root(), "worker", "Workers: run tasks, see who does.");
    program.Command<StartOptions>(
        group,
        "start",
        "Runs tasks: echo, demo.*, and the commands declared in stint.toml.",
        "stint worker start\n"
        "stint worker start --queues mail,images --slots 16 --lease brisk\n"
        "stint worker start --until-idle",
        DefineStart,
        StartWorker
    );
    program.Command<ListOptions>(
        group,
        "list",
        "Lists the workers that run on the store.",
        "stint worker list\nstint worker list --all -o json\nstint worker list --nodes",
        [](Syntax& syntax, ListOptions& options) {
            syntax.Switch("--all", options.all, "also those that ended within a day");
            syntax.Switch("--nodes", options.nodes, "the machines instead, with their workers");
        },
        ListWorkers
    );
}

}  // namespace stint::cli
