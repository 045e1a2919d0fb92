// stint submit: one task, or many from lines of JSON.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cli/cause.h"
#include "cli/input.h"
#include "cli/program.h"
#include "cli/signals.h"
#include "cli/submit_request.h"
#include "cli/verdict.h"

namespace stint::cli {

namespace {

constexpr std::size_t kLinesPerTransaction = 500;

struct SubmitOptions {
    SubmitFlags flags;
    std::string jsonl;
    bool wait = false;
    std::optional<std::string> wait_for;
};

std::string_view KindName(node::SubmitReply::Kind kind) {
    using Kind = node::SubmitReply::Kind;
    switch (kind) {
        case Kind::kCreated:
            return "created";
        case Kind::kExisting:
            return "existing";
        case Kind::kReplaced:
            return "replaced";
        case Kind::kThrottled:
            return "throttled";
        case Kind::kConflict:
            return "conflict";
        case Kind::kQueueFull:
            return "queue_full";
        case Kind::kInvalid:
            return "invalid";
    }
    return "invalid";
}

// The id in a table too: what a script reads and a person copies is the same line.
void PrintReply(const Output& out, const node::SubmitReply& reply) {
    std::string id = reply.id.ToString();
    switch (out.format()) {
        case Format::kTable:
        case Format::kIds:
            out.Line(id);
            return;
        case Format::kJson:
        case Format::kJsonl:
            out.Line(base::JsonText(base::OrderedJson{{"id", id}, {"result", KindName(reply.kind)}})
            );
            return;
        case Format::kNone:
            return;
    }
}

// A name that no worker has registered is most often a typing mistake; it is accepted all the same.
void HintUnknownType(
    const Invocation& invocation,
    const std::string& type,
    const std::vector<model::TypeRecord>& types
) {
    std::vector<std::string> names;
    for (const model::TypeRecord& known : types) {
        if (known.defaults.type == type) return;
        names.push_back(known.defaults.type);
    }
    auto near = base::Nearest(type, names);
    std::string hint;
    if (!near.empty())
        hint = fmt::format("; nearest known: {}", near);
    else if (names.empty())
        hint = "; no worker has run on this store yet: stint worker start";
    invocation.Say(
        "note: no worker knows the type \"{}\" yet{}. It waits until one does.", type, hint
    );
}

// For a first look at a request, before any store is opened or made. Only the instants that it
// names may turn out otherwise by the store's clock.
RequestContext WithoutStore(const Invocation& invocation) {
    static const std::vector<model::TypeRecord> kNoTypes;
    return {
        base::SystemClock().WallTime(),
        TenantId(invocation.config().Number("tenant")),
        invocation.actor(),
        kNoTypes,
        {}};
}

RequestContext WithStore(
    const Invocation& invocation,
    node::Client& client,
    const std::vector<model::TypeRecord>& types,
    const SubmitFlags& flags
) {
    return {
        client.Now(),
        TenantId(invocation.config().Number("tenant")),
        invocation.actor(),
        types,
        CauseOf(flags.by, client)};
}

int SubmitOne(Invocation& invocation, const SubmitOptions& options) {
    std::string input = ReadInput(options.flags.input);
    MakeRequest(options.flags, input, WithoutStore(invocation));
    node::Client client = invocation.OpenStore();
    auto types = client.Types();
    model::NewTask task = MakeRequest(
        options.flags, std::move(input), WithStore(invocation, client, types, options.flags)
    );
    node::SubmitReply reply = Need(client.Submit({&task, 1}).at(0));
    HintUnknownType(invocation, task.type, types);
    if (reply.kind != node::SubmitReply::Kind::kCreated) {
        invocation.Say(
            "note: task {} stands for this request ({})", reply.id.ToString(), KindName(reply.kind)
        );
    }
    if (!options.wait && !options.wait_for) {
        PrintReply(invocation.out(), reply);
        invocation.Suggest("follow it with: stint task wait {}", reply.id.ToString());
        return kOk;
    }
    if (invocation.out().format() == Format::kIds) PrintReply(invocation.out(), reply);
    return AwaitVerdict(invocation, client, {reply.id}, options.wait_for);
}

// Reads lines, submits them in transactions of kLinesPerTransaction, prints an id for each that was
// accepted. A line that is wrong stops nothing: it is named and counted.
class LineSubmitter {
public:
    LineSubmitter(Invocation& invocation, const SubmitFlags& flags)
        : invocation_(invocation), flags_(flags) {}

    int Run(std::istream& input) {
        std::string line;
        while (std::getline(input, line)) {
            ++line_number_;
            if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
            try {
                if (!client_) OpenFor(line);
                batch_.push_back(MakeRequestFromLine(flags_, line, *context_));
                numbers_.push_back(line_number_);
            } catch (const CommandError& error) {
                Refuse(line_number_, error.what(), error.exit());
            }
            if (batch_.size() == kLinesPerTransaction) Flush();
        }
        Flush();
        invocation_.Say("submitted {}, refused {}", accepted_, refused_);
        return exit_;
    }

private:
    // The store is made for the first line that can be stored.
    void OpenFor(const std::string& line) {
        MakeRequestFromLine(flags_, line, WithoutStore(invocation_));
        client_.emplace(invocation_.OpenStore());
        types_ = client_->Types();
        context_.emplace(WithStore(invocation_, *client_, types_, flags_));
    }

    void Refuse(std::size_t number, std::string_view why, int exit) {
        invocation_.Warn(fmt::format("line {}: {}", number, why));
        ++refused_;
        if (exit_ == kOk) exit_ = exit;
    }

