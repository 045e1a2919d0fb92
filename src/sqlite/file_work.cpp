#include "sqlite/file_work.h"

#include <sqlite3.h>

#include <map>
#include <mutex>

#include "base/check.h"
#include "base/tallies.h"

namespace stint::sqlite {

namespace {

// The system's own methods, with two of them replaced. SQLite has a few tables of methods, one for
// each way to lock; `ours` comes first, so that a file's table leads to the one it was made from.
struct Methods {
    sqlite3_io_methods ours;
    const sqlite3_io_methods* theirs;
};

const sqlite3_io_methods& Theirs(const sqlite3_file* file) {
    return *reinterpret_cast<const Methods*>(file->pMethods)->theirs;
}

int Sync(sqlite3_file* file, int flags) {
    base::Count(base::ProcessTallies().syncs);
    return Theirs(file).xSync(file, flags);
}

int WriteLog(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
    base::Count(base::ProcessTallies().log_bytes, static_cast<std::uint64_t>(size));
    return Theirs(file).xWrite(file, data, size, offset);
}

// Tables live as long as the process: files of any thread may use them.
const sqlite3_io_methods* Counting(const sqlite3_io_methods* theirs, bool log) {
    static std::mutex mutex;
    static std::map<std::pair<const sqlite3_io_methods*, bool>, Methods> made;
    std::lock_guard guard(mutex);
    auto [found, added] = made.try_emplace({theirs, log});
    if (added) {
        found->second = {*theirs, theirs};
        found->second.ours.xSync = Sync;
        if (log) found->second.ours.xWrite = WriteLog;
    }
    return &found->second.ours;
}

sqlite3_vfs* system_files = nullptr;

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
    int code = system_files->xOpen(system_files, name, file, flags, out_flags);
    if (code == SQLITE_OK && file->pMethods != nullptr) {
        file->pMethods = Counting(file->pMethods, (flags & SQLITE_OPEN_WAL) != 0);
    }
    return code;
}

}  // namespace

void CountFileWork() {
    static sqlite3_vfs counting;
    if (system_files != nullptr) return;
    system_files = sqlite3_vfs_find(nullptr);
    CHECK(system_files != nullptr);
    counting = *system_files;
    counting.zName = "stint-counting";
    counting.pNext = nullptr;
    counting.xOpen = Open;
    CHECK(sqlite3_vfs_register(&counting, 1) == SQLITE_OK);
}

}  // namespace stint::sqlite
