// Where a database file may lie.
#pragma once

#include <stint/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint::sqlite {

// The name of a network file system by its magic number, as statfs(2) tells it.
std::optional<std::string_view> NetworkFilesystem(std::int64_t magic);

// Refuses files on network file systems: their locks cannot be trusted, and WAL needs shared
// memory. The file need not exist yet; its directory must.
Result<void> CheckFilesystem(const std::string& path);

}  // namespace stint::sqlite