    void Flush() {
        if (batch_.empty()) return;
        auto replies = client_->Submit(batch_);
        for (std::size_t i = 0; i < replies.size(); ++i) {
            if (replies[i]) {
                ++accepted_;
                PrintReply(invocation_.out(), *replies[i]);
                continue;
            }
            const Error& error = replies[i].error();
            if (error.code == Code::kUnavailable || error.code == Code::kUnknown) GiveUp(i, error);
            Refuse(numbers_[i], error.message, ExitOf(error.code));
        }
        batch_.clear();
        numbers_.clear();
    }

    // The store is gone: the rest of the batch shares its fate, and nothing after it is sent.
    [[noreturn]] void GiveUp(std::size_t from, const Error& error) {
        std::fflush(stdout);
        throw CommandError(
            ExitOf(error.code),
            fmt::format(
                "lines {} to {}: {}\n{} were submitted before, their ids are printed; nothing "
                "after "
                "these lines was sent",
                numbers_[from],
                numbers_.back(),
                error.message,
                accepted_
            )
        );
    }

    Invocation& invocation_;
    const SubmitFlags& flags_;
    std::optional<node::Client> client_;  // none before the first good line
    std::vector<model::TypeRecord> types_;
    std::optional<RequestContext> context_;
    std::vector<model::NewTask> batch_;
    std::vector<std::size_t> numbers_;  // the lines of the batch
    std::size_t line_number_ = 0, accepted_ = 0, refused_ = 0;
    int exit_ = kOk;
};

int SubmitLines(Invocation& invocation, const SubmitOptions& options) {
    if (!options.flags.input.empty()) {
        throw CommandError(kUsage, "--jsonl takes the input from its lines; leave the JSON out");
    }
    if (options.wait || options.wait_for) {
        throw CommandError(
            kUsage,
            "--jsonl does not wait; pipe the ids: stint submit --jsonl - | stint task wait -"
        );
    }
    std::ifstream file;
    if (options.jsonl != "-") file = OpenFile(options.jsonl);
    LineSubmitter submitter(invocation, options.flags);
    return submitter.Run(options.jsonl == "-" ? std::cin : file);
}

int Submit(Invocation& invocation, const SubmitOptions& options) {
    if (!options.jsonl.empty()) return SubmitLines(invocation, options);
    if (options.flags.type.empty()) {
        throw CommandError(
            kUsage, "the task's type is missing: stint submit TYPE [JSON], for example echo '{}'"
        );
    }
    return SubmitOne(invocation, options);
}

void Define(Syntax& syntax, SubmitOptions& options) {
    SubmitFlags& flags = options.flags;
    syntax.Word("TYPE", flags.type, "the task's type, such as image.resize");
    syntax.Word("INPUT", flags.input, "JSON, @FILE, or - for standard input");
    syntax.Text("--queue", flags.queue, "NAME", "queue; else the type's own");
    syntax.Number("--priority", flags.priority, "N", "0 to 255, higher first");
    syntax.Text("--delay", flags.delay, "DURATION", "due this long from now: 90s, 5m, 2h, 3d");
    syntax.Text("--at", flags.at, "TIME", "due at this instant: RFC 3339 or now+10m");
    syntax.Text(
        "--start-by", flags.start_by, "TIME", "give it up as dead if it has not started by then"
    );
    syntax.Text("--timeout", flags.timeout, "DURATION", "longest time of one attempt");
    syntax.Number("--max-attempts", flags.max_attempts, "N", "attempts in all; 0 = no limit");
    syntax.Text("--key", flags.key, "TEXT", "idempotency key: a repeated submit is the same task");
    syntax.Text(
        "--unique", flags.unique, "TEXT", "at most one unfinished task of the type has this key"
    );
    syntax.Text(
        "--on-duplicate", flags.on_duplicate, "POLICY", "for --unique: return, replace or error"
    );
    syntax.Repeated("--tag", flags.tags, "TAG", "label to find it by; may be repeated");
    syntax.Repeated("--after", flags.after, "ID", "start when this task is over; may be repeated");
    syntax.Switch("--after-any", flags.after_any, "with --after: one that is complete is enough");
    syntax.Text(
        "--on-failure",
        flags.on_failure,
        "POLICY",
        "with --after, if one fails: wait, fail-fast, cancel-rest"
    );
    syntax.Switch(
        "--even-if-failed", flags.after_failure, "with --after: run also when those have failed"
    );
    syntax.Repeated(
        "--need", flags.needs, "NAME[=N]", "units of a resource it needs; may be repeated"
    );
    syntax.Repeated("--label", flags.labels, "LABEL", "a worker must carry it; may be repeated");
    syntax.Text(
        "--order-key", flags.order_key, "TEXT", "tasks of one key run one by one, in this order"
    );
    syntax.Text(
        "--on-failed-head",
        flags.on_failed_head,
        "POLICY",
        "for those behind one that failed: block, skip, dead"
    );
    syntax.Number("--tenant", flags.tenant, "N", "tenant it belongs to (1)");
    syntax.Text("--by", flags.by, "TASK", "the task that asks for it; else STINT_TASK_ID, if set");
    syntax.Text(
        "--jsonl",
        options.jsonl,
        "FILE",
        "many tasks: a file of JSON lines, or - for standard input"
    );
    syntax.Switch("--wait", options.wait, "wait for the end; the exit code is the verdict");
    syntax.Text("--wait-for", options.wait_for, "DURATION", "wait at most this long");
}

}  // namespace

void AddSubmit(Program& program) {
    program.Command<SubmitOptions>(
        program.root(),
        "submit",
        "Submits a task and prints its id.",
        "stint submit echo '{\"hi\": 1}'\n"
        "stint submit report @month.json --queue slow --delay 5m --tag nightly\n"
        "stint submit mail.send - --key order-17 < mail.json\n"
        "stint submit --jsonl - < tasks.jsonl",
        Define,
        Submit
    );
}

}  // namespace stint::cli
