// stint bench …: figures that anybody can take again. Real worker processes, real settles; done is
// what the store says is done.
#include "cli/bench.h"

#include <fmt/format.h>

#include "cli/program.h"
#include "model/limits.h"

namespace stint::cli {

namespace {

void CheckOptions(const BenchOptions& options) {
    constexpr int kMany = 100'000'000, kDay = 86'400;
    auto within = [](const char* name, int value, int most) {
        if (value >= 1 && value <= most) return;
        throw CommandError(
            kUsage, fmt::format("{} is {}; it must be between 1 and {}", name, value, most)
        );
    };
    auto within_if_given = [&within](const char* name, int value, int most) {
        if (value != 0) within(name, value, most);
    };
    within_if_given("--tasks", options.tasks, kMany);
    within_if_given("--first", options.first, kMany);
    within_if_given("--batch", options.batch, model::limits::kSlots);
    within_if_given("--clients", options.clients, 1'000);
    within_if_given("--rate", options.rate, 1'000'000);
    within_if_given("--seconds", options.seconds, kDay);
    within_if_given("--future", options.future, kMany);
    within("--capacity", options.capacity, 1'000'000);
    within("--slots", options.slots, model::limits::kSlots);
    within("--processes", options.processes, 64);
}

// ---- options -----------------------------------------------------------------------------------

void DefineWhere(Syntax& syntax, BenchOptions& options) {
    syntax.Switch("--in-place", options.in_place, "measure the store itself, not a fresh one");
    syntax.Switch("--force", options.force, "with --in-place: although it holds tasks");
}
void DefineWorkers(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--processes", options.processes, "N", "worker processes (1)");
    syntax.Number("--slots", options.slots, "N", "tasks at once in each worker (16)");
}
void DefineClaims(Syntax& syntax, BenchOptions& options) {
    DefineWorkers(syntax, options);
    syntax.Number(
        "--batch", options.batch, "N", "tasks a worker claims at once (as it finds best)"
    );
}
void DefineBound(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--seconds", options.seconds, "N", "give up after so long (3600)");
}

void DefineDrain(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many wait (10000)");
    syntax.Number("--first", options.first, "N", "measure until so many of them are done (all)");
    DefineClaims(syntax, options);
    DefineBound(syntax, options);
    DefineWhere(syntax, options);
}
void DefineSubmit(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many (10000)");
    syntax.Number("--clients", options.clients, "N", "submitting threads (16)");
    syntax.Number("--batch", options.batch, "N", "tasks per submit (1)");
    DefineBound(syntax, options);
    DefineWhere(syntax, options);
}
void DefineLatency(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many, one after the other (300)");
    DefineWorkers(syntax, options);
    DefineBound(syntax, options);
    DefineWhere(syntax, options);
}
void DefineOpenLoop(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--rate", options.rate, "N", "submits per second, all threads together (500)");
    syntax.Number("--seconds", options.seconds, "N", "for how long (10)");
    syntax.Number("--clients", options.clients, "N", "submitting threads (64)");
    DefineClaims(syntax, options);
    DefineWhere(syntax, options);
}
void DefineBacklog(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "the large backlog (1000000)");
    syntax.Number(
        "--future", options.future, "N", "measure also beside so many that are not due (0)"
    );
    DefineClaims(syntax, options);
    DefineBound(syntax, options);
}
void DefinePinned(Syntax& syntax, BenchOptions& options) {
    syntax.Text("--pin", options.pin, "HOW", "snapshot, xid or dump (PostgreSQL); reader (SQLite)");
    syntax.Number("--seconds", options.seconds, "N", "how long it is held (60)");
    syntax.Number("--clients", options.clients, "N", "submitting threads (4)");
    syntax.Number("--batch", options.batch, "N", "tasks per submit (100)");
    DefineWorkers(syntax, options);
}
void DefineResources(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "how many in each of four rounds (10000)");
    syntax.Number("--capacity", options.capacity, "N", "units that there are (64)");
    DefineClaims(syntax, options);
    DefineBound(syntax, options);
}
void DefineIdle(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--seconds", options.seconds, "N", "for how long (60)");
    DefineWorkers(syntax, options);
    DefineWhere(syntax, options);
}
void DefineFanout(Syntax& syntax, BenchOptions& options) {
    syntax.Number("--tasks", options.tasks, "N", "children (1000)");
    DefineClaims(syntax, options);
    DefineBound(syntax, options);
}

int CheckedFanout(Invocation& invocation, const BenchOptions& options) {
    if (options.tasks > model::limits::kWaitMembers) {
        throw CommandError(
            kUsage,
            fmt::format(
                "--tasks is {}; a task waits for at most {} others",
                options.tasks,
                model::limits::kWaitMembers
            )
        );
    }
    return BenchFanout(invocation, options);
}

// ---- words -------------------------------------------------------------------------------------

using Define = void (*)(Syntax&, BenchOptions&);
using Measure = int (*)(Invocation&, const BenchOptions&);

struct Kind {
    const char* name;
    const char* summary;
    const char* example;
    Define define;
    Measure measure;
};

constexpr Kind kKinds[] = {
    {"drain",
     "How fast workers finish what waits: claim, run a no-op, settle, history, audit.",
     "stint bench drain --tasks 100000 --slots 64 -o json",
     DefineDrain,
     BenchDrain},
    {"submit",
     "How fast tasks are accepted, durably, from several threads.",
     "stint bench submit --clients 16\nstint bench submit --clients 1 --batch 1000",
     DefineSubmit,
     BenchSubmit},
    {"latency",
     "How long from a submit to the start of the handler in another process.",
     "stint bench latency --store postgres://user@host/database",
     DefineLatency,
     BenchLatency},
    {"openloop",
     "How long from when a submit was due to the start of its handler, under steady load.",
     "stint bench openloop --rate 5000 --seconds 60 --slots 64",
     DefineOpenLoop,
     BenchOpenLoop},
    {"backlog",
     "Whether a large backlog, or much that is not due yet, slows down what is in front.",
     "stint bench backlog --tasks 1000000 --future 1000000",
     DefineBacklog,
     BenchBacklog},
    {"pinned",
     "Whether work slows down while somebody keeps an old view of the store open.",
     "stint bench pinned --seconds 600 --pin dump",
     DefinePinned,
     BenchPinned},
    {"resources",
     "What it costs that every task needs a unit of a resource.",
     "stint bench resources --capacity 64 --slots 64",
     DefineResources,
     BenchResources},
    {"idle",
     "What a worker costs that has nothing to do: statements per minute, CPU.",
     "stint bench idle --seconds 300",
     DefineIdle,
     BenchIdle},
    {"fanout",
     "One task that makes many and waits for them, against as many without it.",
     "stint bench fanout --tasks 5000",
     DefineFanout,
     CheckedFanout},
};

}  // namespace

void AddBench(Program& program) {
    CLI::App& group = program.Group(
        program.root(),
        "bench",
        "Measures, on a fresh store beside yours that is removed afterwards."
    );
    for (const Kind& kind : kKinds) {
        program.Command<BenchOptions>(
            group,
            kind.name,
            kind.summary,
            kind.example,
            kind.define,
            [measure = kind.measure](Invocation& invocation, const BenchOptions& options) {
                CheckOptions(options);
                return measure(invocation, options);
            }
        );
    }
}

}  // namespace stint::cli
