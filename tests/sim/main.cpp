// stint_sim: run seeds, show what breaks, and show it again.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/planted_bug.h"
#include "sim/campaign.h"

namespace {

using namespace stint;  // NOLINT(google-build-using-namespace): a program of this project

constexpr std::string_view kUsage =
    "usage: stint_sim [--seed N] [--seeds COUNT] [--steps M] [--nodes K] [--focus NAME]\n"
    "                 [--trace] [--ignore TEXT] [--bug NAME] [--list-bugs]\n"
    "  --seed N      the first seed (1)\n"
    "  --seeds COUNT how many seeds from there (1)\n"
    "  --steps M     points under faults before everything is healed\n"
    "  --nodes K     simulated machines\n"
    "  --focus NAME  runs about one thing: calls, leases, answers, links, families, events,\n"
    "                flows, schedules, steps, resources (the seed decides)\n"
    "  --trace       print every point\n"
    "  --ignore TEXT look past violations whose text contains this\n"
    "  --bug NAME    plant this bug first (builds with planted bugs only)\n"
    "  --list-bugs   name them\n";

struct Arguments {
    sim::Campaign campaign;
    std::string bug;
    bool list_bugs = false;
};

bool Number(std::string_view text, std::uint64_t& value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

std::optional<Arguments> Parse(int argc, char** argv) {
    Arguments arguments;
    arguments.campaign.seeds = 1;
    for (int i = 1; i < argc; ++i) {
        std::string_view name = argv[i];
        if (name == "--trace") {
            arguments.campaign.first.trace = true;
            continue;
        }
        if (name == "--list-bugs") {
            arguments.list_bugs = true;
            continue;
        }
        if (++i >= argc) return std::nullopt;
        std::uint64_t number = 0;
        if (name == "--ignore") {
            arguments.campaign.first.ignore.emplace_back(argv[i]);
            continue;
        }
        if (name == "--bug") {
            arguments.bug = argv[i];
            continue;
        }
        if (name == "--focus") {
            auto focus = sim::FocusNamed(argv[i]);
            if (!focus) return std::nullopt;
            arguments.campaign.first.focus = *focus;
            continue;
        }
        if (!Number(argv[i], number)) return std::nullopt;
        if (name == "--seed") {
            arguments.campaign.first.seed = number;
        } else if (name == "--seeds") {
            arguments.campaign.seeds = number;
        } else if (name == "--steps") {
            arguments.campaign.first.steps = number;
        } else if (name == "--nodes" && number >= 1 && number <= 100) {
            arguments.campaign.first.nodes = static_cast<int>(number);
        } else {
            return std::nullopt;
        }
    }
    return arguments;
}

int Plant(const std::string& name) {
#ifdef STINT_PLANTED_BUGS
    base::Bug bug = base::BugNamed(name);
    if (bug == base::Bug::kNone) {
        fmt::print(stderr, "stint_sim: no bug is called '{}'; see --list-bugs\n", name);
        return 2;
    }
    base::PlantBug(bug);
    return 0;
#else
    fmt::print(stderr, "stint_sim: this build has no planted bugs ({})\n", name);
    return 2;
#endif
}

}  // namespace

int main(int argc, char** argv) {
    auto arguments = Parse(argc, argv);
    if (!arguments) {
        fmt::print(stderr, "{}", kUsage);
        return 2;
    }
    if (arguments->list_bugs) {
        for (base::Bug bug : sim::PlantedBugs()) fmt::print("{}\n", base::BugName(bug));
        return 0;
    }
    if (!arguments->bug.empty()) {
        if (int failed = Plant(arguments->bug); failed != 0) return failed;
    }
    sim::CampaignReport report = sim::RunCampaign(arguments->campaign);
    if (report.failed) fmt::print("{}\n", sim::Describe(*report.failed, arguments->bug));
    fmt::print("{}", sim::Summary(report));
    return report.failed ? 1 : 0;
}
