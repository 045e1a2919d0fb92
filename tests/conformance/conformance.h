// The base of every case: an empty store, words to talk to it, and, after the case, the checks that
// hold for every store at every moment (the audit log replays to each task's state, the attempts'
// rows agree with the claims, the counts agree with the lists, the store's own check finds
// nothing).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "conformance/fixture.h"
#include "store/store.h"

namespace stint::conformance {

// NOLINTBEGIN(google-build-using-namespace,google-global-names-in-headers): this header is the
// vocabulary of the cases and is included by nothing else
using namespace std::chrono_literals;
using namespace stint::store;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using testing::UnorderedElementsAreArray;
// NOLINTEND(google-build-using-namespace,google-global-names-in-headers)

class Conformance : public testing::TestWithParam<Backend> {
protected:
    Conformance();
    void TearDown() override;

    // ---- words ----

    void Advance(Duration by) { fixture_->AdvanceTime(by); }
    std::shared_ptr<Store> OpenAgain() { return fixture_->Open(); }
    std::shared_ptr<Store> OpenAnother() { return fixture_->OpenAnother(); }

    SubmitReply Submit(NewTask task);  // type "t" when it has none
    TaskId Make(NewTask task = {});    // the same, which must be created
    std::vector<TaskId> MakeMany(int count, const NewTask& task = {});

    SessionId OpenSession(Duration lease = limits::kLeaseMax, const std::string& host = "host-a");
    SessionId Worker();  // a session that is live now, the same as long as it is

    // Of the types "t", "u" and "v", in every queue, unless the request says otherwise.
    ClaimReply Claim(ClaimRequest request = {});
    std::vector<Lease> ClaimMany(int limit, ClaimRequest request = {});
    Lease ClaimOne(ClaimRequest request = {});  // which must be there
    Lease MakeClaimed(
        const NewTask& task = {}
    );                     // submitted and claimed; nothing else may be ready
    Lease ClaimSuspect();  // which must be there

    Settlement Outcome(const Lease& lease, Settlement::Kind kind, Duration delay = {}) const;
    SettleReply Settle(const Settlement& settlement);
    State SettleAs(
        const Lease& lease, Settlement::Kind kind, Duration delay = {}
    );  // must be accepted
    State Complete(const Lease& lease) { return SettleAs(lease, Settlement::Kind::kComplete); }

    // The session's lease ends, and a sweeper comes by.
    ReclaimReply Crash(const Lease& lease);
    ReclaimReply ReclaimAll(const ReclaimRequest& request = {});

    CancelReply Cancel(TaskId task, std::string_view reason = "because");
    RetryReply Retry(TaskId task);
    RetryReply Discard(TaskId task);
    HousekeepReply Housekeep();  // until there is no more

    TaskRecord Get(TaskId task);  // which must be there
    State StateOf(TaskId task) { return Get(task).state; }
    std::vector<AuditEntry> AuditOf(TaskId task);
    std::vector<Event> EventsOf(TaskId task);
    std::vector<TaskRecord> ListAll(const TaskFilter& filter = {}, int page = limits::kListPage);
    std::vector<TaskId> Ids(const std::vector<TaskRecord>& tasks) const;

    // A policy without jitter that tries `max_attempts` times, `delay` apart.
    static RetryPolicy Fixed(int max_attempts, Duration delay);
    static TaskError Failure(bool retryable = true);

    const std::unique_ptr<StoreFixture> fixture_;
    const std::shared_ptr<Store> store_;
    Store& store;
    base::Random& random = base::SystemRandom();

private:
    void CheckTask(const TaskRecord& task);
    void CheckCounts(const std::vector<TaskRecord>& tasks);

    SessionId worker_;
};

std::string BackendName(const testing::TestParamInfo<Backend>& info);

// How long ago or ahead, give or take what a case itself lasts.
testing::AssertionResult Near(Time actual, Time expected, Duration slack = 30s);

}  // namespace stint::conformance

// A group of cases: CONFORMANCE_SUITE(Claims); TEST_P(Claims, SkipsTasksThatAreNotDue) { … }
// NOLINTBEGIN(bugprone-macro-parentheses): a class has none around its name
#define CONFORMANCE_SUITE(name)         \
    class name : public Conformance {}; \
    INSTANTIATE_TEST_SUITE_P(Store, name, testing::ValuesIn(Backends()), &BackendName)
// NOLINTEND(bugprone-macro-parentheses)
