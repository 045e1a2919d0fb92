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
constexpr int kGroupsWithChecks = 100;
constexpr base::Instant::duration kPatience = std::chrono::microseconds(500);
constexpr int kMisses = 6;

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
    db_.EnableChecks(false);
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
    const bool enough = queue_.size() >= awaited_;
    lock.unlock();
    if (enough) wake_.notify_one();
    std::unique_lock answer(member->mutex);
    member->answered.wait(answer, [&member] { return member->done; });
    answer.unlock();
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
            AwaitOthers(lock);
            std::size_t count = std::min(queue_.size(), kGroup);
            std::move(
                queue_.begin(),
                queue_.begin() + static_cast<std::ptrdiff_t>(count),
                std::back_inserter(group)
            );
            queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
        }
        base::TestPoint("sqlite.group");
        const base::Instant begun = base::SystemClock().Now();
        RunGroup(group);
        last_took_ = base::SystemClock().Now() - begun;
    }
}

// Callers that were answered a moment ago come back, most of them, while others have queued behind
// them: without a moment of patience there would be two groups of half of them for ever, each with
// a commit of its own. Patience is at most half of a commit, and none where it has not paid.
void Writer::AwaitOthers(std::unique_lock<std::mutex>& lock) {
    if (queue_.size() >= expected_ || (skip_ > 0 && skip_-- > 0)) return;
    awaited_ = std::min(expected_, kGroup);
    wake_.wait_for(lock, std::min(last_took_ / 2, kPatience), [this] {
        return stop_ || queue_.size() >= awaited_;
    });
    const bool came = queue_.size() * 4 >= awaited_ * 3;
    awaited_ = 1;
    misses_ = came ? 0 : std::min(misses_ + 1, kMisses);
    skip_ = (1 << misses_) - 1;
}

void Writer::Answer(const Group& group) {
    {
        std::lock_guard guard(mutex_);
        ++totals_.groups;
        totals_.members += static_cast<std::int64_t>(group.size());
        expected_ = group.size() + queue_.size();
    }
    for (const auto& member : group) {
        {
            std::lock_guard guard(member->mutex);
            member->done = true;
        }
        member->answered.notify_one();
    }
}

void Writer::FailAll(const Group& group, std::size_t count, const std::exception_ptr& error) {
    for (std::size_t i = 0; i < count; ++i) {
        if (!group[i]->error) group[i]->error = error;
    }
    ops_.Forget();
}

// Returns false when the whole transaction is gone with it, or has to go.
bool Writer::RunMember(Member& member, bool alone) {
    bool half_made = false;
    try {
        std::optional<sqlite::Savepoint> savepoint;
        if (!alone && member.whose != Work::kPlain) savepoint.emplace(db_);
        ops_.BeginMember();
        (*member.work)(ops_);
        if (!db_.in_transaction()) throw Unavailable("the transaction was undone: try again");
        ops_.EndMember();
        if (savepoint) savepoint->Release();
        return true;
    } catch (const sqlite::Error& error) {
        member.error = error.is_data() ? std::make_exception_ptr(Unstorable(error.what()))
                                       : AsUnavailable(error);
        // It had no savepoint, and may have been about to make a lane or a period.
        half_made = member.whose == Work::kPlain;
    } catch (...) {
        member.error = std::current_exception();
    }
    ops_.Forget();
    return db_.in_transaction() && !alone && !half_made;
}

void Writer::RunGroup(const Group& group) {
    Group left = group;
    while (!left.empty()) left = RunOnce(left);
    Answer(group);
}

// Our own statements need neither triggers nor foreign keys: those of the audit log are there
// against others, and cost more than its rows; with foreign keys a DELETE looks at each row twice.
// The host's code has both. To switch costs a little, so that they stay on for a while: where the
// host writes once, it writes again.
void Writer::BeforeMember(const Member& member) {
    if (member.whose == Work::kHosts) {
        if (!checks_) db_.EnableChecks(true);
        checks_ = true;
        groups_without_ = 0;
    }
    if (member.whose == Work::kPlain) return ops_.MakeRoom();
    ops_.WriteArrivals();
    if (member.whose != Work::kBrief) ops_.WriteGathered();
}

void Writer::RestChecks() {
    if (!checks_ || ++groups_without_ < kGroupsWithChecks) return;
    db_.EnableChecks(false);
    checks_ = false;
}

// Commits the group; returns those that must be run again because one member undid them all.
Writer::Group Writer::RunOnce(const Group& group) {
    std::size_t ran = 0;
    try {
        RequireSound();
        RestChecks();
        sqlite::Transaction transaction(db_);
        ops_.BeginGroup();
        bool whole = true;
        while (whole && ran < group.size()) {
            BeforeMember(*group[ran]);
            whole = RunMember(*group[ran++], group.size() == 1);
        }
        if (!whole) return WithoutTheCulprit(group, ran);
        ops_.WriteGathered();
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
        if (hosts && (i >= ran || member.whose != Work::kHosts)) {
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
