#include "model/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Time kNow{std::chrono::seconds{1'700'000'000}};

ScheduleSpec Parsed(std::string_view json) {
    auto spec = ScheduleFromJson(json, kNow);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    return spec ? *spec : ScheduleSpec{};
}

std::string Refusal(std::string_view json) {
    auto spec = ScheduleFromJson(json, kNow);
    if (!spec) return spec.error().message;
    auto valid = Validate(*spec);
    return valid ? "" : valid.error().message;
}

constexpr std::string_view kFull =
    R"({"name":"nightly","tenant":3,"cron":"30 2 * * *","zone":"Europe/Berlin","gap":"skip",)"
    R"("fold":"both","misfire":"all","misfire_grace":"5m","misfire_window":"2d",)"
    R"("misfire_limit":7,"overlap":"queue_one","jitter":"30s","except":["holidays"],)"
    R"("keep_runs":"30d","instant_field":"at","task":{"type":"backup","input":{"b":1,"a":[2]},)"
    R"("queue":"night","priority":7,"timeout":"1h","tags":["x"],"unique":"k",)"
    R"("on_duplicate":"error","throttle":{"key":"t","period":"10s"}}})";

TEST(ScheduleJson, EveryMemberIsReadAndWrittenBack) {
    ScheduleSpec spec = Parsed(kFull);
    EXPECT_TRUE(Validate(spec)) << Refusal(kFull);
    EXPECT_EQ(spec.tenant, TenantId(3));
    EXPECT_EQ(spec.timing.changes.gap, GapPolicy::kSkip);
    EXPECT_EQ(spec.timing.changes.fold, FoldPolicy::kBoth);
    EXPECT_EQ(spec.misfire.window, 48h);
    EXPECT_EQ(spec.overlap, OverlapPolicy::kQueueOne);
    EXPECT_EQ(spec.task.unique_policy, UniquePolicy::kError);
    EXPECT_EQ(spec.task.tenant, TenantId(3));
    EXPECT_EQ(base::ReadJson(ScheduleToJson(spec)), base::ReadJson(kFull));
}

TEST(ScheduleJson, EveryKindOfTimingComesBackAsItWas) {
    for (std::string timing :
         {R"("cron":"@daily")",
          R"("every":"10m")",
          R"("every":"10m","anchor":"2030-01-01T00:00:00Z")",
          R"("after_end":"5m")",
          R"("after_end":"5m","first":"2030-01-01T00:00:00Z")",
          R"("after_start":"5m")",
          R"("after_start":"5m","first":"2030-01-01T00:00:00Z")",
          R"("at":"2030-01-01T00:00:00Z")",
          R"("visits":"1d")",
          R"("visits":"1d","overlap":"allow")"}) {
        std::string json = R"({"name":"n",)" + timing + R"(,"task":{"type":"t"}})";
        EXPECT_EQ(Refusal(json), "");
        EXPECT_EQ(base::ReadJson(ScheduleToJson(Parsed(json))), base::ReadJson(json));
    }
}

TEST(ScheduleJson, RelativeInstantsCountFromNow) {
    ScheduleSpec spec = Parsed(R"({"name":"n","at":"now+1h","task":{"type":"t"}})");
    EXPECT_EQ(spec.timing.start, kNow + 1h);
}

