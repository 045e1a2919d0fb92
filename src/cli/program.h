// The command tree. Each command's file adds itself here: its options, its examples, its body.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit_code.h"
#include "cli/invocation.h"
#include "cli/syntax.h"

namespace stint::cli {

// Flags that every command takes.
struct GlobalFlags {
    std::string config;
    struct Given {
        std::string value, flag;
    };
    std::map<std::string, Given> settings;  // configuration key → what a flag says
    bool quiet = false;
    bool no_progress = false;
};

using Body = std::function<int(Invocation&)>;

class Program {
public:
    Program();

    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    CLI::App& root() { return *root_; }
    GlobalFlags& flags() { return flags_; }

    // A group of commands: `stint task …`.
    CLI::App& Group(CLI::App& parent, const std::string& name, const std::string& summary);

    // A command with options of type T: `define` declares them, `body` does the work.
    template <class T>
    void Command(
        CLI::App& parent,
        const std::string& name,
        const std::string& summary,
        const std::string& examples,
        const std::function<void(Syntax&, T&)>& define,
        const std::function<int(Invocation&, const T&)>& body
    ) {
        auto options = std::make_shared<T>();
        Body bound = [options, body](Invocation& invocation) { return body(invocation, *options); };
        CLI::App& command = Add(parent, name, summary, examples);
        SetBody(command, std::move(bound));
        Syntax syntax(*this, command);
        define(syntax, *options);
    }

    int Run(int argc, char** argv);

    // Commands that talk about commands.
    std::string HelpOf(const std::vector<std::string>& path) const;
    // Names of what may follow these words; nullopt when they name no command.
    std::optional<std::vector<std::string>> NamesBelow(const std::vector<std::string>& path) const;

private:
    CLI::App& Add(
        CLI::App& parent,
        const std::string& name,
        const std::string& summary,
        const std::string& examples
    );
    void SetBody(CLI::App& command, Body body);
    int Parse(int argc, char** argv);
    int Execute();

    std::unique_ptr<CLI::App> root_;
    GlobalFlags flags_;
    Body chosen_;
};

// Each in the file of its name.
void AddDemo(Program& program);
void AddSubmit(Program& program);
void AddTask(Program& program);
void AddQueue(Program& program);
void AddResource(Program& program);
void AddSchedule(Program& program);
void AddDeletion(Program& program);
void AddEvent(Program& program);
void AddFlow(Program& program);
void AddWorkflow(Program& program);
void AddWorker(Program& program);
void AddStore(Program& program);
void AddDoctor(Program& program);
void AddBench(Program& program);
void AddConfig(Program& program);
void AddVersion(Program& program);
void AddHelp(Program& program);

}  // namespace stint::cli
