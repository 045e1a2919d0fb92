#include "store/fire.h"

#include <gmock/gmock.h>

namespace stint::store {
namespace {

using ::testing::Each;
using ::testing::Le;
using ::testing::SizeIs;

// Rows of a store that has every event pending and takes every task.
class FakeTables final : public FiringTables {
public:
    std::map<EventNo, Locked> Lock(std::span<const EventOutcome> outcomes) override {
        std::map<EventNo, Locked> locked;
        for (const EventOutcome& outcome : outcomes) {
            locked[outcome.event] = {outcome.event, kDefaultTenant, true, 0, {}};
        }
        return locked;
    }
    PublishReply Publish(const NewEvent&) override { return {}; }
    std::map<JoinKey, JoinInstance> Rounds(const std::set<JoinKey>&) override { return {}; }
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        batches.push_back(static_cast<int>(tasks.size()));
        std::vector<SubmitReply> replies(tasks.size());
        for (SubmitReply& reply : replies) reply.id = TaskId(++last_id_);
        return replies;
    }
    Result<State> Finish(const BackgroundFinish&) override { return State::kComplete; }
    bool IsTerminal(TaskId) override { return false; }
    Time Now() override { return {}; }
    void
    Save(std::span<const Ending>, std::span<const Firing> firings, std::span<const JoinInstance>)
        override {
        saved.assign(firings.begin(), firings.end());
    }

    std::vector<int> batches;
    std::vector<Firing> saved;

private:
    std::int64_t last_id_ = 0;
};

TEST(Fire, MoreTasksThanOneSubmitTakesAreFiredAllTheSame) {
    std::vector<EventOutcome> outcomes;
    for (int i = 0; i <= limits::kSubmitBatch / limits::kFiringsPerEvent; ++i) {
        EventOutcome& outcome = outcomes.emplace_back();
        outcome.event = EventNo(i + 1);
        for (int k = 0; k < limits::kFiringsPerEvent; ++k) {
            Action& action = outcome.actions.emplace_back();
            action.workflow = "w";
            action.trigger = "t" + std::to_string(k);
            action.what = NewTask{.type = "t"};
        }
    }
    FakeTables tables;
    std::vector<FireReply> replies = FireAll(tables, outcomes);
    EXPECT_THAT(tables.batches, Each(Le(limits::kSubmitBatch)));
    std::set<TaskId> tasks;
    for (const FiringTables::Firing& firing : tables.saved) {
        EXPECT_EQ(firing.record.kind, FiringRecord::Kind::kSubmitted);
        tasks.insert(firing.record.task);
    }
    EXPECT_THAT(tasks, SizeIs(outcomes.size() * limits::kFiringsPerEvent));
    EXPECT_THAT(replies.back().fired, SizeIs(limits::kFiringsPerEvent));
}

}  // namespace
}  // namespace stint::store
