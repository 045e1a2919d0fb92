// The words and flags of one command, without the parser's header: that one is large, and only two
// files need it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stint::cli {

class Program;

class Syntax {
public:
    enum class Need : std::uint8_t { kOptional, kRequired };

    Syntax(Program& program, CLI::App& app) : program_(program), app_(app) {}

    // Words by their place.
    void Word(const char* name, std::string& target, const char* help, Need need = Need::kOptional);
    void Words(
        const char* name,
        std::vector<std::string>& target,
        const char* help,
        Need need = Need::kOptional
    );

    // Flags: "--queue", or "-o,--output"; `value` names what follows in the help.
    void Text(const char* flag, std::string& target, const char* value, const char* help);
    void Text(
        const char* flag, std::optional<std::string>& target, const char* value, const char* help
    );
    void Number(const char* flag, int& target, const char* value, const char* help);
    void Number(const char* flag, std::optional<int>& target, const char* value, const char* help);
    void Number(
        const char* flag, std::optional<std::int64_t>& target, const char* value, const char* help
    );
    void Repeated(
        const char* flag, std::vector<std::string>& target, const char* value, const char* help
    );
    void Switch(const char* flag, bool& target, const char* help);
    // Stands for a setting of the configuration, of which the flag is the strongest word.
    void Setting(const char* flag, const char* key, const char* value, const char* help);

    // The last one added is not shown in the help: for our own processes.
    Syntax& Hidden();

private:
    Program& program_;
    CLI::App& app_;
};

}  // namespace stint::cli
