// stint config show [--origin]
#include "cli/program.h"
#include "model/time_text.h"
#include "node/open_store.h"

namespace stint::cli {

namespace {

struct ConfigOptions {
    bool origin = false;
};

base::OrderedJson AddProbes(const node::Config& config, bool origin, Listing& listing) {
    base::OrderedJson probes = base::OrderedJson::array();
    for (const node::ProbeSetting& setting : config.probes()) {
        const Probe& probe = setting.probe;
        std::string every = model::FormatDuration(probe.every);
        std::vector<Cell> row = {
            {fmt::format("probe.{}", setting.name)},
            {fmt::format(
                "{} {}, every {}, decides {}", setting.kind, setting.target, every, probe.resource
            )}};
        if (origin) row.push_back({setting.origin, Tint::kFaint});
        listing.rows.push_back(std::move(row));
        probes.push_back(
            {{"name", setting.name},
             {"resource", probe.resource},
             {"kind", setting.kind},
             {"target", setting.target},
             {"every", every},
             {"timeout", model::FormatDuration(probe.timeout)},
             {"fail_after", probe.fail_after},
             {"pass_after", probe.pass_after},
             {"origin", setting.origin}}
        );
    }
    return probes;
}

int ShowConfig(Invocation& invocation, const ConfigOptions& options) {
    Listing listing;
    listing.name = "settings";
    listing.headers = {"SETTING", "VALUE"};
    if (options.origin) listing.headers.emplace_back("ORIGIN");
    for (const node::SettingSpec& spec : node::SettingSpecs()) {
        node::Setting setting = invocation.config().Get(spec.key);
        if (spec.key == "store") setting.value = node::WithoutSecrets(setting.value);
        std::vector<Cell> row = {{std::string(spec.key)}, {setting.value}};
        if (options.origin) row.push_back({setting.origin, Tint::kFaint});
        listing.rows.push_back(std::move(row));
        listing.ids.emplace_back(spec.key);
        listing.objects.push_back(
            {{"key", spec.key}, {"value", setting.value}, {"origin", setting.origin}}
        );
    }
    base::OrderedJson commands = base::OrderedJson::array();
    for (const node::CommandTask& task : invocation.config().commands()) {
        std::vector<Cell> row = {
            {fmt::format("task.{}", task.name)}, {base::JsonText(base::OrderedJson(task.command))}};
        if (options.origin) row.push_back({task.origin, Tint::kFaint});
        listing.rows.push_back(std::move(row));
        commands.push_back({{"name", task.name}, {"command", task.command}, {"origin", task.origin}}
        );
    }
    listing.extra["commands"] = commands;
    listing.extra["probes"] = AddProbes(invocation.config(), options.origin, listing);
    listing.extra["files"] = invocation.config().files_read();
    invocation.out().Print(listing);
    return kOk;
}

}  // namespace

void AddConfig(Program& program) {
    CLI::App& group = program.Group(program.root(), "config", "The configuration in force.");
    program.Command<ConfigOptions>(
        group,
        "show",
        "Prints every setting; with --origin also where it came from.",
        "stint config show --origin",
        [](Syntax& syntax, ConfigOptions& options) {
            syntax.Switch("--origin", options.origin, "show where each value came from");
        },
        ShowConfig
    );
}

}  // namespace stint::cli
