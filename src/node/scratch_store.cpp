#include "node/scratch_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/random.h"
#include "node/client.h"
#include "node/open_store.h"
#include "store/postgres/drop.h"
#include "store/postgres/scratch.h"
#include "store/store.h"

namespace stint::node {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileMark = ".bench-";
constexpr std::string_view kHeld = ".held";

std::string ScratchUrl(const std::string& url) {
    auto parsed = ParseStoreUrl(url);
    if (!parsed) throw StoreError(parsed.error().code, parsed.error().message);
    auto random = static_cast<std::uint32_t>(base::SystemRandom().Next());
    switch (parsed->kind) {
        case StoreUrl::Kind::kMemory:
            throw StoreError(
                Code::kInvalid, "memory: cannot be shared by processes; name a file or a database"
            );
        case StoreUrl::Kind::kSqlite:
            return fmt::format("{}{}{}-{:08x}", url, kFileMark, getpid(), random);
        case StoreUrl::Kind::kPostgres:
            return fmt::format(
                "{}{}stint_schema=stint_bench_{}_{:08x}",
                parsed->connection,
                parsed->connection.find('?') == std::string::npos ? '?' : '&',
                getpid(),
                random
            );
    }
    throw std::logic_error("a store URL of no kind");
}

// "t.db.bench-12-0a1b2c3d" of "t.db.bench-12-0a1b2c3d-wal"; empty when it is no such name.
std::string StemOf(const std::string& name, const std::string& database) {
    std::string prefix = database + std::string(kFileMark);
    if (!name.starts_with(prefix)) return {};
    std::size_t dash = name.find_first_not_of("0123456789", prefix.size());
    if (dash == std::string::npos || dash == prefix.size() || name[dash] != '-') return {};
    std::size_t end = name.find_first_not_of("0123456789abcdef", dash + 1);
    if (end == std::string::npos) end = name.size();
    return end - dash - 1 == 8 ? name.substr(0, end) : std::string();
}

fs::path DirectoryOf(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// The file, its log, its lock and socket, and what workers keep beside it.
bool RemoveFiles(const fs::path& path) {
    bool all = true;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(DirectoryOf(path), error)) {
        if (!entry.path().filename().string().starts_with(path.filename().string())) continue;
        std::error_code failed;
        fs::remove_all(entry.path(), failed);
        all = all && !failed;
    }
    return all && !error;
}

// A lock on a file beside a SQLite file; the system lets it go when the process ends.
class FileMark {
public:
    static std::optional<FileMark> Take(const std::string& path) {
        int fd = open((path + std::string(kHeld)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            throw StoreError(
                Code::kUnavailable,
                fmt::format(
                    "cannot make a file for the benchmark, {}: {}", path, std::strerror(errno)
                )
            );
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return FileMark(fd);
        close(fd);
        return std::nullopt;
    }
    FileMark(FileMark&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    FileMark& operator=(FileMark&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~FileMark() {
        if (fd_ >= 0) close(fd_);
    }

private:
    explicit FileMark(int fd) : fd_(fd) {}
    int fd_;
};

ScratchStore::Left SweepFiles(const fs::path& ours) {
    std::string name = ours.filename().string();
    std::string database = name.substr(0, name.rfind(kFileMark));
    std::error_code error;
    std::vector<std::string> stems;
    for (const auto& entry : fs::directory_iterator(DirectoryOf(ours), error)) {
        std::string stem = StemOf(entry.path().filename().string(), database);
        if (stem.empty() || stem == name) continue;
        if (std::ranges::find(stems, stem) == stems.end()) stems.push_back(stem);
    }
    ScratchStore::Left left;
    for (const std::string& stem : stems) {
        fs::path path = DirectoryOf(ours) / stem;
        try {
            auto mark = FileMark::Take(path.string());
            if (!mark) continue;
            (RemoveFiles(path) ? left.removed : left.stay).push_back(path.string());
        } catch (const StoreError&) {
            left.stay.push_back(path.string());  // somebody else's
        }
    }
    return left;
}

}  // namespace

struct ScratchStore::Mark {
    std::optional<FileMark> file;
    std::optional<store::PostgresScratch> schema;
};

ScratchStore::ScratchStore(const std::string& url)
    : url_(ScratchUrl(url)), mark_(std::make_unique<Mark>()) {
    StoreUrl parsed = ParseStoreUrl(url_).value();
    if (parsed.kind == StoreUrl::Kind::kPostgres) {
        try {
            mark_->schema.emplace(parsed.connection, parsed.schema);
        } catch (const store::NotAllowed& error) {
            throw StoreError(Code::kConflict, error.what());
        } catch (const store::Unavailable& error) {
            std::string cure = CureFor(error.what());
            std::string more = cure.empty() ? "" : "; " + cure;
            throw StoreError(Code::kUnavailable, error.what() + more);
        }
        return;
    }
    fs::path directory = DirectoryOf(parsed.path);
    std::error_code ignored;
    bool there = fs::exists(directory, ignored);
    PrepareStoreDirectory(url);
    if (!there) made_directory_ = directory.string();
    mark_->file = FileMark::Take(parsed.path);
}

ScratchStore::~ScratchStore() {
    try {
        Destroy();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): nobody is left to be told
    }
}

std::string ScratchStore::name() const {
    StoreUrl parsed = ParseStoreUrl(url_).value();
    return parsed.kind == StoreUrl::Kind::kPostgres ? parsed.schema : parsed.path;
}

void ScratchStore::Destroy() {
    if (std::exchange(destroyed_, true)) return;
    StoreUrl parsed = ParseStoreUrl(url_).value();
    if (parsed.kind == StoreUrl::Kind::kPostgres) {
        try {
            store::DropPostgres(parsed.connection, parsed.schema);
        } catch (const std::exception& error) {
            throw StoreError(
                Code::kUnavailable,
                fmt::format(
                    "schema {} is left in the database: {}; the next benchmark there removes it, "
                    "or: DROP SCHEMA {} CASCADE",
                    parsed.schema,
                    error.what(),
                    parsed.schema
                )
            );
        }
    } else if (!RemoveFiles(parsed.path)) {
        throw StoreError(
            Code::kUnavailable,
            fmt::format("not all of {}* could be removed; it is the benchmark's", parsed.path)
        );
    }
    if (made_directory_.empty()) return;
    std::error_code ignored;
    fs::remove(fs::path(made_directory_) / ".gitignore", ignored);
    fs::remove(made_directory_, ignored);  // stays when somebody has put anything there meanwhile
}

ScratchStore::Left ScratchStore::Sweep() {
    StoreUrl parsed = ParseStoreUrl(url_).value();
    if (parsed.kind == StoreUrl::Kind::kSqlite) return SweepFiles(parsed.path);
    try {
        auto left = mark_->schema->Sweep();
        return {std::move(left.removed), std::move(left.stay)};
    } catch (const store::Unavailable& error) {
        throw StoreError(Code::kUnavailable, error.what());
    }
}

}  // namespace stint::node
