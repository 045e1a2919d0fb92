#include "store/sqlite/writer.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/check.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "sqlite/error.h"
#include "sqlite/transaction.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

namespace {

constexpr std::size_t kQueued = 10'000;
constexpr std::size_t kGroup = 512;

// A write-ahead log that is there before we open: the last owner did not close the file.
bool WasUnclean(const std::string& path) {
    std::error_code error;
    auto size = std::filesystem::file_size(path + "-wal", error);
    return !error && size > 0;
}

std::exception_ptr AsUnavailable(const sqlite::Error& error) {
    return std::make_exception_ptr(Unavailable(error.what()));
}

}  // namespace

Writer::Writer(const Options& options)
    : unclean_(WasUnclean(options.path)),
      db_(options.path, {.role = sqlite::OpenOptions::Role::kWriter}),
      ops_(db_, *options.clock, *options.random) {
    if (options.migrate) {
        Migrate(db_);
    } else {
        CheckSchema(db_);
    }
    if (!options.sync) db_.Exec("PRAGMA synchronous=OFF");
    thread_ = base::StartThread([this] { Loop(); });
}

Writer::~Writer() {
    {
        std::lock_guard guard(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void Writer::Run(const std::function<void(Ops&)>& work, Work whose) {
    CHECK_WHY(
        std::this_thread::get_id() != thread_.get_id(),
        "inside Write(), use the transaction it gives, not the store"
    );
    auto member = std::make_shared<Member>();
    member->work = &work;
    member->whose = whose;
    std::unique_lock lock(mutex_);
    if (stop_) throw Unavailable("the store is closing");
    if (queue_.size() >= kQueued) {
        throw Unavailable(
            fmt::format("{} changes are waiting for the disk already: try again", kQueued)
        );
    }
    queue_.push_back(member);
    wake_.notify_one();
    member->answered.wait(lock, [&member] { return member->done; });
    lock.unlock();
    if (member->error) std::rethrow_exception(member->error);
}

void Writer::Break(const std::string& why) {
    std::lock_guard guard(mutex_);
    if (why_broken_.empty()) why_broken_ = why;
    broken_ = true;
}

void Writer::RequireSound() {
    if (!broken_) return;
    std::lock_guard guard(mutex_);
    throw Unavailable(why_broken_);
}

Writer::Totals Writer::totals() {
    std::lock_guard guard(mutex_);
    return totals_;
}

std::size_t Writer::queued() {
    std::lock_guard guard(mutex_);
    return queue_.size();
}

void Writer::Loop() {
    while (true) {
        Group group;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
            if (queue_.empty()) return;
            std::size_t count = std::min(queue_.size(), kGroup);
            std::move(
                queue_.begin(),
                queue_.begin() + static_cast<std::ptrdiff_t>(count),
                std::back_inserter(group)
            );
            queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
        }
        base::TestPoint("sqlite.group");
        RunGroup(group);
    }
}

void Writer::Answer(const Group& group) {
    std::lock_guard guard(mutex_);
    ++totals_.groups;
    for (const auto& member : group) {
        member->done = true;
        member->answered.notify_one();
        ++totals_.members;
    }
}

void Writer::FailAll(const Group& group, std::size_t count, std::exception_ptr error) {
    for (std::size_t i = 0; i < count; ++i) {
        if (!group[i]->error) group[i]->error = error;
    }
    ops_.Forget();
}

// Returns false when the whole transaction is gone with it.
bool Writer::RunMember(Member& member, bool alone) {
    try {
        std::optional<sqlite::Savepoint> savepoint;
        if (!alone) savepoint.emplace(db_);
        ops_.BeginMember();
        (*member.work)(ops_);
        if (!db_.in_transaction()) throw Unavailable("the transaction was undone: try again");
        ops_.EndMember();
        if (savepoint) savepoint->Release();
        return true;
    } catch (const sqlite::Error& error) {
        member.error = error.is_data() ? std::make_exception_ptr(Unstorable(error.what()))
                                       : AsUnavailable(error);
    } catch (...) {
        member.error = std::current_exception();
    }
    ops_.Forget();
    return db_.in_transaction() && !alone;
}

void Writer::RunGroup(const Group& group) {
    Group left = group;
    while (!left.empty()) left = RunOnce(left);
    Answer(group);
}

// Commits the group; returns those that must be run again because one member undid them all.
Writer::Group Writer::RunOnce(const Group& group) {
    std::size_t ran = 0;
    try {
        RequireSound();
        sqlite::Transaction transaction(db_);
        bool whole = true;
        while (whole && ran < group.size()) whole = RunMember(*group[ran++], group.size() == 1);
        if (!whole) return WithoutTheCulprit(group, ran);
        base::TestPoint("sqlite.before_commit");
        transaction.Commit();
        base::TestPoint("sqlite.committed");
    } catch (const Unavailable&) {
        FailAll(group, group.size(), std::current_exception());
    } catch (const sqlite::Error& error) {
        if (error.is_io() && ran > 0) {
            // What reached the disk is not known, and a disk that failed once cannot be believed
            // when it says "synced" next time.
            Break(fmt::format("the disk failed ({}): restart when it is well", error.what()));
            FailAll(group, ran, std::make_exception_ptr(CommitUnknown(error.what())));
        }
        FailAll(group, group.size(), AsUnavailable(error));
    }
    return {};
}

// The last member that ran has undone everything. A host's statement is its own affair; a full disk
// and the like would stop the others as well.
Writer::Group Writer::WithoutTheCulprit(const Group& group, std::size_t ran) {
    const bool hosts = group[ran - 1]->whose == Work::kHosts;
    Group again;
    for (std::size_t i = 0; i < group.size(); ++i) {
        Member& member = *group[i];
        if (member.error) continue;
        if (hosts && (i >= ran || member.whose == Work::kOurs)) {
            again.push_back(group[i]);
        } else {
            member.error = std::make_exception_ptr(Unavailable(
                "another change of the same commit undid the transaction; nothing of this one was "
                "stored: try again"
            ));
        }
    }
    return again;
}

}  // namespace stint::store::lite
