#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <vector>

#include "base/nearest.h"
#include "cli/help_text.h"

namespace stint::cli {

namespace {

void PrintError(std::string_view message) {
    if (message.empty()) return;
    fmt::print(stderr, "stint: {}\n", message);
}

std::string PathOf(const CLI::App& app) {
    std::string path = app.get_name();
    for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent()) {
        path = up->get_name() + " " + path;
    }
    return path;
}

std::vector<const CLI::App*> Commands(const CLI::App* app) {
    return app->get_subcommands([](const CLI::App*) { return true; });
}

const CLI::App* FindCommand(const CLI::App* app, std::string_view name) {
    for (const CLI::App* command : Commands(app)) {
        if (command->get_name() == name) return command;
    }
    return nullptr;
}

// The option of this app that `word` spells: "--store", "--store=x", "-s", "-sx".
const CLI::Option* FindOption(const CLI::App* app, std::string_view word) {
    bool is_long = word.starts_with("--");
    std::string name(is_long ? word.substr(0, word.find('=')) : word.substr(0, 2));
    return app->get_option_no_throw(name);
}

// Its value is a word of its own.
bool TakesNextWord(const CLI::Option& option, std::string_view word) {
    bool inline_value =
        word.starts_with("--") ? word.find('=') != std::string_view::npos : word.size() > 2;
    return option.get_items_expected_min() > 0 && !inline_value;
}

// Reads the words the way a person means them. Flags of the whole program may stand anywhere: they
// are moved to the front, because the parser takes them only there. (It could look upwards by
// itself, but then it also takes any word that happens to be a command's name for that command:
// `stint queue pause task`.) A word that should name a command and does not is a mistake that
// deserves more than "not expected".
struct Reading {
    const CLI::App* deepest;         // the command that the words name
    std::string unknown;             // what should have been one
    std::vector<std::string> words;  // for the parser
};
Reading Read(const CLI::App& root, int argc, char** argv) {
    Reading reading{&root, {}, {}};
    std::vector<std::string> rest;
    for (int i = 1; i < argc; ++i) {
        std::string_view word = argv[i];
        if (word == "--") {
            rest.insert(rest.end(), argv + i, argv + argc);
            break;
        }
        if (word.size() > 1 && word[0] == '-') {
            const CLI::Option* option = FindOption(reading.deepest, word);
            bool global = reading.deepest == &root;
            if (option == nullptr) {
                option = FindOption(&root, word);
                global = option != nullptr;
            }
            auto& target = global ? reading.words : rest;
            target.emplace_back(word);
            if (option != nullptr && TakesNextWord(*option, word) && i + 1 < argc) {
                target.emplace_back(argv[++i]);
            }
            continue;
        }
        rest.emplace_back(word);
        if (Commands(reading.deepest).empty()) continue;
        const CLI::App* next = FindCommand(reading.deepest, word);
        if (next == nullptr) {
            reading.unknown = word;
            return reading;
        }
        reading.deepest = next;
    }
    reading.words.insert(reading.words.end(), rest.begin(), rest.end());
    return reading;
}

std::vector<std::string> NamesOf(const CLI::App* app) {
    std::vector<std::string> names;
    for (const CLI::App* command : Commands(app)) names.push_back(command->get_name());
    return names;
}

int UnknownCommand(const Reading& reading) {
    std::string path = PathOf(*reading.deepest);
    auto names = NamesOf(reading.deepest);
    auto near = base::Nearest(reading.unknown, names);
    PrintError(fmt::format(
        "there is no command \"{} {}\"{}\nsee: {} --help",
        path,
        reading.unknown,
        near.empty() ? "" : fmt::format("; nearest: {} {}", path, near),
        path
    ));
    return kUsage;
}

}  // namespace

Program::Program()
    : root_(std::make_unique<CLI::App>("Durable tasks: submit, run, look, change.", "stint")) {
    root_->formatter(std::make_shared<HelpFormatter>());
    root_->set_help_flag("-h,--help", "print help and end");
    // One command: the name of another, after it, is a word like any other (`stint help task cancel
    // 17` cancels nothing).
    root_->require_subcommand(0, 1);
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
        "stint COMMAND --help shows its options and examples;\n"
        "stint help TOPIC tells more about exit-codes, environment, filters, config, match,\n"
        "workflow-file."
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
    SetExamples(command, examples);
    return command;
}

void Program::SetBody(CLI::App& command, Body body) {
    command.callback([this, body = std::move(body)] { chosen_ = body; });
}

namespace {

const CLI::App* FindPath(const CLI::App* command, const std::vector<std::string>& path) {
    for (const std::string& word : path) {
        if (command == nullptr) return nullptr;
        command = FindCommand(command, word);
    }
    return command;
}

}  // namespace

std::string Program::HelpOf(const std::vector<std::string>& path) const {
    const CLI::App* command = FindPath(root_.get(), path);
    if (command == nullptr) return {};
    return command->get_formatter()->make_help(command, {}, CLI::AppFormatMode::Normal);
}

std::optional<std::vector<std::string>> Program::NamesBelow(const std::vector<std::string>& path
) const {
    const CLI::App* command = FindPath(root_.get(), path);
    if (command == nullptr) return std::nullopt;
    return NamesOf(command);
}

int Program::Parse(int argc, char** argv) {
    Reading reading = Read(*root_, argc, argv);
    if (!reading.unknown.empty()) return UnknownCommand(reading);
    try {
        std::reverse(reading.words.begin(), reading.words.end());  // as the parser wants them
        root_->parse(std::move(reading.words));
    } catch (const CLI::CallForHelp&) {
        std::cout << root_->help() << std::flush;
        return kOk;
    } catch (const CLI::ParseError& error) {
        PrintError(fmt::format("{}\nsee: {} --help", error.what(), PathOf(*reading.deepest)));
        return kUsage;
    }
    if (chosen_) return -1;
    // A group alone, or nothing at all: what may follow.
    bool bare = reading.deepest == root_.get();
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
        if (errno == EPIPE) return kReaderGone;
        PrintError("cannot write to standard output");
        return status == kOk ? kFailed : status;
    }
    return status;
}

}  // namespace stint::cli
