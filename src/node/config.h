// Configuration: one table of settings, each said by a flag, the environment, or a file, in this
// order of precedence:
//
//     flag > STINT_* > ./stint.toml > $XDG_CONFIG_HOME/stint/config.toml > /etc/stint/config.toml
//
// and the commands that a worker runs as tasks ([task.NAME] in the files), and what it probes
// ([probe.NAME]).
#pragma once

#include <stint/options.h>
#include <stint/result.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/limits.h"
#include "model/resource.h"
#include "model/retry.h"

namespace stint::node {

// What a setting may hold; checked wherever it comes from.
enum class SettingKind : std::uint8_t {
    kText,
    kNumber,  // from 1
    kCount,   // from 0, or "auto"
    kDuration,
    kNames,
    kLease,
    kChoice,
    kQueueLimits,     // "slow=2,mail=4"; a table in the files
    kResourceLimits,  // the same, also by pattern: "host:*=2"
};

struct SettingSpec {
    std::string_view key;          // as in the files: "worker.slots"
    std::string_view environment;  // STINT_WORKER_SLOTS
    std::string_view fallback;
    SettingKind kind = SettingKind::kText;
    std::string_view choices;  // for kChoice: "auto|always|never"
    std::string_view help;
};
std::span<const SettingSpec> SettingSpecs();

struct Setting {
    std::string value;
    std::string origin;  // "default", "STINT_STORE", "stint.toml", "flag --store", …
};

// A task type that is a program: argv, never a shell string. Its input is on standard input.
struct CommandTask {
    std::string name;
    std::vector<std::string> command;
    std::string queue = "default";
    int priority = model::limits::kPriorityDefault;
    model::RetryPolicy retry = {};
    Duration timeout{};  // of one attempt; zero = none
    model::Needs needs = {};
    std::vector<std::string> labels = {};
    std::string directory;  // working directory; empty = the worker's
    std::uint64_t memory_bytes = 0;
    Duration cpu_time{};
    std::string origin;  // the file that declares it
};

// [probe.NAME]: whether a resource works, seen from the worker.
struct ProbeSetting {
    std::string name;  // what it decides, unless `resource` says another
    std::string kind;  // "tcp", "http", "command"
    std::string target;
    Probe probe;
    std::string origin;  // the file that declares it
};

// Where to look. Tests give their own.
struct ConfigSources {
    struct File {
        std::filesystem::path path;
        bool required = false;  // named by the user: missing is an error
    };
    std::vector<File> files;  // strongest first
    std::function<std::optional<std::string>(std::string_view name)> environment;

    // The machine's: the real environment, and `explicit_file` (or STINT_CONFIG) in place of
    // ./stint.toml when it is not empty.
    static ConfigSources OfProcess(std::string_view explicit_file = {});
};

class Config {
public:
    // kInvalid with file, line, key, value and cure.
    static Result<Config> Load(const ConfigSources& sources);

    // A flag: the strongest word.
    Result<void> Set(std::string_view key, std::string value, std::string origin);

    const Setting& Get(std::string_view key) const;  // the key is one of SettingSpecs
    const std::string& Text(std::string_view key) const { return Get(key).value; }
    std::int64_t Number(std::string_view key) const;
    Duration Time(std::string_view key) const;
    std::vector<std::string> Names(std::string_view key) const;
    LeaseOptions Lease(std::string_view key) const;
    std::map<std::string, int> Limits(std::string_view key) const;

    const std::vector<CommandTask>& commands() const { return commands_; }
    const std::vector<ProbeSetting>& probes() const { return probes_; }
    const std::vector<std::string>& files_read() const { return files_read_; }

private:
    std::map<std::string, Setting, std::less<>> settings_;
    std::vector<CommandTask> commands_;
    std::vector<ProbeSetting> probes_;
    std::vector<std::string> files_read_;
};

// "default", "brisk", "patient", or a duration from which heartbeat and self-stop follow.
Result<LeaseOptions> ParseLease(std::string_view text);

// "slow=2,mail=4"; the message names the entry and the cure.
Result<std::map<std::string, int>> ParseLimits(std::string_view text, SettingKind kind);

// "64Mi", "2Gi", "1000": bytes.
Result<std::uint64_t> ParseSize(std::string_view text);

}  // namespace stint::node
