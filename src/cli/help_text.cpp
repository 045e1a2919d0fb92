#include "cli/help_text.h"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace stint::cli {

namespace {

// CLI11 has no place for examples in a command; the tree is built once, before anything is parsed.
std::map<const CLI::App*, std::string>& Examples() {
    static std::map<const CLI::App*, std::string> examples;
    return examples;
}

std::string PathOf(const CLI::App* app) {
    std::string path = app->get_name();
    for (app = app->get_parent(); app != nullptr; app = app->get_parent()) {
        path = app->get_name() + " " + path;
    }
    return path;
}

std::string Entry(std::string_view left, std::string_view right, std::size_t width) {
    if (left.size() + 2 > width) return fmt::format("  {}\n{:{}}{}\n", left, "", width + 2, right);
    return fmt::format("  {:{}}{}\n", left, width, right);
}

bool Visible(const CLI::Option* option) {
    return !option->get_group().empty();
}

std::string Usage(const CLI::App* app) {
    std::string usage = "Usage: " + PathOf(app);
    for (const CLI::Option* option : app->get_options()) {
        if (!option->get_positional() || !Visible(option)) continue;
        std::string name = option->get_name(true);
        if (option->get_expected_max() > 1) name += "...";
        usage += option->get_required() ? " " + name : " [" + name + "]";
    }
    if (!app->get_subcommands([](const CLI::App*) { return true; }).empty()) usage += " COMMAND";
    return usage + " [OPTIONS]\n";
}

}  // namespace

void SetExamples(CLI::App& command, const std::string& examples) {
    Examples()[&command] = examples;
}

HelpFormatter::HelpFormatter() {
    column_width(28);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
    if (option->get_type_size() == 0) return "";
    return " " + option->get_type_name();
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const {
    std::string help = Usage(app) + "\n" + app->get_description() + "\n";
    if (const std::string& examples = Examples()[app]; !examples.empty()) {
        help += "\nExamples:\n";
        std::istringstream lines(examples);
        for (std::string line; std::getline(lines, line);) help += "  " + line + "\n";
    }
    std::string arguments, options;
    for (const CLI::Option* option : app->get_options()) {
        if (!Visible(option)) continue;
        if (option->get_positional()) {
            arguments += Entry(option->get_name(true), option->get_description(), column_width_);
        } else {
            std::string names = option->get_name(false, true);
            if (std::size_t comma = names.find(','); comma != std::string::npos) {
                names.insert(comma + 1, " ");
            }
            options +=
                Entry(names + make_option_opts(option), option->get_description(), column_width_);
        }
    }
    std::string commands;
    for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_group().empty()) continue;
        commands += Entry(command->get_name(), command->get_description(), 12);
    }
    if (!commands.empty()) help += "\nCommands:\n" + commands;
    if (!arguments.empty()) help += "\nArguments:\n" + arguments;
    if (!options.empty()) help += "\nOptions:\n" + options;
    // The parser hands the root's footer down; here it is only the root's.
    bool root = app->get_parent() == nullptr;
    help += root ? "\n" + app->get_footer() + "\n"
                 : "\nstint --help lists the options that every command takes.\n";
    return help;
}

}  // namespace stint::cli
