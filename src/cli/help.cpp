// stint help [TOPIC | COMMAND…]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/program.h"
#include "stint_cli_pages_embedded.h"

namespace stint::cli {

namespace {

struct HelpOptions {
    std::vector<std::string> words;
};

std::string EnvironmentPage() {
    std::string page = "Environment variables, with the default in parentheses\n\n";
    auto entry = [&](std::string_view name, std::string_view help) {
        // A long name has a line of its own.
        std::string gap = name.size() < 26 ? "" : fmt::format("\n{:28}", "");
        page += fmt::format("  {:26}{}{}\n", name, gap, help);
    };
    for (const node::SettingSpec& spec : node::SettingSpecs()) {
        std::string fallback = spec.fallback.empty() ? "" : fmt::format(" ({})", spec.fallback);
        entry(spec.environment, fmt::format("{}{}", spec.help, fallback));
    }
    entry("STINT_CONFIG", "configuration file instead of ./stint.toml");
    entry("NO_COLOR", "no colour, whatever the terminal can");
    entry("FORCE_COLOR", "colour even when standard output is no terminal");
    page += "\nA flag wins over the environment, the environment over files: stint help config.\n";
    return page;
}

std::optional<std::string> Topic(std::string_view name) {
    if (name == "exit-codes") return std::string(pages::k_exit_codes);
    if (name == "filters") return std::string(pages::k_filters);
    if (name == "config") return std::string(pages::k_config);
    if (name == "match") return std::string(pages::k_match);
    if (name == "workflow-file") return std::string(pages::k_workflow_file);
    if (name == "environment") return EnvironmentPage();
    return std::nullopt;
}

constexpr std::array<std::string_view, 6> kTopics = {
    "exit-codes", "filters", "config", "environment", "match", "workflow-file"};

// What may have been meant: the words that are right, and the nearest to the first wrong one.
std::string Nearest(const Program& program, const std::vector<std::string>& words) {
    std::vector<std::string> right;
    for (const std::string& word : words) {
        auto names = program.NamesBelow(right);
        if (!names) break;  // behind a topic nothing can follow
        if (right.empty()) names->insert(names->end(), kTopics.begin(), kTopics.end());
        if (std::ranges::find(*names, word) == names->end()) {
            if (auto near = base::Nearest(word, *names); !near.empty()) right.emplace_back(near);
            break;
        }
        right.push_back(word);
    }
    return right.empty() ? "" : fmt::format("; nearest: {}", fmt::join(right, " "));
}

int PrintHelp(const Program& program, const std::vector<std::string>& words) {
    if (words.size() == 1) {
        if (auto page = Topic(words[0])) {
            fmt::print("{}", *page);
            return kOk;
        }
    }
    std::string help = program.HelpOf(words);
    if (!help.empty()) {
        fmt::print("{}", help);
        return kOk;
    }
    throw CommandError(
        kUsage,
        fmt::format(
            "there is no help about {}{}; the topics are {}, and every command",
            base::Quoted(fmt::format("{}", fmt::join(words, " "))),
            Nearest(program, words),
            fmt::join(kTopics, ", ")
        )
    );
}

}  // namespace

void AddHelp(Program& program) {
    program.Command<HelpOptions>(
        program.root(),
        "help",
        "Explains a command or a topic, such as exit-codes, filters or match.",
        "stint help exit-codes\nstint help task list",
        [](Syntax& syntax, HelpOptions& options) {
            syntax.Words("TOPIC", options.words, "a topic or the words of a command");
        },
        [&program](Invocation&, const HelpOptions& options) {
            return PrintHelp(program, options.words);
        }
    );
}

}  // namespace stint::cli
