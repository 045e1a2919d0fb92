// Files in the state directory that belong to one living process: locked while it lives, so that
// others can tell a dead one's file from a living one's, whatever became of its process number.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::engine {

class StateFile {
public:
    // Creates and locks; throws std::system_error.
    static StateFile Create(const std::filesystem::path& path);
    // Opens and locks one whose owner is dead; nullopt when it lives, or the file is gone.
    static std::optional<StateFile> Adopt(const std::filesystem::path& path);

    StateFile(StateFile&& other) noexcept;
    StateFile& operator=(StateFile&& other) noexcept;
    ~StateFile();  // unlocks; the file stays

    int fd() const { return fd_; }
    const std::filesystem::path& path() const { return path_; }
    std::string ReadAll() const;
    void Remove();  // the file goes; the lock stays until destruction

private:
    StateFile(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}
    int fd_ = -1;
    std::filesystem::path path_;
};

// Paths in `dir` named <prefix>*<suffix>, sorted; empty when there is no such directory.
std::vector<std::filesystem::path> StateFiles(
    const std::filesystem::path& dir, std::string_view prefix, std::string_view suffix
);

}  // namespace stint::engine
