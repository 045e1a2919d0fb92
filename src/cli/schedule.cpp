// stint schedule list | get | put | pause | resume | run | next | backfill | runs | remove | apply
//                | visits | visit | unvisit | calendars
#include <iostream>

#include "base/json.h"
#include "base/text.h"
#include "cli/input.h"
#include "cli/program.h"
#include "cli/schedule_view.h"
#include "model/time_text.h"

namespace stint::cli {

namespace {

using base::OrderedJson;
using node::ScheduleDesk;

struct NoOptions {};
struct NameOptions {
    std::string name;
    std::vector<std::string> names;
    int limit = model::limits::kListPageDefault;
    int count = 20;
};

TenantId TenantOf(const Invocation& invocation) {
    return TenantId(invocation.config().Number("tenant"));
}

// ---- looking -----------------------------------------------------------------------------------

int List(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    auto schedules =
        client.Schedules([&](ScheduleDesk& desk) { return desk.List(TenantOf(invocation)); });
    PrintSchedules(invocation, schedules);
    if (schedules.empty()) {
        invocation.Say("no schedules; make one: stint schedule put nightly TYPE --cron '30 2 * * *'"
        );
    }
    return kOk;
}

int Get(Invocation& invocation, const NameOptions& options) {
    node::Client client = invocation.LookAtStore();
    PrintSchedule(invocation, Need(client.Schedules([&](ScheduleDesk& desk) {
                      return desk.Get(TenantOf(invocation), options.name);
                  })));
    return kOk;
}

int Next(Invocation& invocation, const NameOptions& options) {
    node::Client client = invocation.LookAtStore();
    PrintPreview(invocation, Need(client.Schedules([&](ScheduleDesk& desk) {
                     return desk.Next(TenantOf(invocation), options.name, options.count);
                 })));
    return kOk;
}

int Runs(Invocation& invocation, const NameOptions& options) {
    node::Client client = invocation.LookAtStore();
    node::RunsRequest request;
    request.limit = options.limit;
    PrintRuns(invocation, Need(client.Schedules([&](ScheduleDesk& desk) {
                  return desk.Executions(TenantOf(invocation), options.name, request);
              })));
    return kOk;
}

// ---- put ---------------------------------------------------------------------------------------

struct PutOptions {
    std::string name, type, input, steps;
    std::optional<std::string> cron, every, after_end, after_start, at, visits;
    std::optional<std::string> anchor, first, zone, gap, fold;
    std::optional<std::string> misfire, misfire_grace, misfire_window, overlap, jitter, keep_runs;
    std::optional<int> misfire_limit, priority, max_attempts, expect;
    std::optional<std::string> queue, timeout, unique, instant_field, entity_field;
    std::vector<std::string> except, tags;
};

OrderedJson ReadSteps(const std::string& word) {
    std::string steps = ReadInput(word);
    auto parsed = base::ParseJson(steps, model::limits::kJsonDepth);
    if (!parsed) throw CommandError(kUsage, "--steps " + parsed.error().message);
    return base::ReadOrderedJson(steps);
}

// The flags are the members of the JSON form: what it refuses, it refuses in the same words.
std::string Definition(const PutOptions& options) {
    OrderedJson json, task;
    auto put = [](OrderedJson& into, const char* member, const auto& value) {
        if (value) into[member] = *value;
    };
    json["name"] = options.name;
    put(json, "cron", options.cron);
    put(json, "every", options.every);
    put(json, "anchor", options.anchor);
    put(json, "after_end", options.after_end);
    put(json, "after_start", options.after_start);
    put(json, "first", options.first);
    put(json, "at", options.at);
    put(json, "visits", options.visits);
    put(json, "zone", options.zone);
    put(json, "gap", options.gap);
    put(json, "fold", options.fold);
    put(json, "misfire", options.misfire);
    put(json, "misfire_grace", options.misfire_grace);
    put(json, "misfire_window", options.misfire_window);
    put(json, "misfire_limit", options.misfire_limit);
    put(json, "overlap", options.overlap);
    put(json, "jitter", options.jitter);
    put(json, "keep_runs", options.keep_runs);
    put(json, "instant_field", options.instant_field);
    put(json, "entity_field", options.entity_field);
    if (!options.except.empty()) json["except"] = options.except;
    if (!options.steps.empty()) {
        if (!options.type.empty()) {
            throw CommandError(kUsage, "--steps is given together with TYPE; give one of them");
        }
        json["steps"] = ReadSteps(options.steps);
        return base::JsonText(json);
    }
    if (options.type.empty())
        throw CommandError(kUsage, "TYPE is missing; name it, or give --steps");
    task["type"] = options.type;
    std::string input = ReadInput(options.input);
    auto parsed = base::ParseJson(input, model::limits::kJsonDepth);
    if (!parsed) throw CommandError(kUsage, "INPUT " + parsed.error().message);
    task["input"] = base::ReadOrderedJson(input);
    put(task, "queue", options.queue);
    put(task, "priority", options.priority);
    put(task, "max_attempts", options.max_attempts);
    put(task, "timeout", options.timeout);
    put(task, "unique", options.unique);
    if (!options.tags.empty()) task["tags"] = options.tags;
    json["task"] = std::move(task);
    return base::JsonText(json);
}

int Put(Invocation& invocation, const PutOptions& options) {
    std::string definition = Definition(options);
    node::Client client = invocation.OpenStore();
    auto spec = Need(model::ScheduleFromJson(definition, client.Now()));
    spec.tenant = spec.task.tenant = TenantOf(invocation);
    auto made = Need(client.Schedules([&](ScheduleDesk& desk) {
        return desk.Put(spec, options.expect, invocation.actor());
    }));
    PrintSchedule(invocation, made);
    invocation.Suggest("a running worker fires it; see: stint schedule next {}", options.name);
    return kOk;
}

void DefineTask(Syntax& syntax, PutOptions& options) {
    syntax.Text("--queue", options.queue, "QUEUE", "queue of the tasks");
    syntax.Number("--priority", options.priority, "N", "0 to 255, higher first");
    syntax.Number("--max-attempts", options.max_attempts, "N", "attempts in all; 0 = no limit");
    syntax.Text("--timeout", options.timeout, "DURATION", "of one attempt");
    syntax.Text("--unique", options.unique, "KEY", "at most one live task of this key");
    syntax.Repeated("--tag", options.tags, "TAG", "may be repeated");
    syntax.Text(
        "--instant-field", options.instant_field, "NAME", "member of INPUT that gets the instant"
    );
    syntax.Text(
        "--entity-field", options.entity_field, "NAME", "member of INPUT that gets the entity"
    );
}

void DefinePut(Syntax& syntax, PutOptions& options) {
    syntax.Word("NAME", options.name, "of the schedule", Syntax::Need::kRequired);
    syntax.Word("TYPE", options.type, "of the tasks; not with --steps");
    syntax.Word("INPUT", options.input, "JSON, @FILE, or - for standard input");
    syntax.Text(
        "--steps", options.steps, "JSON", "or @FILE: [{\"name\": …, \"tasks\": [{\"type\": …}]}, …]"
    );
    syntax.Text(
        "--cron", options.cron, "EXPR", "5 or 6 fields (Sunday = 0 or 7), or @daily and its like"
    );
    syntax.Text("--every", options.every, "DURATION", "a fixed grid, however long runs take");
    syntax.Text("--after-end", options.after_end, "DURATION", "so long after each run's end");
    syntax.Text("--after-start", options.after_start, "DURATION", "so long after each run's start");
    syntax.Text("--at", options.at, "TIME", "once");
    syntax.Text("--visits", options.visits, "DURATION", "many entities, each at this interval");
    syntax.Text("--anchor", options.anchor, "TIME", "of the grid of --every");
    syntax.Text("--first", options.first, "TIME", "of --after-end and --after-start");
    syntax.Text("--zone", options.zone, "ZONE", "Europe/Berlin; UTC unless given");
    syntax.Text("--gap", options.gap, "HOW", "clocks go forward: end or skip");
    syntax.Text("--fold", options.fold, "HOW", "clocks go back: first, last or both");
    syntax.Text("--misfire", options.misfire, "HOW", "missed instants: skip, once or all");
    syntax.Text("--misfire-grace", options.misfire_grace, "DURATION", "not missed yet (1m)");
    syntax.Text("--misfire-window", options.misfire_window, "DURATION", "how far back all goes");
    syntax.Number("--misfire-limit", options.misfire_limit, "N", "and how many");
    syntax.Text("--overlap", options.overlap, "HOW", "allow, skip, queue_one or cancel_running");
    syntax.Text("--jitter", options.jitter, "DURATION", "start up to this much later");
    syntax.Repeated("--except", options.except, "CALENDAR", "days without runs; may be repeated");
    syntax.Text("--keep-runs", options.keep_runs, "DURATION", "history of runs (7d)");
    syntax.Number("--expect", options.expect, "REVISION", "refuse any other; 0 = must be new");
    DefineTask(syntax, options);
}

// ---- changing ----------------------------------------------------------------------------------

int SetPaused(Invocation& invocation, const NameOptions& options, bool paused) {
    node::Client client = invocation.LookAtStore();
    for (const std::string& name : options.names) {
        PrintSchedule(
            invocation, Need(client.Schedules([&](ScheduleDesk& desk) {
                return desk.SetPaused(TenantOf(invocation), name, paused, invocation.actor());
            }))
        );
    }
    return kOk;
}

int RunNow(Invocation& invocation, const NameOptions& options) {
    node::Client client = invocation.LookAtStore();
    auto run = Need(client.Schedules([&](ScheduleDesk& desk) {
        return desk.RunNow(TenantOf(invocation), options.name);
    }));
    OrderedJson json = {{"schedule", options.name}, {"task", run.task.ToString()}};
    if (invocation.out().format() == Format::kTable) {
        invocation.out().Line(run.task.ToString());
    } else {
        invocation.out().Print({{"task", {run.task.ToString()}}}, json, run.task.ToString());
    }
    return kOk;
}

int Remove(Invocation& invocation, const NameOptions& options) {
    node::Client client = invocation.LookAtStore();
    for (const std::string& name : options.names) {
        Need(client.Schedules([&](ScheduleDesk& desk) {
            return desk.Remove(TenantOf(invocation), name);
        }));
        invocation.Say("removed {}; its tasks stay", base::Quoted(name));
    }
    return kOk;
}

struct BackfillOptions {
    std::string name;
    std::string from, to = "now";
    bool dry_run = false, again = false;
};

int Backfill(Invocation& invocation, const BackfillOptions& options) {
    if (options.from.empty()) throw CommandError(kUsage, "--from is missing; say where to begin");
    node::Client client = invocation.LookAtStore();
    Time now = client.Now();
    auto instant = [&](const char* flag, const std::string& text) {
        auto time = model::ParseTime(text, now);
        if (!time) throw CommandError(kUsage, fmt::format("{}: {}", flag, time.error().message));
        return *time;
    };
    node::BackfillRequest request{
        .name = options.name,
        .from = instant("--from", options.from),
        .to = instant("--to", options.to),
        .dry_run = options.dry_run,
        .again = options.again};
    auto report = Need(client.Schedules([&](ScheduleDesk& desk) {
        return desk.Backfill(TenantOf(invocation), request);
    }));
    invocation.out().Print(
        {{"missing", {std::to_string(report.missing.size())}},
         {"already there", {std::to_string(report.decided)}},
         {"created", {std::to_string(report.created)}},
         {"refused", {std::to_string(report.refused)}}},
        node::ToJson(report),
        options.name
    );
    if (!report.first_refusal.empty()) invocation.Warn(report.first_refusal);
    if (options.dry_run) invocation.Say("nothing was made; the same without --dry-run makes them");
    return report.refused > 0 ? kFailed : kOk;
}

struct ApplyOptions {
    std::string file;
    bool dry_run = false, prune = false;
};

int Apply(Invocation& invocation, const ApplyOptions& options) {
    node::ApplyRequest request{
        .document = ReadFile(options.file),
        .tenant = TenantOf(invocation),
        .dry_run = options.dry_run,
        .prune = options.prune,
        .actor = invocation.actor()};
    node::Client client = invocation.OpenStore();
    auto steps = Need(client.Schedules([&](ScheduleDesk& desk) { return desk.Apply(request); }));
    PrintSteps(invocation, steps);
    int changes = 0;
    for (const node::ApplyStep& step : steps) {
        changes += step.kind == node::ApplyStep::Kind::kKeep ? 0 : 1;
    }
    invocation.Say(
        "{} of {} {}", changes, steps.size(), options.dry_run ? "would change" : "changed"
    );
    return kOk;
}

// ---- visits and calendars ----------------------------------------------------------------------

struct VisitOptions {
    std::string name, after;
    std::vector<std::string> entities;
    std::optional<std::string> every;
    int limit = model::limits::kListPageDefault;
};

std::vector<std::string> Entities(const std::vector<std::string>& words) {
    std::vector<std::string> entities;
    for (const std::string& word : words) {
        if (word != "-") {
            entities.push_back(word);
            continue;
        }
        for (std::string line; std::getline(std::cin, line);) {
            if (!line.empty()) entities.push_back(line);
        }
    }
    return entities;
}

int Visits(Invocation& invocation, const VisitOptions& options) {
    node::Client client = invocation.LookAtStore();
    node::VisitsRequest request{.schedule = {}, .after = options.after, .limit = options.limit};
    PrintVisits(invocation, Need(client.Schedules([&](ScheduleDesk& desk) {
                    return desk.Visits(TenantOf(invocation), options.name, request);
                })));
    return kOk;
}

int Visit(Invocation& invocation, const VisitOptions& options) {
    std::optional<Duration> every;
    if (options.every) {
        auto parsed = model::ParseDuration(*options.every);
        if (!parsed) throw CommandError(kUsage, "--every: " + parsed.error().message);
        every = *parsed;
    }
    std::vector<model::NewVisit> visits;
    for (std::string& entity : Entities(options.entities)) {
        visits.push_back({std::move(entity), every});
    }
    node::Client client = invocation.LookAtStore();
    Need(client.Schedules([&](ScheduleDesk& desk) {
        return desk.PutVisits(TenantOf(invocation), options.name, visits);
    }));
    invocation.Say("{} entities are visited", visits.size());
    return kOk;
}

int Unvisit(Invocation& invocation, const VisitOptions& options) {
    node::Client client = invocation.LookAtStore();
    std::vector<std::string> entities = Entities(options.entities);
    int removed = Need(client.Schedules([&](ScheduleDesk& desk) {
        return desk.RemoveVisits(TenantOf(invocation), options.name, entities);
    }));
    invocation.Say("{} of {} are visited no more", removed, entities.size());
    return removed == 0 && !entities.empty() ? kNotFound : kOk;
}

int Calendars(Invocation& invocation, const NoOptions&) {
    node::Client client = invocation.LookAtStore();
    Listing listing;
    listing.name = "calendars";
    listing.headers = {"CALENDAR", "DATES"};
    auto calendars =
        client.Schedules([&](ScheduleDesk& desk) { return desk.Calendars(TenantOf(invocation)); });
    for (const model::Calendar& calendar : calendars) {
        listing.rows.push_back({{calendar.name}, {std::to_string(calendar.dates.size())}});
        listing.objects.push_back(node::ToJson(calendar));
        listing.ids.push_back(calendar.name);
    }
    invocation.out().Print(listing);
    if (calendars.empty()) invocation.Say("no calendars; stint schedule apply makes them");
    return kOk;
}

// ---- the tree ----------------------------------------------------------------------------------

void DefineName(Syntax& syntax, NameOptions& options) {
    syntax.Word("NAME", options.name, "of the schedule", Syntax::Need::kRequired);
}
void DefineNames(Syntax& syntax, NameOptions& options) {
    syntax.Words("NAME", options.names, "of schedules", Syntax::Need::kRequired);
}
void DefineEntities(Syntax& syntax, VisitOptions& options) {
    syntax.Word("NAME", options.name, "of the schedule", Syntax::Need::kRequired);
    syntax.Words(
        "ENTITY", options.entities, "entities, or - for lines of input", Syntax::Need::kRequired
    );
}

void AddLooking(Program& program, CLI::App& group) {
    program.Command<NoOptions>(
        group,
        "list",
        "Lists schedules with their next and last instants.",
        "stint schedule list",
        [](Syntax&, NoOptions&) {},
        List
    );
    program.Command<NameOptions>(
        group, "get", "Shows one schedule.", "stint schedule get nightly -o json", DefineName, Get
    );
    program.Command<NameOptions>(
        group,
        "next",
        "Shows the instants to come; days of clock changes and days without runs are marked.",
        "stint schedule next nightly --count 50",
        [](Syntax& syntax, NameOptions& options) {
            DefineName(syntax, options);
            syntax.Number("--count", options.count, "N", "how many (20)");
        },
        Next
    );
    program.Command<NameOptions>(
        group,
        "runs",
        "Shows what became of each instant, newest first.",
        "stint schedule runs nightly\nstint schedule runs nightly -o ids | stint task get -",
        [](Syntax& syntax, NameOptions& options) {
            DefineName(syntax, options);
            syntax.Number("--limit", options.limit, "N", "at most this many (100)");
        },
        Runs
    );
}

void AddChanging(Program& program, CLI::App& group) {
    program.Command<PutOptions>(
        group,
        "put",
        "Makes a schedule, or changes the one of that name.",
        "stint schedule put nightly backup --cron '30 2 * * *' --zone Europe/Berlin\n"
        "stint schedule put poll fetch '{\"all\": true}' --every 10m --overlap skip\n"
        "stint schedule put nightly --steps @steps.json --cron '30 2 * * *'",
        DefinePut,
        Put
    );
    program.Command<NameOptions>(
        group,
        "pause",
        "No runs until it is resumed; what passes meanwhile is left out.",
        "stint schedule pause nightly",
        DefineNames,
        [](Invocation& invocation, const NameOptions& options) {
            return SetPaused(invocation, options, true);
        }
    );
    program.Command<NameOptions>(
        group,
        "resume",
        "Undoes a pause.",
        "stint schedule resume nightly",
        DefineNames,
        [](Invocation& invocation, const NameOptions& options) {
            return SetPaused(invocation, options, false);
        }
    );
    program.Command<NameOptions>(
        group,
        "run",
        "Runs it now, whatever its policies say, and prints the id of the task.",
        "stint schedule run nightly",
        DefineName,
        RunNow
    );
    program.Command<NameOptions>(
        group,
        "remove",
        "Removes schedules with their history; their tasks stay.",
        "stint schedule remove nightly",
        DefineNames,
        Remove
    );
}

void AddMany(Program& program, CLI::App& group) {
    program.Command<BackfillOptions>(
        group,
        "backfill",
        "Makes the runs of a range that did not happen.",
        "stint schedule backfill nightly --from 2026-01-01T00:00:00Z --dry-run\n"
        "stint schedule backfill nightly --from now-2d --to now-1d",
        [](Syntax& syntax, BackfillOptions& options) {
            syntax.Word("NAME", options.name, "of the schedule", Syntax::Need::kRequired);
            syntax.Text("--from", options.from, "TIME", "the first instant that counts");
            syntax.Text("--to", options.to, "TIME", "before this one (now)");
            syntax.Switch("--dry-run", options.dry_run, "only count them");
            syntax.Switch("--again", options.again, "also where nobody knows what ran");
        },
        Backfill
    );
    program.Command<ApplyOptions>(
        group,
        "apply",
        "Makes schedules and calendars what a file says, and prints what differs.",
        "stint schedule apply schedules.json --dry-run\nstint schedule apply schedules.json "
        "--prune",
        [](Syntax& syntax, ApplyOptions& options) {
            syntax.Word(
                "FILE",
                options.file,
                "{\"calendars\": {…}, \"schedules\": […]}, or - for standard input",
                Syntax::Need::kRequired
            );
            syntax.Switch("--dry-run", options.dry_run, "only print what differs");
            syntax.Switch("--prune", options.prune, "remove schedules that it does not name");
        },
        Apply
    );
}

void AddVisiting(Program& program, CLI::App& group) {
    program.Command<VisitOptions>(
        group,
        "visits",
        "Lists the entities of a schedule of visits.",
        "stint schedule visits channels",
        [](Syntax& syntax, VisitOptions& options) {
            syntax.Word("NAME", options.name, "of the schedule", Syntax::Need::kRequired);
            syntax.Text("--after", options.after, "ENTITY", "only those behind it");
            syntax.Number("--limit", options.limit, "N", "at most this many (100)");
        },
        Visits
    );
    program.Command<VisitOptions>(
        group,
        "visit",
        "Adds entities to a schedule of visits, or changes their interval.",
        "stint schedule visit channels 17 18 --every 6h\n"
        "cat channels.txt | stint schedule visit channels -",
        [](Syntax& syntax, VisitOptions& options) {
            DefineEntities(syntax, options);
            syntax.Text("--every", options.every, "DURATION", "instead of the schedule's");
        },
        Visit
    );
    program.Command<VisitOptions>(
        group,
        "unvisit",
        "Takes entities out of a schedule of visits.",
        "stint schedule unvisit channels 17",
        DefineEntities,
        Unvisit
    );
    program.Command<NoOptions>(
        group,
        "calendars",
        "Lists the calendars of days without runs.",
        "stint schedule calendars -o json",
        [](Syntax&, NoOptions&) {},
        Calendars
    );
}

}  // namespace

void AddSchedule(Program& program) {
    CLI::App& group =
        program.Group(program.root(), "schedule", "Schedules: tasks again and again.");
    AddLooking(program, group);
    AddChanging(program, group);
    AddMany(program, group);
    AddVisiting(program, group);
}

}  // namespace stint::cli
