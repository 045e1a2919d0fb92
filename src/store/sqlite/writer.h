// The one writer: a thread with the only connection that changes the file.
//
// Group commit. Callers queue members; the thread takes all that are queued, runs each inside its
// own savepoint of one transaction, commits once and answers all. While it waits for the disk the
// next group gathers. A member that fails is rolled back alone. A host's SQL can undo the whole
// transaction (SQLite does when it interrupts a write): then the others are run again without it.
//
//   caller ──Run(member)──▶ queue ──▶ BEGIN IMMEDIATE · member · member · … · COMMIT ──▶ answers
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "sqlite/connection.h"
#include "store/sqlite/ops.h"

namespace stint::store::lite {

class Writer {
public:
    // Opens the file and brings the schema up to date.
    struct Options {
        std::string path;
        base::Clock* clock = nullptr;
        base::Random* random = nullptr;
        bool migrate = true;
        bool sync = true;  // false: for tests of things other than durability
    };
    explicit Writer(const Options& options);
    ~Writer();  // what is queued is still written

    enum class Work : std::uint8_t {
        kOurs,   // may be run again when the transaction was lost
        kHosts,  // the host's own code: called once
        kBrief,  // ours, and looks at no audit entry or tally that its group has left to be written
        kPlain,  // ours, and leaves all that it changes to be written: nothing to undo when it
                 // refuses
    };
    // Runs `member` in the next group and returns when it is committed. Throws what it threw, or
    // Unavailable (nothing was changed), or CommitUnknown.
    void Run(const std::function<void(Ops&)>& member, Work whose = Work::kOurs);

    // Nothing is written any more, and nothing that is read can be believed.
    void Break(const std::string& why);
    void RequireSound();  // throws Unavailable after Break()

    bool unclean() const { return unclean_; }  // the last owner did not close the file

    // How many members and groups were committed: shows that groups form.
    struct Totals {
        std::int64_t members = 0;
        std::int64_t groups = 0;
    };
    Totals totals();
    std::size_t queued();  // members that wait for the next group

private:
    struct Member {
        const std::function<void(Ops&)>* work = nullptr;
        Work whose = Work::kOurs;
        std::exception_ptr error;
        // A lock of its own: those who are answered together do not wait for each other.
        std::mutex mutex;
        std::condition_variable answered;
        bool done = false;  // guarded by mutex
    };
    using Group = std::deque<std::shared_ptr<Member>>;

    void Loop();
    void AwaitOthers(std::unique_lock<std::mutex>& lock);
    void RunGroup(const Group& group);
    Group RunOnce(const Group& group);
    bool RunMember(Member& member, bool alone);
    void BeforeMember(const Member& member);
    void RestChecks();
    Group WithoutTheCulprit(const Group& group, std::size_t ran);
    void Answer(const Group& group);
    void FailAll(const Group& group, std::size_t count, const std::exception_ptr& error);

    const bool unclean_;  // asked before the file is opened
    // Only the writer's thread, once it runs.
    sqlite::Connection db_;
    Ops ops_;
    bool checks_ = false;                  // triggers fire, foreign keys are checked
    int groups_without_ = 0;               // the host's code, in a row
    base::Instant::duration last_took_{};  // the last group
    int misses_ = 0;                       // in a row: those awaited did not come
    int skip_ = 0;                         // so many groups are not awaited

    std::atomic<bool> broken_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    Group queue_;               // guarded by mutex_
    std::size_t awaited_ = 1;   // so many wake the writer; guarded by mutex_
    std::size_t expected_ = 0;  // in the next group, if all come back; guarded by mutex_
    bool stop_ = false;         // guarded by mutex_
    std::string why_broken_;    // guarded by mutex_
    Totals totals_;             // guarded by mutex_
    std::jthread thread_;
};

}  // namespace stint::store::lite
