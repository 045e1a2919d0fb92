#include "node/config_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/nearest.h"
#include "base/result.h"
#include "model/needs.h"
#include "model/time_text.h"
#include "services/probe_checks.h"

namespace stint::node {

namespace {

using base::MakeError;

bool IsLimits(std::string_view key) {
    return key == "worker.at_once_of_queue" || key == "worker.at_once_of_resource";
}

template <class T, class Target>
Result<void> Store(Result<T> value, Target& target) {
    if (!value) return value.error();
    target = std::move(*value);
    return {};
}

// "db:5432", "[::1]:5432"
std::optional<TcpProbe> ParseHostPort(std::string_view text) {
    std::size_t colon = text.rfind(':');
    if (colon == text.npos) return std::nullopt;
    std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    int port = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    bool number = error == std::errc{} && end == digits.data() + digits.size();
    if (host.empty() || !number || port < 1 || port > 65535) return std::nullopt;
    return TcpProbe{std::string(host), port};
}

struct Reader {
    ConfigFile file;

    std::string Where(const toml::node& node) const {
        return fmt::format("{}:{}", file.label, node.source().begin.line);
    }

    template <class... Args>
    Error Wrong(const toml::node& node, fmt::format_string<Args...> format, Args&&... args) const {
        return MakeError(
            Code::kInvalid, "{}: {}", Where(node), fmt::format(format, std::forward<Args>(args)...)
        );
    }

    Result<std::vector<std::string>> Strings(std::string_view key, const toml::node& node) const;
    Result<void> TakeSettings(const toml::table& table, const std::string& prefix);
    Result<void> TakeLimits(const toml::table& table, const std::string& name);
    Result<void> TakeProbes(const toml::table& table);
    Result<void> TakeProbeMember(
        std::string_view key, const toml::node& node, ProbeSetting& setting
    ) const;
    Result<void> TakeTarget(const toml::table& table, ProbeSetting& setting) const;
    Result<void> TakeTasks(const toml::table& table, const std::string& prefix);
    Result<void> TakeTask(const toml::table& table, const std::string& name);
    Result<void> TakeMember(std::string_view key, const toml::node& node, CommandTask& task) const;
    Result<void> TakeNeeds(const toml::node& node, CommandTask& task) const;
    Result<void> TakeRetry(const toml::node& node, CommandTask& task) const;
    Result<void> TakeRetryMember(
        std::string_view key, const toml::node& node, model::RetryPolicy& retry
    ) const;

