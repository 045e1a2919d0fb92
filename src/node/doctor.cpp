#include "node/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "model/time_text.h"
#include "node/resource_client.h"
#include "services/probe_checks.h"

namespace stint::node {

namespace {

using model::SessionRecord;
using model::SessionState;
using Verdict = Diagnosis::Verdict;

constexpr Duration kClockApart = std::chrono::seconds{5};
constexpr std::size_t kNamed = 5;  // in a sentence

std::string Names(const std::vector<std::string>& names) {
    std::vector<std::string> first(names.begin(), names.begin() + std::min(names.size(), kNamed));
    std::string more =
        names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "";
    return fmt::format("{}{}", fmt::join(first, ", "), more);
}

bool CanRun(const std::filesystem::path& program) {
    std::error_code ignored;
    return std::filesystem::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0;
}

// As the worker finds it: in PATH, or from its working directory if it has a slash.
bool IsThere(const std::string& program, const std::string& directory) {
    if (program.find('/') != std::string::npos) {
        return CanRun(std::filesystem::path(directory.empty() ? "." : directory) / program);
    }
    const char* path = std::getenv("PATH");
    std::string_view rest = path != nullptr ? path : "";
    while (!rest.empty()) {
        std::size_t end = std::min(rest.find(':'), rest.size());
        if (end > 0 && CanRun(std::filesystem::path(rest.substr(0, end)) / program)) return true;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
}

std::string CureOf(const CheckFinding& finding) {
    if (finding.what == "the file is sound") {
        return "stop all workers, copy the file and what lies beside it, then restore a backup; "
               "suspect the disk";
    }
    if (finding.what == "every retry policy can be read") {
        return "a newer program wrote it, or a person did: upgrade the workers, or stint task "
               "cancel";
    }
    return "keep a copy of the store before anything else, then report this with the output of: "
           "stint doctor -o json";
}

std::string WorkerText(const SessionRecord& session) {
    return fmt::format("{} pid {}", session.hostname, session.pid);
}

// What is known of the workers and of what waits, for the questions below.
struct Scene {
    Time now;
    std::vector<SessionRecord> live, silent, dead;
    std::map<std::string, std::int64_t> waiting_types;
    std::int64_t waiting = 0, dead_tasks = 0;
};

Scene Look(Client& client) {
    Scene scene;
    scene.now = client.Now();
    for (SessionRecord& session : client.Sessions()) {
        if (session.state == SessionState::kExpired) {
            scene.dead.push_back(std::move(session));
        } else if (session.state != SessionState::kClosed) {
            auto& where = session.lease_until < scene.now ? scene.silent : scene.live;
            where.push_back(std::move(session));
        }
    }
    model::TaskFilter filter;
    filter.states = {model::State::kOpen, model::State::kError, model::State::kDead};
    for (const auto& [key, tasks] : client.Counts(filter)) {
        if (key.state == model::State::kDead) {
            scene.dead_tasks += tasks;
        } else {
            scene.waiting += tasks;
            scene.waiting_types[key.type] += tasks;
        }
    }
    return scene;
}

std::vector<std::string> Texts(const std::vector<SessionRecord>& sessions) {
    std::vector<std::string> texts;
    for (const SessionRecord& session : sessions) texts.push_back(WorkerText(session));
    return texts;
}

Diagnosis SomebodyWorks(const Scene& scene) {
    Diagnosis found{.part = "workers", .what = "a worker is running", .detail = {}, .cure = {}};
    int running = 0, slots = 0;
    for (const SessionRecord& session : scene.live) {
        running += session.running;
        slots += session.slots;
    }
    found.detail = fmt::format(
        "{} live, {} of {} slots busy, {} tasks waiting",
        scene.live.size(),
        running,
        slots,
        scene.waiting
    );
    if (scene.live.empty() && scene.waiting > 0) {
        found.verdict = Verdict::kLook;
        found.cure = "stint worker start, on a machine that reaches the store";
    }
    return found;
}

Diagnosis NoneIsSilent(const Scene& scene) {
    Diagnosis found{.part = "workers", .what = "none is silent", .detail = {}, .cure = {}};
    if (scene.silent.empty()) return found;
    found.verdict = Verdict::kLook;
    found.detail = "no heartbeat in time: " + Names(Texts(scene.silent));
    found.cure =
        "frozen, dead, or cut off from the store: look there; another live worker takes its tasks";
    return found;
}

Diagnosis NoneHasDied(const Scene& scene) {
    Diagnosis found{
        .part = "workers", .what = "none has died within a day", .detail = {}, .cure = {}};
    if (scene.dead.empty()) return found;
    found.verdict = Verdict::kLook;
    found.detail = "died without a farewell: " + Names(Texts(scene.dead));
    found.cure = "its tasks were taken over; why it died stands in the logs of its machine";
    return found;
}

Diagnosis OneVersion(const Scene& scene) {
    Diagnosis found{.part = "workers", .what = "all have one version", .detail = {}, .cure = {}};
    std::set<std::string> versions;
    for (const SessionRecord& session : scene.live) versions.insert(session.version);
    found.detail = Names({versions.begin(), versions.end()});
    if (versions.size() > 1) {
        found.verdict = Verdict::kLook;
        found.cure = "an upgrade under way, or a machine that was forgotten: stint worker list";
    }
    return found;
}

Diagnosis TypesAreHandled(const Scene& scene) {
    Diagnosis found{
        .part = "work", .what = "what waits has a worker for its type", .detail = {}, .cure = {}};
    std::set<std::string> handled;
    for (const SessionRecord& session : scene.live) {
        handled.insert(session.types.begin(), session.types.end());
    }
    std::vector<std::string> none;
    for (const auto& [type, tasks] : scene.waiting_types) {
        if (!handled.contains(type)) none.push_back(fmt::format("{} ({})", type, tasks));
    }
    if (none.empty()) return found;
    found.verdict = Verdict::kLook;
    found.detail = "nobody handles " + Names(none);
    found.cure = "start a worker that declares or handles them";
    return found;
}

Diagnosis QueuesAreOpen(Client& client) {
    Diagnosis found{
        .part = "work", .what = "no queue is paused with tasks in it", .detail = {}, .cure = {}};
    std::vector<std::string> paused;
    for (const model::QueueRecord& queue : client.Queues()) {
        if (!queue.settings.paused || queue.waiting == 0) continue;
        std::string by = queue.settings.changed_by;
        paused.push_back(fmt::format(
            "{} ({} waiting{})", queue.settings.name, queue.waiting, by.empty() ? "" : ", by " + by
        ));
    }
    if (paused.empty()) return found;
    found.verdict = Verdict::kLook;
    found.detail = Names(paused);
    found.cure = "stint queue resume NAME, when whoever paused it agrees";
    return found;
}

Diagnosis ResourcesAreOpen(Client& client) {
    Diagnosis found{
        .part = "work",
        .what = "no resource is closed because it failed",
        .detail = {},
        .cure = {}};
    std::vector<std::string> closed;
    for (const ResourceRecord& resource : client.Resources().List()) {
        if (resource.breaker == BreakerState::kClosed) continue;
        std::string why = resource.evidence.empty() ? "" : resource.evidence.front().message;
        closed.push_back(resource.settings.name + (why.empty() ? "" : " (" + why + ")"));
    }
    if (closed.empty()) return found;
    found.verdict = Verdict::kLook;
    found.detail = Names(closed);
    found.cure = "it is tried again by itself; at once with: stint resource open NAME";
    return found;
}

Diagnosis NothingIsDead(const Scene& scene) {
    Diagnosis found{
        .part = "work", .what = "no task has failed for good", .detail = {}, .cure = {}};
    if (scene.dead_tasks == 0) return found;
    found.verdict = Verdict::kLook;
    found.detail = fmt::format("{} are dead", scene.dead_tasks);
    found.cure = "stint task list state:dead, then stint task retry ID";
    return found;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
    switch (verdict) {
        case Verdict::kOk:
            return "ok";
        case Verdict::kLook:
            return "look";
        case Verdict::kBroken:
            return "broken";
    }
    return "broken";
}

base::OrderedJson ToJson(const Diagnosis& diagnosis) {
    return {
        {"part", diagnosis.part},
        {"check", diagnosis.what},
        {"verdict", VerdictName(diagnosis.verdict)},
        {"detail", diagnosis.detail},
        {"cure", diagnosis.cure}};
}

std::vector<Diagnosis> ExamineConfig(const Config& config) {
    std::vector<Diagnosis> found;
    found.push_back(
        {.part = "config",
         .what = "it can be read",
         .detail = config.files_read().empty() ? "no file, so defaults and environment"
                                               : Names(config.files_read()),
         .cure = {}}
    );
    for (const CommandTask& task : config.commands()) {
        Diagnosis one{
            .part = "config",
            .what = fmt::format("the program of task.{} is there", task.name),
            .detail = task.command.at(0),
            .cure = {}};
        if (!IsThere(task.command.at(0), task.directory)) {
            one.verdict = Verdict::kLook;
            one.detail = fmt::format("{} is not found here", base::Quoted(task.command.at(0)));
            one.cure = fmt::format(
                "install it, or give its whole path ({}); it counts where workers run", task.origin
            );
        }
        found.push_back(std::move(one));
    }
    for (const ProbeSetting& setting : config.probes()) {
        Diagnosis one{
            .part = "config",
            .what = fmt::format("probe.{} succeeds from here", setting.name),
            .detail = fmt::format("{} {}", setting.kind, setting.target),
            .cure = {}};
        if (auto works = services::RunProbe(setting.probe, {}); !works) {
            one.verdict = Verdict::kLook;
            one.detail = works.error().message;
            one.cure = fmt::format(
                "mend {}, or the probe ({}): a worker here leaves tasks that need it",
                base::Quoted(setting.probe.resource),
                setting.origin
            );
        }
        found.push_back(std::move(one));
    }
    return found;
}

std::vector<Diagnosis> ExamineStore(Client& client, Time here) {
    std::vector<Diagnosis> found;
    StoreInfo info = client.Info();
    found.push_back(
        {.part = "store",
         .what = "it can be opened",
         .detail = fmt::format("{}, {}, schema {}", info.address, info.version, info.schema),
         .cure = {}}
    );
    auto ahead = std::chrono::floor<Duration>(client.Now() - here);
    Diagnosis clocks{
        .part = "store", .what = "its clock agrees with this machine's", .detail = {}, .cure = {}};
    if (ahead > kClockApart || ahead < -kClockApart) {
        clocks.verdict = Verdict::kLook;
        clocks.detail = fmt::format(
            "it is {} {}",
            model::RoughDuration(ahead < Duration::zero() ? -ahead : ahead),
            ahead < Duration::zero() ? "behind" : "ahead"
        );
        clocks.cure = "set both by NTP; what is due and who is dead goes by the store's clock";
    }
    found.push_back(std::move(clocks));
    for (CheckFinding& finding : client.Check()) {
        found.push_back(
            {.part = "store",
             .what = finding.what,
             .verdict = finding.ok ? Verdict::kOk : Verdict::kBroken,
             .detail = finding.detail,
             .cure = finding.ok ? "" : CureOf(finding)}
        );
    }
    return found;
}

std::vector<Diagnosis> ExamineWork(Client& client) {
    Scene scene = Look(client);
    return {
        SomebodyWorks(scene),
        NoneIsSilent(scene),
        NoneHasDied(scene),
        OneVersion(scene),
        TypesAreHandled(scene),
        QueuesAreOpen(client),
        ResourcesAreOpen(client),
        NothingIsDead(scene)};
}

}  // namespace stint::node
