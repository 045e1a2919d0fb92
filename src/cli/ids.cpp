#include "cli/ids.h"

#include <fmt/format.h>

#include <unordered_set>

#include "base/text.h"
#include "cli/exit_code.h"

namespace stint::cli {

std::vector<TaskId> ReadIds(const std::vector<std::string>& words, std::istream& input) {
    std::vector<TaskId> ids;
    std::unordered_set<TaskId> seen;
    auto take = [&](const std::string& word) {
        auto id = TaskId::Parse(word);
        if (!id) {
            throw CommandError(
                kUsage,
                fmt::format(
                    "{} is not a task id; ids are whole numbers: stint task list -o ids",
                    base::Quoted(word)
                )
            );
        }
        if (seen.insert(*id).second) ids.push_back(*id);
    };
    for (const std::string& word : words) {
        if (word != "-") {
            take(word);
            continue;
        }
        for (std::string line; input >> line;) take(line);
    }
    return ids;
}

}  // namespace stint::cli