    Result<std::string> Text(std::string_view key, const toml::node& node) const;
    Result<Duration> Time(std::string_view key, const toml::node& node) const;
    Result<int> Number(std::string_view key, const toml::node& node) const;
};

Result<std::string> Reader::Text(std::string_view key, const toml::node& node) const {
    auto text = node.value_exact<std::string>();
    if (!text) return Wrong(node, "{} must be a string in quotes", key);
    return *text;
}

Result<Duration> Reader::Time(std::string_view key, const toml::node& node) const {
    auto text = node.value_exact<std::string>();
    if (!text) return Wrong(node, "{} must be a duration in quotes, such as \"30s\"", key);
    auto duration = model::ParseDuration(*text);
    if (!duration) return Wrong(node, "{}: {}", key, duration.error().message);
    return *duration;
}

Result<int> Reader::Number(std::string_view key, const toml::node& node) const {
    auto number = node.value_exact<std::int64_t>();
    if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) {
        return Wrong(node, "{} must be a whole number, not negative", key);
    }
    return static_cast<int>(*number);
}

Result<std::vector<std::string>> Reader::Strings(std::string_view key, const toml::node& node)
    const {
    const toml::array* array = node.as_array();
    if (array == nullptr) {
        return Wrong(node, "{} must be an array of strings: [\"program\", \"argument\"]", key);
    }
    std::vector<std::string> strings;
    for (const toml::node& element : *array) {
        auto text = element.value_exact<std::string>();
        if (!text) return Wrong(element, "{} must hold only strings", key);
        strings.push_back(*text);
    }
    return strings;
}

Result<void> Reader::TakeSettings(const toml::table& table, const std::string& prefix) {
    for (auto&& [key, node] : table) {
        std::string name = prefix + std::string(key.str());
        if (prefix.empty() && name == "task") {
            const toml::table* tasks = node.as_table();
            if (tasks == nullptr) return Wrong(node, "task must be tables: [task.NAME]");
            if (auto ok = TakeTasks(*tasks, ""); !ok) return ok;
        } else if (prefix.empty() && name == "probe") {
            const toml::table* probes = node.as_table();
            if (probes == nullptr) return Wrong(node, "probe must be tables: [probe.NAME]");
            if (auto ok = TakeProbes(*probes); !ok) return ok;
        } else if (IsLimits(name) && node.is_table()) {
            if (auto ok = TakeLimits(*node.as_table(), name); !ok) return ok;
        } else if (const toml::table* inner = node.as_table()) {
            if (auto ok = TakeSettings(*inner, name + "."); !ok) return ok;
        } else if (node.is_array()) {
            auto strings = Strings(name, node);
            if (!strings) return strings.error();
            file.settings.push_back({name, fmt::format("{}", fmt::join(*strings, ",")), Where(node)}
            );
        } else if (auto text = node.value<std::string>()) {
            file.settings.push_back({name, *text, Where(node)});
        } else if (auto number = node.value_exact<std::int64_t>()) {
            file.settings.push_back({name, std::to_string(*number), Where(node)});
        } else {
            return Wrong(node, "{} must be a string, a whole number or an array of strings", name);
        }
    }
    return {};
}

// One line per name; the setting itself is all of them.
Result<void> Reader::TakeLimits(const toml::table& table, const std::string& name) {
    std::vector<std::string> limits;
    for (auto&& [key, node] : table) {
        auto number = Number(fmt::format("{}: \"{}\"", name, key.str()), node);
        if (!number) return number.error();
        limits.push_back(fmt::format("{}={}", key.str(), *number));
    }
    file.settings.push_back({name, fmt::format("{}", fmt::join(limits, ",")), Where(table)});
    return {};
}

Result<void> Reader::TakeProbes(const toml::table& table) {
    for (auto&& [key, node] : table) {
        ProbeSetting setting;
        setting.name = std::string(key.str());
        setting.origin = Where(node);
        setting.probe.resource = setting.name;
        const toml::table* members = node.as_table();
        if (members == nullptr) {
            return Wrong(node, "probe.{0} must be a table: [probe.{0}]", setting.name);
        }
        for (auto&& [member, value] : *members) {
            if (auto ok = TakeProbeMember(member.str(), value, setting); !ok) return ok;
        }
        if (auto ok = TakeTarget(*members, setting); !ok) return ok;
        if (auto ok = services::ValidateProbe(setting.probe); !ok) {
            return Wrong(node, "probe.{}: {}", setting.name, ok.error().message);
        }
        file.probes.push_back(std::move(setting));
    }
    return {};
}

// [task.image.resize] and [task."image.resize"] mean the same: a table with a command is a task,
// one without is part of a name.
Result<void> Reader::TakeTasks(const toml::table& table, const std::string& prefix) {
    for (auto&& [key, node] : table) {
        std::string name = prefix + std::string(key.str());
        const toml::table* inner = node.as_table();
        if (inner == nullptr) {
            return Wrong(
                node,
                "task.{} has no command; write command = [\"program\", \"argument\"] in [task.{}]",
                prefix.empty() ? name : prefix.substr(0, prefix.size() - 1),
                prefix.empty() ? name : prefix.substr(0, prefix.size() - 1)
            );
        }
        if (inner->contains("command")) {
            if (auto ok = TakeTask(*inner, name); !ok) return ok;
        } else if (inner->empty()) {
            return Wrong(node, "task.{} has no command", name);
        } else if (auto ok = TakeTasks(*inner, name + "."); !ok) {
            return ok;
        }
    }
    return {};
}

Result<void> Reader::TakeTask(const toml::table& table, const std::string& name) {
    CommandTask task;
    task.name = name;
    task.origin = Where(table);
    // What a program says by its exit code alone does not tell whether another try helps: try.
    task.retry.on = model::RetryPolicy::On::kAll;
    for (auto&& [key, node] : table) {
        if (auto ok = TakeMember(key.str(), node, task); !ok) return ok;
    }
    if (task.command.empty() || task.command[0].empty()) {
        return Wrong(table, "task.{}: command is empty; it names the program first", name);
    }
    if (auto valid = model::Validate(task.retry); !valid) {
        return Wrong(table, "task.{}: {}", name, valid.error().message);
    }
    file.commands.push_back(std::move(task));
    return {};
}

Result<void> Reader::TakeMember(std::string_view key, const toml::node& node, CommandTask& task)
    const {
    if (key == "command") {
        if (node.is_string()) {
            return Wrong(
                node,
                "task.{}: command is a string; no shell is involved, so write its words as an "
                "array: [\"program\", \"argument\"]",
                task.name
            );
        }
        return Store(Strings(key, node), task.command);
    }
    if (key == "queue") return Store(Text(key, node), task.queue);
    if (key == "directory") return Store(Text(key, node), task.directory);
    if (key == "priority") return Store(Number(key, node), task.priority);
    if (key == "timeout") return Store(Time(key, node), task.timeout);
    if (key == "cpu_time") return Store(Time(key, node), task.cpu_time);
    if (key == "max_attempts") return Store(Number(key, node), task.retry.max_attempts);
    if (key == "retry") return TakeRetry(node, task);
    if (key == "labels") return Store(Strings(key, node), task.labels);
    if (key == "needs") return TakeNeeds(node, task);
    if (key == "memory") {
        auto text = Text(key, node);
        if (!text) return text.error();
        auto size = ParseSize(*text);
        if (!size) return Wrong(node, "{}: {}", key, size.error().message);
        task.memory_bytes = *size;
        return {};
    }
    constexpr std::array<std::string_view, 11> kKeys = {
        "command",
        "queue",
        "directory",
        "priority",
        "timeout",
        "cpu_time",
        "max_attempts",
        "retry",
        "needs",
        "labels",
        "memory"};
    auto near = base::Nearest(key, kKeys);
    return Wrong(
        node,
        "task.{}: unknown key \"{}\"; {}",
        task.name,
        key,
        near.empty() ? fmt::format("the keys are {}", fmt::join(kKeys, ", "))
                     : fmt::format("did you mean \"{}\"?", near)
    );
}

Result<void> Reader::TakeProbeMember(
    std::string_view key, const toml::node& node, ProbeSetting& setting
) const {
    if (key == "target") return {};  // its form depends on the kind
    std::string name = fmt::format("probe.{}: {}", setting.name, key);
    if (key == "kind") return Store(Text(name, node), setting.kind);
    if (key == "resource") return Store(Text(name, node), setting.probe.resource);
    if (key == "every") return Store(Time(name, node), setting.probe.every);
    if (key == "timeout") return Store(Time(name, node), setting.probe.timeout);
    if (key == "fail_after") return Store(Number(name, node), setting.probe.fail_after);
    if (key == "pass_after") return Store(Number(name, node), setting.probe.pass_after);
    constexpr std::array<std::string_view, 7> kKeys = {
        "kind", "target", "resource", "every", "timeout", "fail_after", "pass_after"};
    auto near = base::Nearest(key, kKeys);
    return Wrong(
        node,
        "probe.{}: unknown key \"{}\"; {}",
        setting.name,
        key,
        near.empty() ? fmt::format("the keys are {}", fmt::join(kKeys, ", "))
                     : fmt::format("did you mean \"{}\"?", near)
    );
}

Result<void> Reader::TakeTarget(const toml::table& table, ProbeSetting& setting) const {
    std::string name = fmt::format("probe.{}: target", setting.name);
    const toml::node* target = table.get("target");
    if (setting.kind != "tcp" && setting.kind != "http" && setting.kind != "command") {
        return Wrong(
            table,
            "probe.{}: kind is \"{}\"; it must be tcp, http or command",
            setting.name,
            setting.kind
        );
    }
    if (target == nullptr) {
        return Wrong(
            table,
            "{} is missing; it is \"host:port\" for tcp, a URL for http, [\"program\", "
            "\"argument\"] for command",
            name
        );
    }
    if (setting.kind == "command") {
        auto words = Strings(name, *target);
        if (!words) return words.error();
        setting.target = fmt::format("{}", fmt::join(*words, " "));
        setting.probe.check = CommandProbe{std::move(*words)};
        return {};
    }
    if (auto ok = Store(Text(name, *target), setting.target); !ok) return ok;
    if (setting.kind == "http") {
        setting.probe.check = HttpProbe{setting.target};
        return {};
    }
    auto tcp = ParseHostPort(setting.target);
    if (!tcp) {
        return Wrong(
            *target, "{} is \"{}\"; write host:port, such as db:5432", name, setting.target
        );
    }
    setting.probe.check = *tcp;
    return {};
}

Result<void> Reader::TakeNeeds(const toml::node& node, CommandTask& task) const {
    auto texts = Strings("needs", node);
    if (!texts) return texts.error();
    for (const std::string& text : *texts) {
        auto need = model::ParseNeed(text);
        if (!need) return Wrong(node, "task.{}: {}", task.name, need.error().message);
        task.needs.push_back(std::move(*need));
    }
    return {};
}

Result<void> Reader::TakeRetry(const toml::node& node, CommandTask& task) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) {
        return Wrong(node, "retry must be a table: retry = {{ max_attempts = 5, on = \"all\" }}");
    }
    for (auto&& [key, member] : *table) {
        if (auto ok = TakeRetryMember(key.str(), member, task.retry); !ok) return ok;
    }
    return {};
}

