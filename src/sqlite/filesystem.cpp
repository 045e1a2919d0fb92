#include "sqlite/filesystem.h"

#include <sys/vfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/result.h"

namespace stint::sqlite {

namespace {

constexpr std::array<std::pair<std::int64_t, std::string_view>, 12> kNetwork = {{
    {0x6969, "NFS"},
    {0x517B, "SMB"},
    {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},
    {0x01021997, "9P"},
    {0x00C36400, "Ceph"},
    {0x5346414F, "AFS"},
    {0x73757245, "Coda"},
    {0x0BD00BD0, "Lustre"},
    {0x47504653, "GPFS"},
    {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"},
}};

}  // namespace

std::optional<std::string_view> NetworkFilesystem(std::int64_t magic) {
    for (const auto& [number, name] : kNetwork) {
        if (number == (magic & 0xFFFFFFFF)) return name;
    }
    return std::nullopt;
}

Result<void> CheckFilesystem(const std::string& path) {
    std::filesystem::path directory = std::filesystem::path(path).parent_path();
    if (directory.empty()) directory = ".";
    struct statfs facts {};
    if (statfs(directory.c_str(), &facts) != 0) {
        return base::MakeError(
            Code::kInvalid,
            "cannot look at the directory {}: {}",
            directory.string(),
            std::strerror(errno)
        );
    }
    if (auto name = NetworkFilesystem(static_cast<std::int64_t>(facts.f_type))) {
        return base::MakeError(
            Code::kInvalid,
            "{} is on a network file system ({}), where SQLite's locks do not protect the data: "
            "use a "
            "local disk, or PostgreSQL",
            path,
            *name
        );
    }
    return {};
}

}  // namespace stint::sqlite