TEST(ScheduleJson, RefusalsNameTheMemberAndTheCure) {
    auto with = [](std::string members) {
        return Refusal(R"({"name":"n",)" + members + R"(,"task":{"type":"t"}})");
    };
    EXPECT_THAT(Refusal("[]"), HasSubstr("must be an object"));
    EXPECT_THAT(Refusal("{"), HasSubstr("is not JSON"));
    EXPECT_THAT(with(R"("crom":"* * * * *")"), HasSubstr("did you mean \"cron\"?"));
    EXPECT_THAT(with(R"("cron":"0 0 30 2 *")"), testing::StartsWith("cron: \"0 0 30 2 *\" never"));
    EXPECT_THAT(with(R"("cron":"@daily","every":"1m")"), HasSubstr("cron and every"));
    EXPECT_THAT(with(R"("jitter":"1m")"), HasSubstr("give one of cron, every"));
    EXPECT_THAT(with(R"("every":"10")"), HasSubstr("every"));
    EXPECT_THAT(with(R"("every":"10ms")"), HasSubstr("every is 10ms"));
    EXPECT_THAT(with(R"("every":"1m","fold":"first")"), HasSubstr("only together with cron"));
    EXPECT_THAT(with(R"("cron":"@daily","zone":"../etc")"), HasSubstr("../etc"));
    EXPECT_THAT(with(R"("cron":"@daily","overlap":"never")"), HasSubstr("cancel_running"));
    EXPECT_THAT(with(R"("cron":"@daily","misfire_limit":0)"), HasSubstr("misfire.limit"));
    EXPECT_THAT(with(R"("at":"2030-01-01T00:00:00Z","except":["a"])"), HasSubstr("except"));
    EXPECT_THAT(with(R"("cron":"@daily","entity_field":"e")"), HasSubstr("visits"));
    EXPECT_THAT(with(R"("cron":"@daily","instant_field":"e")"), HasSubstr("must be an object"));
}

TEST(ScheduleJson, ATaskThatEveryRunWouldShareIsRefused) {
    auto with = [](NewTask task) {
        task.type = "t";
        auto valid = Validate(ScheduleSpec{
            .name = "n", .timing = {.cron = "@daily"}, .task = std::move(task)});
        return valid ? "" : valid.error().message;
    };
    EXPECT_EQ(with({}), "");
    EXPECT_THAT(with({.id = TaskId(1)}), HasSubstr("task.id"));
    EXPECT_THAT(with({.delay = 1s}), HasSubstr("task.delay"));
    EXPECT_THAT(with({.run_at = kNow}), HasSubstr("task.run_at"));
    EXPECT_THAT(with({.start_by = kNow}), HasSubstr("task.start_by"));
    EXPECT_THAT(with({.idempotency_key = "k"}), HasSubstr("task.idempotency_key"));
    EXPECT_THAT(with({.priority = 1000}), HasSubstr("task.priority is 1000"));
    EXPECT_THAT(
        with({.tags = std::vector<std::string>(limits::kTagsPerTask, "x")}), HasSubstr("task.tags")
    );
}

TEST(ScheduleJson, ATaskThatNoRunCouldGetIsRefused) {
    ScheduleSpec spec{.name = "n", .timing = {.cron = "@daily"}};
    spec.task.type = "t";
    spec.task.tags = {"a", "schedule:m"};
    EXPECT_TRUE(Validate(spec));
    spec.task.tags = {"a", "schedule:n"};
    auto valid = Validate(spec);
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().message, HasSubstr("task.tags"));
    EXPECT_THAT(valid.error().message, HasSubstr("\"schedule:n\""));
    // The input has room for itself, and none for what every run adds.
    spec.task.tags.clear();
    spec.task.input = R"({"a":")" + std::string(limits::kInput - 20, 'x') + R"("})";
    EXPECT_TRUE(Validate(spec));
    spec.instant_field = "at";
    valid = Validate(spec);
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().message, HasSubstr("task.input"));
}

TEST(ScheduleTiming, InstantsThatNoStoreCanHoldAreRefused) {
    auto with = [](TimingSpec::Kind kind, Time start) {
        ScheduleSpec spec{
            .name = "n",
            .timing = {.kind = kind, .every = 1min, .after_end = 1min, .start = start}};
        spec.task.type = "t";
        auto valid = Validate(spec);
        return valid ? "" : valid.error().message;
    };
    using enum TimingSpec::Kind;
    const Time far{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};
    for (auto [kind, field] :
         {std::pair(kEvery, "anchor"),
          {kAfterEnd, "first"},
          {kAfterStart, "first"},
          {kOnce, "at"}}) {
        EXPECT_EQ(with(kind, kNow), "");
        for (Time at : {far, Time(-1s), Time::max(), Time::min()}) {
            EXPECT_THAT(with(kind, at), HasSubstr("1970 to 9999"));
            EXPECT_THAT(with(kind, at), testing::StartsWith(field));
        }
    }
}

