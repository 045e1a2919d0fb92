// stint worker start | list
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "base/clock.h"
#include "cli/handlers.h"
#include "cli/program.h"
#include "cli/task_view.h"
#include "node/command_tasks.h"
#include "node/json_view.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

struct StartOptions {
    bool until_idle = false;
    bool bench = false;
};

stint::Options EngineOptions(const Invocation& invocation) {
    const node::Config& config = invocation.config();
    stint::Options options;
    options.store = config.Text("store");
    options.slots = static_cast<int>(
        std::min<std::int64_t>(config.Number("worker.slots"), model::limits::kSlots + 1)
    );
    options.queues = config.Names("worker.queues");
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
    IdleWatch(node::Client client, std::vector<std::string> queues, std::vector<std::string> types)
        : client_(std::move(client)),
          thread_([=, this](std::stop_token stop) { Watch(stop, queues, types); }) {}

private:
    void Watch(
        std::stop_token stop,
        const std::vector<std::string>& queues,
        const std::vector<std::string>& types
    ) {
        timespec slice{.tv_sec = 0, .tv_nsec = 200'000'000};
        int idle = 0;
        while (!stop.stop_requested()) {
            nanosleep(&slice, nullptr);
            try {
                idle = client_.Idle(queues, types) ? idle + 1 : 0;
            } catch (const node::StoreError&) {
                idle = 0;  // not reachable now; the worker itself says so
            }
            if (idle == 2) {
                kill(getpid(), SIGTERM);
                return;
            }
        }
    }

    node::Client client_;
    std::jthread thread_;
};

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
        invocation.Say("it stops when nothing is left to do");
    } else {
        invocation.Say("Ctrl-C lets running tasks finish, a second one stops at once");
    }
}

int StartWorker(Invocation& invocation, const StartOptions& start) {
    node::PrepareStoreDirectory(invocation.store_url());
    stint::Options options = EngineOptions(invocation);
    // Before any thread exists: all of them leave the signals to RunUntilSignal.
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours, nullptr);
    try {
        Engine engine(options);
        std::vector<std::string> types = {"echo", "demo.sleep", "demo.fail", "demo.crash"};
        if (start.bench) {
            HandleBench(engine);
            types = {"bench.noop", "bench.stamp"};
        } else {
            HandleBuiltins(engine);
            node::HandleCommands(engine, invocation.config().commands());
            for (const auto& task : invocation.config().commands()) types.push_back(task.name);
            Announce(invocation, options, start.until_idle);
        }
        std::optional<IdleWatch> watch;
        if (start.until_idle) watch.emplace(node::Client::Of(engine), options.queues, types);
        int status = engine.RunUntilSignal();
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

struct ListOptions {
    bool all = false;
};

int ListWorkers(Invocation& invocation, const ListOptions& options) {
    node::Client client = invocation.LookAtStore();
    Time now = client.Now();
    Listing listing;
    listing.name = "workers";
    listing.headers = {"SESSION", "HOST", "PID", "STATE", "DOING", "RUNNING", "QUEUES", "SEEN"};
    for (const model::SessionRecord& session : client.Sessions()) {
        bool live = session.state == model::SessionState::kLive ||
                    session.state == model::SessionState::kDraining;
        if (!live && !options.all) continue;
        listing.rows.push_back(
            {{session.id.ToString().substr(0, 8)},
             {session.hostname},
             {std::to_string(session.pid)},
             {std::string(model::SessionStateName(session.state)), TintOf(session.state)},
             {session.worker_state},
             {fmt::format("{}/{}", session.running, session.slots)},
             {session.queues.empty() ? "all" : fmt::format("{}", fmt::join(session.queues, ","))},
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
    syntax.Setting("--slots", "worker.slots", "N", "tasks running at once (8)");
    syntax.Setting("--lease", "worker.lease", "PRESET", "default, brisk, patient, or a duration");
    syntax.Setting("--poll-max", "worker.poll_max", "DURATION", "longest pause when idle (2s)");
    syntax.Setting("--drain", "worker.drain", "DURATION", "time to finish at a stop (25s)");
    syntax.Setting(
        "--sweep-every", "worker.sweep_every", "DURATION", "looks for dead workers' tasks (5s)"
    );
    syntax.Setting("--name", "worker.name", "LABEL", "label of this machine (its host name)");
    syntax.Switch("--until-idle", options.until_idle, "stop when nothing is running or due");
    syntax.Switch("--bench-types", options.bench, "handle the types of stint bench");
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
        "stint worker list\nstint worker list --all -o json",
        [](Syntax& syntax, ListOptions& options) {
            syntax.Switch("--all", options.all, "also those that ended within a day");
        },
        ListWorkers
    );
}

}  // namespace stint::cli
