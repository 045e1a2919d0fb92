#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/demo_verdict.h"
#include "cli/exit_code.h"
#include "cli/ids.h"
#include "cli/submit_request.h"
#include "cli/task_view.h"

namespace stint::cli {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Time kNow{1'700'000'000s};

class RequestTest : public testing::Test {
protected:
    model::NewTask Line(std::string_view line) {
        return MakeRequestFromLine(flags_, line, context_);
    }
    std::string Problem(std::string_view line) {
        try {
            Line(line);
        } catch (const CommandError& error) {
            EXPECT_EQ(error.exit(), kUsage);
            return error.what();
        }
        ADD_FAILURE() << "accepted: " << line;
        return {};
    }

    SubmitFlags flags_;
    std::vector<model::TypeRecord> types_;
    RequestContext context_{kNow, TenantId{3}, "operator:ann", types_};
};

TEST_F(RequestTest, FlagsBecomeARequest) {
    flags_.type = "report";
    flags_.queue = "slow";
    flags_.priority = 200;
    flags_.delay = "5m";
    flags_.timeout = "30s";
    flags_.start_by = "now+1h";
    flags_.key = "k";
    flags_.unique = "u";
    flags_.on_duplicate = "replace";
    flags_.tags = {"a", "b"};
    model::NewTask task = MakeRequest(flags_, "{\"n\":1}", context_);
    EXPECT_EQ(task.type, "report");
    EXPECT_EQ(task.input, "{\"n\":1}");
    EXPECT_EQ(task.queue, "slow");
    EXPECT_EQ(task.priority, 200);
    EXPECT_EQ(task.delay, 5min);
    EXPECT_EQ(task.timeout, 30s);
    EXPECT_EQ(task.start_by, kNow + 1h);
    EXPECT_EQ(task.unique_policy, model::UniquePolicy::kReplaceIfNotStarted);
    EXPECT_EQ(task.tenant, TenantId{3});
    EXPECT_EQ(task.actor, "operator:ann");
    EXPECT_THAT(task.tags, ElementsAre("a", "b"));
}

TEST_F(RequestTest, OnlyAttemptsChangeInTheTypesPolicy) {
    model::TypeRecord record;
    record.defaults.type = "mail";
    record.defaults.retry.first_delay = 7s;
    types_.push_back(record);
    flags_.type = "mail";
    flags_.max_attempts = 2;
    model::NewTask task = MakeRequest(flags_, "null", context_);
    ASSERT_TRUE(task.retry);
    EXPECT_EQ(task.retry->max_attempts, 2);
    EXPECT_EQ(task.retry->first_delay, 7s);
}

TEST_F(RequestTest, LinesOverrideTheFlags) {
    flags_.type = "echo";
    flags_.queue = "q";
    model::NewTask task = Line(R"({"input": {"a": [1]}, "queue": "other", "tags": ["x"]})");
    EXPECT_EQ(task.type, "echo");
    EXPECT_EQ(task.queue, "other");
    EXPECT_EQ(task.input, R"({"a":[1]})");
    EXPECT_THAT(task.tags, ElementsAre("x"));
    EXPECT_EQ(Line("{}").input, "null");
}

TEST_F(RequestTest, WrongLinesSayWhat) {
    EXPECT_THAT(Problem("{\"type\": "), HasSubstr("not JSON"));
    EXPECT_THAT(Problem("[1]"), HasSubstr("not an object"));
    EXPECT_THAT(Problem("{}"), HasSubstr("\"type\" is missing"));
    EXPECT_THAT(Problem(R"({"type":"a","queu":"b"})"), HasSubstr("did you mean \"queue\""));
    EXPECT_THAT(Problem(R"({"type":"a","priority":"high"})"), HasSubstr("whole number"));
    EXPECT_THAT(Problem(R"({"type":"a","delay":"5"})"), HasSubstr("delay"));
    EXPECT_THAT(Problem(R"({"type":"a","on_duplicate":"x"})"), HasSubstr("return, replace"));
    EXPECT_THAT(
        Problem(R"({"type":"a","after":["1"],"on_failure":"x"})"),
        HasSubstr("wait, fail-fast, cancel-rest")
    );
    EXPECT_THAT(Problem(R"({"type":"a","on_failure":"wait"})"), HasSubstr("need --after"));
}

TEST_F(RequestTest, AfterSaysWhatAFailureMeans) {
    auto policy = [&](std::string_view name) {
        return Line(fmt::format(R"({{"type":"a","after":["1","2"],"on_failure":"{}"}})", name))
            .after->on_failure;
    };
    EXPECT_EQ(policy("wait"), OnFailure::kWaitForAll);
    EXPECT_EQ(policy("fail-fast"), OnFailure::kFailFast);
    EXPECT_EQ(policy("cancel-rest"), OnFailure::kCancelRest);
    EXPECT_EQ(Line(R"({"type":"a","after":["1"]})").after->on_failure, OnFailure::kWaitForAll);
}

TEST(Ids, WordsAndStandardInput) {
    std::istringstream input("4 5\n6\n");
    EXPECT_THAT(
        ReadIds({"3", "-", "3"}, input), ElementsAre(TaskId{3}, TaskId{4}, TaskId{5}, TaskId{6})
    );
    std::istringstream bad("x");
    EXPECT_THROW(ReadIds({"-"}, bad), CommandError);
    EXPECT_THROW(ReadIds({"0"}, bad), CommandError);
    EXPECT_THROW(ReadIds({"-3"}, bad), CommandError);
}

// ---- the demo's counts -------------------------------------------------------------------------

using model::Event;
using model::State;

model::AuditEntry Entry(std::optional<State> from, Event event, State to) {
    model::AuditEntry entry;
    entry.from = from;
    entry.event = event;
    entry.to = to;
    return entry;
}

struct Story {
    std::optional<model::TaskRecord> task;
    std::vector<model::AuditEntry> audit;
    std::vector<model::AttemptRecord> attempts;
};

Story Completed(bool crashed) {
    Story story;
    story.task.emplace();
    story.task->state = State::kComplete;
    story.audit.push_back(Entry({}, Event::kSubmit, State::kOpen));
    story.audit.push_back(Entry(State::kOpen, Event::kClaim, State::kInProgress));
    if (crashed) {
        story.audit.push_back(Entry(State::kInProgress, Event::kReclaim, State::kOpen));
        story.audit.push_back(Entry(State::kOpen, Event::kClaim, State::kInProgress));
    }
    story.audit.push_back(Entry(State::kInProgress, Event::kComplete, State::kComplete));
    story.attempts.resize(1);
    story.attempts[0].end = model::AttemptEnd::kComplete;
    return story;
}

Tally TallyOf(const std::vector<Story>& stories) {
    Tally tally;
    for (const Story& story : stories) tally.Add(story.task, story.audit, story.attempts);
    return tally;
}

TEST(Tally, GoodWhenEveryTaskEndedOnce) {
    Tally tally = TallyOf({Completed(false), Completed(true)});
    EXPECT_TRUE(tally.good());
    EXPECT_EQ(tally.completed, 2u);
    EXPECT_EQ(tally.recovered, 1u);
}

TEST(Tally, SeesATaskThatIsGone) {
    Story gone = Completed(false);
    gone.task.reset();
    Tally tally = TallyOf({Completed(false), gone});
    EXPECT_EQ(tally.lost, 1u);
    EXPECT_FALSE(tally.good());
}

TEST(Tally, SeesATaskThatIsNotFinished) {
    Story waiting = Completed(false);
    waiting.task->state = State::kOpen;
    waiting.audit.pop_back();
    Tally tally = TallyOf({waiting});
    EXPECT_EQ(tally.unfinished, 1u);
    EXPECT_FALSE(tally.good());
}

TEST(Tally, SeesASecondOutcome) {
    Story twice = Completed(false);
    twice.audit.push_back(Entry(State::kInProgress, Event::kComplete, State::kComplete));
    EXPECT_EQ(TallyOf({twice}).doubled, 1u);
    EXPECT_FALSE(TallyOf({twice}).good());
    Story attempts = Completed(false);
    attempts.attempts.push_back(attempts.attempts[0]);
    EXPECT_EQ(TallyOf({attempts}).doubled, 1u);
}

TEST(Tally, SeesASubmitWithoutAuditAndACompletionWithoutOne) {
    Story silent = Completed(false);
    silent.audit.erase(silent.audit.begin());
    EXPECT_FALSE(TallyOf({silent}).good());
    Story unsaid = Completed(false);
    unsaid.audit.pop_back();
    EXPECT_FALSE(TallyOf({unsaid}).good());
    EXPECT_FALSE(TallyOf({}).good()) << "nothing proves nothing";
}

TEST(TaskView, DetailSaysWhatMatters) {
    model::TaskRecord task;
    task.due_at = kNow + 90s;
    EXPECT_EQ(DetailText(task, kNow), "due in 1m 30s");
    task.state = State::kDead;
    task.reason = "attempts exhausted";
    task.error = model::TaskError{"boom", "io", "", true};
    EXPECT_EQ(DetailText(task, kNow), "attempts exhausted; io: boom");
    task.state = State::kInProgress;
    task.progress = model::Progress{"copy", 3, 10, ""};
    EXPECT_EQ(DetailText(task, kNow), "copy 3/10");
    EXPECT_EQ(Ago(kNow - 5min, kNow), "5m 0s ago");
}

TEST_F(RequestTest, NeedsLabelsAndOrderAreRead) {
    auto task = Line(R"({"type": "t", "needs": ["GPU", "license=2"], "labels": ["eu"],
                         "order_key": "k", "on_failed_head": "skip"})");
    EXPECT_EQ(task.needs, (model::Needs{{"gpu", 1}, {"license", 2}}));
    EXPECT_THAT(*task.labels, ElementsAre("eu"));
    EXPECT_EQ(task.order_key, "k");
    EXPECT_EQ(task.on_failed_head, model::OnFailedHead::kSkip);
    EXPECT_FALSE(Line(R"({"type": "t"})").needs) << "the type's";
    EXPECT_THAT(Problem(R"({"type": "t", "needs": ["gpu=x"]})"), HasSubstr("NAME=UNITS"));
    EXPECT_THAT(
        Problem(R"({"type": "t", "on_failed_head": "jump"})"), HasSubstr("block, skip, dead")
    );
}

model::AuditEntry Entry(std::optional<model::State> from, model::State to, int second) {
    model::AuditEntry entry;
    entry.from = from;
    entry.to = to;
    entry.at = kNow + std::chrono::seconds{second};
    return entry;
}

TEST(DemoVerdict, HoldersAreCountedFromTheAuditLog) {
    using model::State;
    auto task = [](int from, int to) {
        return std::vector{
            Entry({}, State::kOpen, 0),
            Entry(State::kOpen, State::kInProgress, from),
            Entry(State::kInProgress, State::kComplete, to)};
    };
    Holders holders;
    EXPECT_EQ(holders.Most(), 0u);
    holders.Add(task(1, 5));
    holders.Add(task(5, 9));  // takes what the first has just freed
    EXPECT_EQ(holders.Most(), 1u);
    holders.Add(task(4, 6));
    EXPECT_EQ(holders.Most(), 2u);
    // One that was taken over holds it twice, one after the other.
    holders.Add(
        {Entry(State::kOpen, State::kInProgress, 10),
         Entry(State::kInProgress, State::kOpen, 20),
         Entry(State::kOpen, State::kInProgress, 20)}
    );
    EXPECT_EQ(holders.Most(), 2u);
}

}  // namespace
}  // namespace stint::cli
