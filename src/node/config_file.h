// One TOML file of configuration, read and checked.
#pragma once

#include <stint/result.h>

#include <filesystem>
#include <string>
#include <vector>

#include "node/config.h"

namespace stint::node {

struct ConfigFile {
    struct Entry {
        std::string key;    // dotted
        std::string value;  // as text; arrays of names joined with commas
        std::string where;  // "stint.toml:7"
    };
    std::string label;  // its path, as given
    std::vector<Entry> settings;
    std::vector<CommandTask> commands;
    std::vector<ProbeSetting> probes;
};

// kInvalid, with file and line, for what is not TOML or not a setting's form.
Result<ConfigFile> ReadConfigFile(const std::filesystem::path& path);

}  // namespace stint::node
