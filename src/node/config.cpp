#include "node/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/check.h"
#include "base/nearest.h"
#include "base/result.h"
#include "model/lease.h"
#include "model/room.h"
#include "model/time_text.h"
#include "node/config_file.h"

namespace stint::node {

namespace {

using base::MakeError;

constexpr SettingSpec kSpecs[] = {
    {"store",
     "STINT_STORE",
     "sqlite:.stint/stint.db",
     SettingKind::kText,
     "",
     "sqlite:PATH or postgres://user@host/database"},
    {"tenant", "STINT_TENANT", "1", SettingKind::kNumber, "", "tenant of submitted tasks"},
    {"actor", "STINT_ACTOR", "", SettingKind::kText, "", "who acts, for the audit log"},
    {"worker.slots",
     "STINT_WORKER_SLOTS",
     "8",
     SettingKind::kNumber,
     "",
     "tasks running at once in one worker"},
    {"worker.prefetch",
     "STINT_WORKER_PREFETCH",
     "auto",
     SettingKind::kCount,
     "",
     "tasks claimed ahead of free slots"},
    {"worker.queues",
     "STINT_WORKER_QUEUES",
     "",
     SettingKind::kNames,
     "",
     "queues served, with commas; empty = all"},
    {"worker.labels",
     "STINT_WORKER_LABELS",
     "",
     SettingKind::kNames,
     "",
     "labels carried, with commas"},
    {"worker.at_once_of_queue",
     "STINT_WORKER_AT_ONCE_OF_QUEUE",
     "",
     SettingKind::kQueueLimits,
     "",
     "of a queue at once here: slow=2,mail=4"},
    {"worker.at_once_of_resource",
     "STINT_WORKER_AT_ONCE_OF_RESOURCE",
     "",
     SettingKind::kResourceLimits,
     "",
     "of a resource at once here: gpu=1,host:*=2"},
    {"worker.lease",
     "STINT_WORKER_LEASE",
     "default",
     SettingKind::kLease,
     "",
     "default, brisk, patient, or a duration"},
    {"worker.poll_max",
     "STINT_WORKER_POLL_MAX",
     "5s",
     SettingKind::kDuration,
     "",
     "longest pause of an idle worker"},
    {"worker.drain",
     "STINT_WORKER_DRAIN",
     "25s",
     SettingKind::kDuration,
     "",
     "time running tasks get to finish at a stop"},
    {"worker.sweep_every",
     "STINT_WORKER_SWEEP_EVERY",
     "5s",
     SettingKind::kDuration,
     "",
     "how often a worker looks for dead workers' tasks"},
    {"worker.name",
     "STINT_WORKER_NAME",
     "",
     SettingKind::kText,
     "",
     "label of this machine; empty = its host name"},
    {"log.level",
     "STINT_LOG_LEVEL",
     "info",
     SettingKind::kChoice,
     "debug|info|warn|error",
     "least severe record shown"},
    {"log.format",
     "STINT_LOG_FORMAT",
     "human",
     SettingKind::kChoice,
     "human|json",
     "lines for people, or one JSON object each"},
    {"output.format",
     "STINT_OUTPUT",
     "table",
     SettingKind::kChoice,
     "table|json|jsonl|ids|none",
     "what goes to standard output"},
    {"output.color",
     "STINT_COLOR",
     "auto",
     SettingKind::kChoice,
     "auto|always|never",
     "colour in tables"},
};

const SettingSpec* FindSpec(std::string_view key) {
    for (const SettingSpec& spec : kSpecs) {
        if (spec.key == key) return &spec;
    }
    return nullptr;
}

Result<std::int64_t> ParseNumber(std::string_view text) {
    std::int64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
        return MakeError(Code::kInvalid, "\"{}\" is not a whole number", text);
    }
    return number;
}

std::vector<std::string> SplitNames(std::string_view text) {
    std::vector<std::string> names;
    while (!text.empty()) {
        std::size_t end = std::min(text.find(','), text.size());
        std::string_view name = text.substr(0, end);
        while (name.starts_with(' ')) name.remove_prefix(1);
        while (name.ends_with(' ')) name.remove_suffix(1);
        if (!name.empty()) names.emplace_back(name);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return names;
}

Result<void> CheckChoice(const SettingSpec& spec, std::string_view value) {
    std::string_view rest = spec.choices;
    while (!rest.empty()) {
        std::size_t end = std::min(rest.find('|'), rest.size());
        if (rest.substr(0, end) == value) return {};
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return MakeError(Code::kInvalid, "\"{}\" is not one of {}", value, spec.choices);
}

Result<void> CheckValue(const SettingSpec& spec, std::string_view value) {
    switch (spec.kind) {
        case SettingKind::kText:
        case SettingKind::kNames:
            return {};
        case SettingKind::kCount:
            if (value == "auto") return {};
            [[fallthrough]];
        case SettingKind::kNumber: {
            auto number = ParseNumber(value);
            if (!number && spec.kind == SettingKind::kCount) {
                return MakeError(
                    Code::kInvalid, "\"{}\" is neither a whole number nor \"auto\"", value
                );
            }
            if (!number) return number.error();
            int least = spec.kind == SettingKind::kCount ? 0 : 1;
            if (*number < least) {
                return MakeError(
                    Code::kInvalid, "\"{}\" is too small; it starts at {}", value, least
                );
            }
            return {};
        }
        case SettingKind::kDuration: {
            auto duration = model::ParseDuration(value);
            if (!duration) return duration.error();
            return {};
        }
        case SettingKind::kLease: {
            auto lease = ParseLease(value);
            if (!lease) return lease.error();
            return {};
        }
        case SettingKind::kChoice:
            return CheckChoice(spec, value);
        case SettingKind::kQueueLimits:
        case SettingKind::kResourceLimits: {
            auto limits = ParseLimits(value, spec.kind);
            if (!limits) return limits.error();
            return {};
        }
    }
    return {};
}

// Which of the files' keys are settings; anything else but [task.*] and [probe.*] is a mistake
// worth naming.
Result<void> TakeFileSettings(
    const ConfigFile& file, std::map<std::string, Setting, std::less<>>& settings
) {
    for (const auto& entry : file.settings) {
        const SettingSpec* spec = FindSpec(entry.key);
        if (spec == nullptr) {
            std::vector<std::string_view> keys;
            for (const SettingSpec& known : kSpecs) keys.push_back(known.key);
            auto near = base::Nearest(entry.key, keys);
            return MakeError(
                Code::kInvalid,
                "{}: unknown setting \"{}\"{}; stint help config lists them",
                entry.where,
                entry.key,
                near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)
            );
        }
        if (auto ok = CheckValue(*spec, entry.value); !ok) {
            return MakeError(
                Code::kInvalid, "{}: {}: {}", entry.where, entry.key, ok.error().message
            );
        }
        // Files are read strongest first: what is there already wins.
        settings.try_emplace(entry.key, Setting{entry.value, file.label});
    }
    return {};
}

}  // namespace

std::span<const SettingSpec> SettingSpecs() {
    return kSpecs;
}

ConfigSources ConfigSources::OfProcess(std::string_view explicit_file) {
    ConfigSources sources;
    sources.environment = [](std::string_view name) -> std::optional<std::string> {
        const char* value = std::getenv(std::string(name).c_str());
        if (value == nullptr || *value == '\0') return std::nullopt;
        return std::string(value);
    };
    auto named = explicit_file.empty() ? sources.environment("STINT_CONFIG")
                                       : std::optional<std::string>(explicit_file);
    if (named) {
        sources.files.push_back({*named, true});
    } else {
        sources.files.push_back({"stint.toml", false});
    }
    if (auto xdg = sources.environment("XDG_CONFIG_HOME")) {
        sources.files.push_back({std::filesystem::path(*xdg) / "stint/config.toml", false});
    } else if (auto home = sources.environment("HOME")) {
        sources.files.push_back({std::filesystem::path(*home) / ".config/stint/config.toml", false}
        );
    }
    sources.files.push_back({"/etc/stint/config.toml", false});
    return sources;
}

Result<Config> Config::Load(const ConfigSources& sources) {
    Config config;
    for (const SettingSpec& spec : kSpecs) {
        auto value = sources.environment ? sources.environment(spec.environment) : std::nullopt;
        if (!value) continue;
        if (auto ok = CheckValue(spec, *value); !ok) {
            return MakeError(Code::kInvalid, "{}: {}", spec.environment, ok.error().message);
        }
        config.settings_.emplace(spec.key, Setting{*value, std::string(spec.environment)});
    }
    for (const auto& [path, required] : sources.files) {
        std::error_code ignored;
        if (!required && !std::filesystem::exists(path, ignored)) continue;
        auto file = ReadConfigFile(path);
        if (!file) return file.error();
        if (auto ok = TakeFileSettings(*file, config.settings_); !ok) return ok.error();
        for (CommandTask& command : file->commands) {
            auto same = [&](const CommandTask& known) { return known.name == command.name; };
            if (std::ranges::none_of(config.commands_, same)) {
                config.commands_.push_back(std::move(command));
            }
        }
        for (ProbeSetting& probe : file->probes) {
            auto same = [&](const ProbeSetting& known) { return known.name == probe.name; };
            if (std::ranges::none_of(config.probes_, same)) {
                config.probes_.push_back(std::move(probe));
            }
        }
        config.files_read_.push_back(file->label);
    }
    for (const SettingSpec& spec : kSpecs) {
        config.settings_.try_emplace(
            std::string(spec.key), Setting{std::string(spec.fallback), "default"}
        );
    }
    return config;
}

Result<void> Config::Set(std::string_view key, std::string value, std::string origin) {
    const SettingSpec* spec = FindSpec(key);
    CHECK(spec != nullptr);
    if (auto ok = CheckValue(*spec, value); !ok) {
        return MakeError(Code::kInvalid, "{}: {}", origin, ok.error().message);
    }
    settings_.insert_or_assign(std::string(key), Setting{std::move(value), std::move(origin)});
    return {};
}

const Setting& Config::Get(std::string_view key) const {
    auto found = settings_.find(key);
    CHECK(found != settings_.end());
    return found->second;
}

std::int64_t Config::Number(std::string_view key) const {
    return ParseNumber(Text(key)).value();
}

Duration Config::Time(std::string_view key) const {
    return model::ParseDuration(Text(key)).value();
}

std::vector<std::string> Config::Names(std::string_view key) const {
    return SplitNames(Text(key));
}

LeaseOptions Config::Lease(std::string_view key) const {
    return ParseLease(Text(key)).value();
}

std::map<std::string, int> Config::Limits(std::string_view key) const {
    return ParseLimits(Text(key), FindSpec(key)->kind).value();
}

Result<std::map<std::string, int>> ParseLimits(std::string_view text, SettingKind kind) {
    std::map<std::string, int> limits;
    for (const std::string& entry : SplitNames(text)) {
        std::size_t split = entry.rfind('=');
        std::string name = entry.substr(0, split);
        auto number = ParseNumber(split == entry.npos ? "" : entry.substr(split + 1));
        if (!number || name.empty()) {
            return MakeError(
                Code::kInvalid, "\"{}\" is not NAME=NUMBER; write it such as slow=2", entry
            );
        }
        if (*number < 0 || *number > model::limits::kSlots) {
            return MakeError(
                Code::kInvalid,
                "\"{}\" has {}; it must be between 0 (none of it) and {}",
                entry,
                *number,
                model::limits::kSlots
            );
        }
        if (!limits.emplace(name, static_cast<int>(*number)).second) {
            return MakeError(Code::kInvalid, "\"{}\" is named twice; keep one of them", name);
        }
    }
    if (kind == SettingKind::kResourceLimits) return model::RoomFrom("name", limits);
    return limits;
}

Result<LeaseOptions> ParseLease(std::string_view text) {
    if (text == "default") return LeaseOptions::Default();
    if (text == "brisk") return LeaseOptions::Brisk();
    if (text == "patient") return LeaseOptions::Patient();
    auto duration = model::ParseDuration(text);
    if (!duration) {
        return MakeError(
            Code::kInvalid,
            "\"{}\" is not a lease; write default, brisk, patient, or a duration such as 30s",
            text
        );
    }
    // Two heartbeats may be lost before the worker gives up, and it gives up well before the end.
    LeaseOptions options{
        .lease = *duration, .heartbeat_every = *duration / 5, .self_stop = *duration * 7 / 10};
    if (auto valid = model::Validate(model::LeasePolicy{
            options.lease, options.heartbeat_every, options.self_stop});
        !valid) {
        return valid.error();
    }
    return options;
}

Result<std::uint64_t> ParseSize(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, int>, 5> kUnits = {{
        {"", 0},
        {"Ki", 10},
        {"Mi", 20},
        {"Gi", 30},
        {"Ti", 40},
    }};
    std::uint64_t number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && !text.empty()) {
        std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
        for (auto& [name, shift] : kUnits) {
            if (unit == name && number <= (UINT64_MAX >> shift)) return number << shift;
        }
    }
    return MakeError(Code::kInvalid, "\"{}\" is not a size; write 1000, 64Ki, 512Mi, 2Gi", text);
}

}  // namespace stint::node