Result<void> Reader::TakeRetryMember(
    std::string_view key, const toml::node& node, model::RetryPolicy& retry
) const {
    if (key == "max_attempts") return Store(Number(key, node), retry.max_attempts);
    if (key == "first_delay") return Store(Time(key, node), retry.first_delay);
    if (key == "max_delay") return Store(Time(key, node), retry.max_delay);
    if (key == "factor" || key == "jitter") {
        auto number = node.value<double>();
        if (!number) return Wrong(node, "retry.{} must be a number", key);
        (key == "factor" ? retry.factor : retry.jitter) = *number;
        return {};
    }
    if (key == "on") {
        auto text = Text(key, node);
        if (!text) return text.error();
        if (*text == "all")
            retry.on = model::RetryPolicy::On::kAll;
        else if (*text == "retryable")
            retry.on = model::RetryPolicy::On::kRetryable;
        else if (*text == "none")
            retry.on = model::RetryPolicy::On::kNone;
        else
            return Wrong(node, "retry.on: \"{}\" is not one of all, retryable, none", *text);
        return {};
    }
    if (key == "delays") {
        auto texts = Strings(key, node);
        if (!texts) return texts.error();
        retry.kind = model::RetryPolicy::Kind::kList;
        for (const std::string& text : *texts) {
            auto delay = model::ParseDuration(text);
            if (!delay) return Wrong(node, "retry.delays: {}", delay.error().message);
            retry.delays.push_back(*delay);
        }
        return {};
    }
    return Wrong(
        node,
        "unknown key \"retry.{}\"; the keys are max_attempts, on, first_delay, max_delay, factor, "
        "jitter, delays",
        key
    );
}

}  // namespace

Result<ConfigFile> ReadConfigFile(const std::filesystem::path& path) {
    std::ifstream input(path, std::ios::binary);
    if (!input) {
        return MakeError(
            Code::kInvalid,
            "cannot read the configuration file {}; does it exist, and may you read it?",
            path.string()
        );
    }
    std::ostringstream text;
    text << input.rdbuf();
    Reader reader;
    reader.file.label = path.string();
    try {
        toml::table table = toml::parse(text.str(), path.string());
        if (auto ok = reader.TakeSettings(table, ""); !ok) return ok.error();
    } catch (const toml::parse_error& error) {
        return MakeError(
            Code::kInvalid,
            "{}:{}: not TOML: {}",
            path.string(),
            error.source().begin.line,
            error.description()
        );
    }
    return std::move(reader.file);
}

}  // namespace stint::node
