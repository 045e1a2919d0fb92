#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <vector>

#include "base/nearest.h"
#include "cli/help_text.h"

namespace stint::cli {

namespace {

void PrintError(std::string_view message) {
    fmt::print(stderr, "stint: {}\n", message);
}

std::string PathOf(const CLI::App& app) {
    std::string path = app.get_name();
    for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent()) {
        path = up->get_name() + " " + path;
    }
    return path;
}

const CLI::App* FindCommand(const CLI::App* app, std::string_view name) {
    for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == name) return command;
    }
    return nullptr;
}

// The option that `word` spells, in `app` or above it (flags of the program may stand anywhere).
const CLI::Option* FindOption(const CLI::App* app, std::string_view word) {
    std::string name(word.substr(0, word.find('=')));
    for (; app != nullptr; app = app->get_parent()) {
        if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
    }
    return nullptr;
}

// Walks the words as far as they name commands. The first one that should and does not is a mistake
// worth more than "not expected": its nearest match is named. Also says where the walk ended.
struct Walk {
    const CLI::App* deepest;
    std::string unknown;
};
Walk WalkCommands(const CLI::App& root, int argc, char** argv) {
    Walk walk{&root, {}};
    for (int i = 1; i < argc; ++i) {
        std::string_view word = argv[i];
        if (word.size() > 1 && word[0] == '-') {
            const CLI::Option* option = FindOption(walk.deepest, word);
            bool inline_value =
                word.find('=') != std::string_view::npos || (word[1] != '-' && word.size() > 2);
            if (option != nullptr && option->get_expected_min() > 0 && !inline_value) ++i;
            continue;
        }
        if (walk.deepest->get_subcommands([](const CLI::App*) { return true; }).empty())
            return walk;
        const CLI::App* next = FindCommand(walk.deepest, word);
        if (next == nullptr) {
            walk.unknown = word;
            return walk;
        }
        walk.deepest = next;
    }
    return walk;
}

int UnknownCommand(const Walk& walk) {
    std::vector<std::string> names;
    for (const CLI::App* command :
         walk.deepest->get_subcommands([](const CLI::App*) { return true; })) {
        if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    auto near = base::Nearest(walk.unknown, names);
    PrintError(fmt::format(
        "there is no command \"{} {}\"{}\nsee: {} --help",
        PathOf(*walk.deepest),
        walk.unknown,
        near.empty() ? "" : fmt::format("; nearest: {} {}", PathOf(*walk.deepest), near),
        PathOf(*walk.deepest)
    ));
    return kUsage;
}

}  // namespace

Program::Program()
    : root_(std::make_unique<CLI::App>("Durable tasks: submit, run, look, change.", "stint")) {
    root_->formatter(std::make_shared<HelpFormatter>());
    root_->set_help_flag("-h,--help", "print help and end");
    root_->fallthrough();
    Syntax syntax(*this, *root_);
    syntax.Setting("-s,--store", "store", "URL", "sqlite:PATH or postgres://user@host/database");
    syntax.Setting("-o,--output", "output.format", "FORMAT", "table, json, jsonl, ids or none");
    syntax.Setting("--color", "output.color", "WHEN", "auto, always or never");
    syntax.Setting("--log-level", "log.level", "LEVEL", "debug, info, warn or error");
    syntax.Setting("--log-format", "log.format", "FORMAT", "human or json");
    syntax.Setting("--actor", "actor", "NAME", "who acts, for the audit log");
    syntax.Text("--config", flags_.config, "FILE", "configuration file instead of ./stint.toml");
    syntax.Switch("-q,--quiet", flags_.quiet, "only data and errors");
    syntax.Switch("--no-progress", flags_.no_progress, "no progress bar");
    SetExamples(
        *root_,
        "stint demo crash\n"
        "stint submit echo '{\"hi\": 1}'\n"
        "stint worker start\n"
        "stint task list state:dead,error"
    );
    root_->footer(
        "stint help exit-codes, environment, filters, config: more about each.\n"
        "stint COMMAND --help: its options and examples."
    );
}

Program::~Program() = default;

CLI::App& Program::Group(CLI::App& parent, const std::string& name, const std::string& summary) {
    CLI::App& group = Add(parent, name, summary, "");
    group.require_subcommand(0, 1);
    return group;
}

CLI::App& Program::Add(
    CLI::App& parent,
    const std::string& name,
    const std::string& summary,
    const std::string& examples
) {
    CLI::App& command = *parent.add_subcommand(name, summary);
    command.fallthrough();
    SetExamples(command, examples);
    return command;
}

void Program::SetBody(CLI::App& command, Body body) {
    command.callback([this, body = std::move(body)] { chosen_ = body; });
}

std::string Program::HelpOf(const std::vector<std::string>& path) const {
    const CLI::App* command = root_.get();
    std::string name = root_->get_name();
    for (const std::string& word : path) {
        command = FindCommand(command, word);
        if (command == nullptr) return {};
        name += " " + word;
    }
    return command->get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal);
}

int Program::Parse(int argc, char** argv) {
    Walk walk = WalkCommands(*root_, argc, argv);
    if (!walk.unknown.empty()) return UnknownCommand(walk);
    try {
        root_->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << root_->help() << std::flush;
        return kOk;
    } catch (const CLI::ParseError& error) {
        PrintError(fmt::format("{}\nsee: {} --help", error.what(), PathOf(*walk.deepest)));
        return kUsage;
    }
    if (chosen_) return -1;
    // A group alone, or nothing at all: what may follow.
    bool bare = walk.deepest == root_.get();
    (bare ? std::cout : std::cerr) << root_->help() << std::flush;
    return bare ? kOk : kUsage;
}

int Program::Execute() {
    node::Config config = Need(node::Config::Load(node::ConfigSources::OfProcess(flags_.config)));
    for (auto& [key, given] : flags_.settings) Need(config.Set(key, given.value, given.flag));
    Invocation invocation(std::move(config), flags_.quiet, !flags_.quiet && !flags_.no_progress);
    return chosen_(invocation);
}

int Program::Run(int argc, char** argv) {
    int status = Parse(argc, argv);
    if (status >= 0) return status;
    try {
        status = Execute();
    } catch (const CommandError& error) {
        PrintError(error.what());
        return error.exit();
    } catch (const node::StoreError& error) {
        PrintError(error.what());
        return ExitOf(error.code());
    } catch (const std::exception& error) {
        PrintError(error.what());
        return kFailed;
    }
    if (std::fflush(stdout) != 0) {
        PrintError("cannot write to standard output");
        return status == kOk ? kFailed : status;
    }
    return status;
}

}  // namespace stint::cli
