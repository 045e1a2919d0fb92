// How help looks: usage, one sentence, examples, then the options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stint::cli {

// One command line per line; shown first.
void SetExamples(CLI::App& command, const std::string& examples);

class HelpFormatter : public CLI::Formatter {
public:
    HelpFormatter();
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode)
        const override;
    std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace stint::cli