TEST(ScheduleDifferences, NameWhatChangedAndNothingElse) {
    ScheduleSpec before = Parsed(kFull);
    EXPECT_THAT(Differences(before, before), testing::IsEmpty());
    ScheduleSpec after = before;
    after.timing.cron = "0 3 * * *";
    after.task.queue.reset();
    after.task.input = R"({"a":[2],"b":1})";  // the same
    after.timing.changes.gap = GapPolicy::kEndOfGap;
    auto differences = Differences(before, after);
    ASSERT_EQ(differences.size(), 3u);
    EXPECT_EQ(differences[0].member, "cron");
    EXPECT_EQ(differences[0].before, "\"30 2 * * *\"");
    EXPECT_EQ(differences[0].after, "\"0 3 * * *\"");
    EXPECT_EQ(differences[1].member, "gap");
    EXPECT_EQ(differences[1].after, "");
    EXPECT_EQ(differences[2].member, "task.queue");
}

TEST(ScheduleTiming, OnlyWhatMovesInstantsMakesAnother) {
    ScheduleSpec spec = Parsed(kFull), other = spec;
    other.task.queue = "else";
    other.jitter = 0s;
    EXPECT_TRUE(SameTiming(spec, other));
    other.zone = "UTC";
    EXPECT_FALSE(SameTiming(spec, other));
    other = spec;
    other.timing.changes.fold = FoldPolicy::kFirst;
    EXPECT_FALSE(SameTiming(spec, other));
}

TEST(Calendars, DatesAreChecked) {
    EXPECT_TRUE(Validate(Calendar{.name = "h", .dates = {"2024-02-29", "2026-12-25"}}));
    for (std::string date : {"2026-02-29", "25.12.2026", "2026-1-1", "2026-13-01", ""}) {
        auto valid = Validate(Calendar{.name = "h", .dates = {date}});
        ASSERT_FALSE(valid) << date;
        EXPECT_THAT(valid.error().message, HasSubstr("write 2026-12-25"));
    }
}

TEST(Visits, DoNotOverlapUnlessOneSaysSo) {
    EXPECT_EQ(
        Parsed(R"({"name":"n","visits":"1h","task":{"type":"t"}})").overlap, OverlapPolicy::kSkip
    );
    EXPECT_EQ(
        Parsed(R"({"name":"n","visits":"1h","overlap":"allow","task":{"type":"t"}})").overlap,
        OverlapPolicy::kAllow
    );
    EXPECT_EQ(
        Parsed(R"({"name":"n","every":"1h","task":{"type":"t"}})").overlap, OverlapPolicy::kAllow
    );
}

TEST(Visits, PoliciesThatVisitsDoNotHaveAreRefused) {
    auto with = [](std::string members, std::string task = "") {
        return Refusal(
            R"({"name":"n","visits":"1h")" + members + R"(,"task":{"type":"t")" + task + "}}"
        );
    };
    EXPECT_EQ(with(""), "");
    EXPECT_EQ(with(R"(,"overlap":"skip")"), "");
    EXPECT_EQ(with(R"(,"overlap":"allow")", R"(,"unique":"k")"), "");
    EXPECT_THAT(with(R"(,"overlap":"queue_one")"), HasSubstr("overlap is queue_one"));
    EXPECT_THAT(with(R"(,"overlap":"cancel_running")"), HasSubstr("use skip"));
    EXPECT_THAT(with(R"(,"misfire":"all")"), HasSubstr("made up for once"));
    EXPECT_THAT(with(R"(,"misfire_grace":"5m")"), HasSubstr("misfire"));
    EXPECT_THAT(with("", R"(,"unique":"k")"), HasSubstr("task.unique"));
    EXPECT_THAT(with("", R"(,"debounce":{"key":"k","wait":"1s"})"), HasSubstr("task.debounce"));
}

TEST(Visits, EntitiesAreChecked) {
    EXPECT_TRUE(Validate(NewVisit{.entity = "channel 7", .every = 1h}));
    EXPECT_FALSE(Validate(NewVisit{.entity = "", .every = 1h}));
    EXPECT_FALSE(Validate(NewVisit{.entity = "a\nb", .every = {}}));
    EXPECT_FALSE(Validate(NewVisit{.entity = "a", .every = 1ms}));
    EXPECT_FALSE(Validate(NewVisit{.entity = std::string(300, 'x'), .every = {}}));
}

}  // namespace
}  // namespace stint::model
