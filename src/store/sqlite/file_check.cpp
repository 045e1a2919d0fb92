#include "store/sqlite/file_check.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/test_point.h"
#include "base/thread.h"
#include "sqlite/error.h"

namespace stint::store::lite {

FileCheck::FileCheck(
    const std::string& path, std::function<void(const std::string&)> damaged, base::Logger log
)
    : db_(path, {.role = sqlite::OpenOptions::Role::kReader, .cache_kib = 1024}),
      damaged_(std::move(damaged)),
      log_(std::move(log)) {
    thread_ = base::StartThread([this] {
        Run();
        done_.release();
    });
}

FileCheck::~FileCheck() {
    stop_ = true;
    // A statement that begins after it would not hear of an interruption.
    do {
        db_.Interrupt();
    } while (!done_.try_acquire_for(std::chrono::milliseconds{10}));
}

void FileCheck::Run() {
    base::TestPoint("sqlite.file_check");
    try {
        std::string verdict = Verdict();
        if (verdict != "ok") damaged_(verdict);
    } catch (const sqlite::Error& error) {
        if (error.is_corrupt()) return damaged_(error.what());
        if (!stop_) log_.Warn("the file could not be checked", {{"why", error.what()}});
    }
}

// A statement per table: one over all would keep the log from being written back until its end.
std::string FileCheck::Verdict() {
    std::vector<std::string> tables;
    {
        sqlite::Statement list =
            db_.Prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0");
        for (sqlite::Rows rows = list.Query(); rows.Next();) tables.push_back(rows.String(0));
    }
    sqlite::Statement check = db_.Prepare("SELECT quick_check FROM pragma_quick_check(?)");
    for (const std::string& table : tables) {
        if (stop_) break;
        sqlite::Rows rows = check.Query(table);
        if (rows.Next() && rows.Text(0) != "ok") return table + ": " + rows.String(0);
    }
    return "ok";
}

}  // namespace stint::store::lite
