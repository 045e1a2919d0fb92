// A store for a benchmark, made beside the one that is named.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "node/client.h"
#include "node/open_store.h"
#include "store/postgres/drop.h"
#include "store/store.h"

namespace stint::node {

namespace {

std::string ScratchUrl(const std::string& url) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed) throw StoreError(parsed.error().code, parsed.error().message);
    switch (parsed->kind) {
        case StoreUrl::Kind::kMemory:
            throw StoreError(
                Code::kInvalid, "memory: cannot be shared by processes; name a file or a database"
            );
        case StoreUrl::Kind::kSqlite:
            return fmt::format("{}.bench-{}", url, getpid());
        case StoreUrl::Kind::kPostgres:
            return fmt::format(
                "{}{}stint_schema=stint_bench_{}",
                parsed->connection,
                parsed->connection.find('?') == std::string::npos ? '?' : '&',
                getpid()
            );
    }
    throw std::logic_error("a store URL of no kind");
}

}  // namespace

ScratchStore::ScratchStore(const std::string& url) : url_(ScratchUrl(url)) {
    PrepareStoreDirectory(url);
}

ScratchStore::~ScratchStore() {
    try {
        Destroy();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody is left to be told
    }
}

void ScratchStore::Destroy() {
    if (destroyed_) return;
    destroyed_ = true;
    StoreUrl parsed = ParseStoreUrl(url_).value();
    if (parsed.kind == StoreUrl::Kind::kPostgres) {
        try {
            store::DropPostgres(parsed.connection, parsed.schema);
        } catch (const store::Unavailable& error) {
            throw StoreError(Code::kUnavailable, error.what());
        }
        return;
    }
    // The file, its log, its lock and socket, and what workers keep beside it.
    std::filesystem::path path(parsed.path);
    std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        if (!entry.path().filename().string().starts_with(path.filename().string())) continue;
        std::error_code ignored;
        std::filesystem::remove_all(entry.path(), ignored);
    }
}

}  // namespace stint::node
