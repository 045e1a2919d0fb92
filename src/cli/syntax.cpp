#include "cli/syntax.h"

#include <CLI/CLI.hpp>

#include "cli/program.h"

namespace stint::cli {

namespace {

template <class T>
void AddFlag(CLI::App& app, const char* flag, T& target, const char* value, const char* help) {
    app.add_option(flag, target, help)->type_name(value);
}

}  // namespace

void Syntax::Word(const char* name, std::string& target, const char* help, Need need) {
    app_.add_option(name, target, help)->required(need == Need::kRequired);
}

void Syntax::Words(
    const char* name, std::vector<std::string>& target, const char* help, Need need
) {
    app_.add_option(name, target, help)->required(need == Need::kRequired);
}

void Syntax::Text(const char* flag, std::string& target, const char* value, const char* help) {
    AddFlag(app_, flag, target, value, help);
}
void Syntax::Text(
    const char* flag, std::optional<std::string>& target, const char* value, const char* help
) {
    AddFlag(app_, flag, target, value, help);
}
void Syntax::Number(const char* flag, int& target, const char* value, const char* help) {
    AddFlag(app_, flag, target, value, help);
}
void Syntax::Number(
    const char* flag, std::optional<int>& target, const char* value, const char* help
) {
    AddFlag(app_, flag, target, value, help);
}
void Syntax::Number(
    const char* flag, std::optional<std::int64_t>& target, const char* value, const char* help
) {
    AddFlag(app_, flag, target, value, help);
}

void Syntax::Repeated(
    const char* flag, std::vector<std::string>& target, const char* value, const char* help
) {
    // One value each time: what follows may be a word of its own.
    app_.add_option(flag, target, help)->type_name(value)->expected(1)->take_all();
}

void Syntax::Switch(const char* flag, bool& target, const char* help) {
    app_.add_flag(flag, target, help);
}

void Syntax::Setting(const char* flag, const char* key, const char* value, const char* help) {
    std::string name(flag);
    name = name.substr(name.find("--"));
    auto store = [&settings = program_.flags().settings,
                  key = std::string(key),
                  name](const std::string& given) {
        settings[key] = {given, name};
    };
    app_.add_option_function<std::string>(flag, store, help)->type_name(value);
}

Syntax& Syntax::Hidden() {
    auto options = app_.get_options();
    options.back()->group("");
    return *this;
}

}  // namespace stint::cli
