// Retry policies, lease policies, conditions, and the decision after a failure or a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "model/condition.h"
#include "model/decide.h"
#include "model/lease.h"
#include "model/limits.h"
#include "model/retry.h"

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Kind = RetryPolicy::Kind;
using On = RetryPolicy::On;

RetryPolicy Plain() {
    RetryPolicy policy;
    policy.jitter = 0;
    return policy;
}

TEST(Retry, ExponentialDoublesUpToItsMaximum) {
    RetryPolicy policy = Plain();
    policy.max_delay = 10s;
    EXPECT_EQ(RetryDelay(policy, 1, 0.5), 1s);
    EXPECT_EQ(RetryDelay(policy, 2, 0.5), 2s);
    EXPECT_EQ(RetryDelay(policy, 4, 0.5), 8s);
    EXPECT_EQ(RetryDelay(policy, 5, 0.5), 10s);
    EXPECT_EQ(RetryDelay(policy, 1'000'000, 0.5), 10s);
}

TEST(Retry, JitterStaysWithinItsShareBothWays) {
    RetryPolicy policy = Plain();
    policy.jitter = 0.2;
    policy.first_delay = 10s;
    EXPECT_EQ(RetryDelay(policy, 1, 0.0), 8s);
    EXPECT_EQ(RetryDelay(policy, 1, 0.5), 10s);
    EXPECT_GT(RetryDelay(policy, 1, 0.999), 11'990ms);
    EXPECT_LE(RetryDelay(policy, 1, 0.999), 12s);
}

TEST(Retry, FixedRepeatsAndListRepeatsItsLast) {
    RetryPolicy fixed = Plain();
    fixed.kind = Kind::kFixed;
    fixed.first_delay = 3s;
    EXPECT_EQ(RetryDelay(fixed, 1, 0), 3s);
    EXPECT_EQ(RetryDelay(fixed, 99, 0), 3s);

    RetryPolicy list = Plain();
    list.kind = Kind::kList;
    list.jitter = 0.2;
    list.delays = {1s, 5s, 30s};
    EXPECT_EQ(RetryDelay(list, 1, 0.9), 1s);
    EXPECT_EQ(RetryDelay(list, 2, 0.9), 5s);
    EXPECT_EQ(RetryDelay(list, 3, 0.9), 30s);
    EXPECT_EQ(RetryDelay(list, 4, 0.9), 30s);
}

TEST(Retry, DelaysNeverLeaveTheirLimits) {
    RetryPolicy policy = Plain();
    policy.first_delay = policy.max_delay = limits::kDelayMax;
    policy.jitter = 1;
    EXPECT_EQ(RetryDelay(policy, 1'000'000, 0.999), limits::kDelayMax);
    EXPECT_EQ(RetryDelay(policy, 1, 0.0), 0s);
}

TEST(Retry, AttemptsAreCountedWithTheFirst) {
    RetryPolicy policy;
    policy.max_attempts = 3;
    EXPECT_TRUE(AttemptsLeft(policy, 2));
    EXPECT_FALSE(AttemptsLeft(policy, 3));
    policy.max_attempts = 0;
    EXPECT_TRUE(AttemptsLeft(policy, 1'000'000'000));
}

TEST(Retry, PresetsAreTheThreeSourceSystems) {
    EXPECT_EQ(RetryPolicy::ErrorIsFinal().on, On::kNone);
    EXPECT_GT(RetryPolicy::ErrorIsFinal().max_attempts, 1);  // crashes are recovered
    EXPECT_EQ(RetryPolicy::CountedBackoff(), RetryPolicy{});
    RetryPolicy quick = RetryPolicy::UncountedQuick();
    EXPECT_EQ(quick.on, On::kAll);
    EXPECT_EQ(quick.max_attempts, 0);
    EXPECT_EQ(RetryDelay(quick, 50, 0.9), 0s);
    for (const auto& policy :
         {RetryPolicy::ErrorIsFinal(),
          RetryPolicy::CountedBackoff(),
          RetryPolicy::UncountedQuick()}) {
        EXPECT_TRUE(Validate(policy));
    }
}

TEST(Retry, JsonBringsBackEveryField) {
    RetryPolicy odd;
    odd.kind = Kind::kList;
    odd.on = On::kAll;
    odd.max_attempts = 7;
    odd.first_delay = 5ms;
    odd.max_delay = 11h;
    odd.factor = 1.1;
    odd.jitter = 0.37;
    odd.delays = {1ms, 2s};
    for (const auto& policy :
         {odd, RetryPolicy{}, RetryPolicy::ErrorIsFinal(), RetryPolicy::UncountedQuick()}) {
        EXPECT_EQ(RetryFromJson(RetryToJson(policy)).value(), policy);
    }
    EXPECT_EQ(RetryFromJson("{}").value(), RetryPolicy{});
    EXPECT_EQ(RetryFromJson(R"({"max_attempts":3})").value().max_attempts, 3);
}

TEST(Retry, JsonNamesTheFieldThatIsWrong) {
    auto why = [](std::string_view text) {
        auto result = RetryFromJson(text);
        return result ? std::string() : result.error().message;
    };
    EXPECT_THAT(why("["), HasSubstr("retry is not JSON"));
    EXPECT_THAT(why("3"), HasSubstr("give an object"));
    EXPECT_THAT(why(R"({"kind":"cubic"})"), HasSubstr("retry.kind is"));
    EXPECT_THAT(why(R"({"on":1})"), HasSubstr("retry.on is"));
    EXPECT_THAT(why(R"({"max_attempts":1.5})"), HasSubstr("retry.max_attempts"));
    EXPECT_THAT(why(R"({"max_attempts":99999999999})"), HasSubstr("retry.max_attempts"));
    EXPECT_THAT(why(R"({"first_delay_ms":"1s"})"), HasSubstr("retry.first_delay_ms"));
    EXPECT_THAT(why(R"({"max_delay_ms":null})"), HasSubstr("retry.max_delay_ms"));
    EXPECT_THAT(why(R"({"factor":"2"})"), HasSubstr("retry.factor"));
    EXPECT_THAT(why(R"({"jitter":[]})"), HasSubstr("retry.jitter"));
    EXPECT_THAT(why(R"({"delays_ms":3})"), HasSubstr("retry.delays_ms"));
    EXPECT_THAT(why(R"({"delays_ms":["x"]})"), HasSubstr("retry.delays_ms"));
    EXPECT_THAT(why(R"({"tries":3})"), HasSubstr("retry.tries is unknown"));
}

TEST(Retry, ValidationNamesFieldValueAndCure) {
    auto why = [](auto change) {
        RetryPolicy policy;
        change(policy);
        auto result = Validate(policy);
        return result ? std::string() : result.error().message;
    };
    EXPECT_EQ(
        why([](RetryPolicy& p) { p.max_attempts = -1; }),
        "retry.max_attempts is -1; it must be between 0 (no limit) and 1000000"
    );
    EXPECT_THAT(why([](RetryPolicy& p) { p.max_attempts = 1'000'001; }), HasSubstr("max_attempts"));
    EXPECT_THAT(why([](RetryPolicy& p) { p.factor = 0.5; }), HasSubstr("retry.factor is 0.5"));
    EXPECT_THAT(why([](RetryPolicy& p) { p.factor = NAN; }), HasSubstr("retry.factor"));
    EXPECT_THAT(why([](RetryPolicy& p) { p.jitter = 1.5; }), HasSubstr("retry.jitter is 1.5"));
    EXPECT_THAT(
        why([](RetryPolicy& p) { p.first_delay = -1ms; }), HasSubstr("retry.first_delay is -1 ms")
    );
    EXPECT_THAT(
        why([](RetryPolicy& p) { p.max_delay = limits::kDelayMax + 1ms; }),
        HasSubstr("retry.max_delay")
    );
    EXPECT_THAT(
        why([](RetryPolicy& p) { p.max_delay = 500ms; }),
        HasSubstr("must not be below first_delay (1 s)")
    );
    EXPECT_THAT(
        why([](RetryPolicy& p) { p.kind = Kind::kList; }), HasSubstr("retry.delays is empty")
    );
    EXPECT_THAT(why([](RetryPolicy& p) { p.delays = {-5s}; }), HasSubstr("retry.delays is -5 s"));
    EXPECT_THAT(why([](RetryPolicy& p) { p.delays.resize(1001); }), HasSubstr("1001 entries"));
    EXPECT_THAT(
        why([](RetryPolicy& p) { p.kind = static_cast<Kind>(9); }), HasSubstr("retry.kind is 9")
    );
    EXPECT_THAT(why([](RetryPolicy& p) { p.on = static_cast<On>(9); }), HasSubstr("retry.on is 9"));
}

TEST(LeasePolicies, PresetsAreValidAndHaveTheirNames) {
    EXPECT_EQ(LeaseNamed("default").value(), LeasePolicy{});
    EXPECT_EQ(LeaseNamed("brisk").value().heartbeat_every, 2s);
    EXPECT_EQ(LeaseNamed("patient").value().heartbeat_every, 30s);
    EXPECT_EQ(LeaseNamed("patient").value().lease, 2min);
    EXPECT_THAT(
        LeaseNamed("slow").error().message, HasSubstr("lease preset is \"slow\"; use default")
    );
    for (auto preset : {"default", "brisk", "patient"})
        EXPECT_TRUE(Validate(LeaseNamed(preset).value()));
}

TEST(LeasePolicies, ValidationSaysWhichOneIsWrong) {
    auto why = [](LeasePolicy policy) {
        auto result = Validate(policy);
        return result ? std::string() : result.error().message;
    };
    EXPECT_EQ(
        why({.lease = 100ms, .heartbeat_every = 20ms, .self_stop = 60ms}),
        "lease is 100 ms; it must be between 200 ms and 24 h"
    );
    EXPECT_THAT(
        why({.lease = 25h, .heartbeat_every = 1s, .self_stop = 3s}), HasSubstr("lease is 25 h")
    );
    EXPECT_THAT(
        why({.lease = 10s, .heartbeat_every = 0s, .self_stop = 3s}),
        HasSubstr("heartbeat_every is 0 s")
    );
    EXPECT_THAT(
        why({.lease = 10s, .heartbeat_every = 2s, .self_stop = 4s}),
        HasSubstr("self_stop is 4 s; it must be more than twice")
    );
    EXPECT_THAT(
        why({.lease = 10s, .heartbeat_every = 2s, .self_stop = 10s}),
        HasSubstr("self_stop is 10 s and lease is 10 s; self_stop must be at most 9 s")
    );
    EXPECT_THAT(
        why({.lease = 10s, .heartbeat_every = 2s, .self_stop = 9001ms}),
        HasSubstr("the last tenth of its lease")
    );
    EXPECT_EQ(why({.lease = 10s, .heartbeat_every = 2s, .self_stop = 9s}), "");
    EXPECT_EQ(why({.lease = 200ms, .heartbeat_every = 50ms, .self_stop = 101ms}), "");
}

TEST(Conditions, EveryOneHasANameAndASentence) {
    std::set<std::string_view> names;
    for (int i = 0; i < kConditionCount; ++i) {
        auto condition = static_cast<Condition>(i);
        names.insert(ConditionName(condition));
        EXPECT_TRUE(ConditionText(condition).ends_with('.')) << ConditionName(condition);
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kConditionCount));
}

// Every policy of `on` × retryable or not × attempts left or not.
TEST(Decide, FailuresInEveryCombination) {
    for (On on : {On::kRetryable, On::kAll, On::kNone}) {
        for (bool retryable : {false, true}) {
            for (int attempt : {1, 2, 3, 4}) {
                RetryPolicy policy = Plain();
                policy.on = on;
                policy.max_attempts = 3;
                auto decision = DecideFailure(
                    policy,
                    attempt,
                    {.message = "x", .klass = {}, .stack = {}, .retryable = retryable},
                    0.5
                );
                bool again = attempt < 3 && (on == On::kAll || (on == On::kRetryable && retryable));
                EXPECT_EQ(decision.to, again ? State::kError : State::kDead);
                EXPECT_EQ(decision.event, again ? Event::kFailRetryable : Event::kFailFinal);
                EXPECT_EQ(decision.reason.empty(), again);
                EXPECT_EQ(decision.delay, again ? RetryDelay(policy, attempt, 0.5) : 0ms);
                EXPECT_EQ(Next(State::kInProgress, decision.event), decision.to);
            }
        }
    }
}

TEST(Decide, TheReasonOfADeathSaysWhichRule) {
    TaskError fatal;
    TaskError again{.message = "x", .klass = {}, .stack = {}, .retryable = true};
    RetryPolicy two;
    two.max_attempts = 2;
    EXPECT_THAT(DecideFailure(two, 1, fatal, 0).reason, HasSubstr("not retryable"));
    EXPECT_EQ(DecideFailure(two, 2, again, 0).reason, "attempts exhausted: 2 of 2");
    EXPECT_THAT(
        DecideFailure(RetryPolicy::ErrorIsFinal(), 1, again, 0).reason, HasSubstr("no retry")
    );
}

// cancel × alone × crashes × attempts.
TEST(Decide, CrashesInEveryCombination) {
    for (bool cancel : {false, true}) {
        for (bool alone : {false, true}) {
            for (int crashes = 0; crashes <= limits::kMaxCrashes + 1; ++crashes) {
                for (int max_attempts : {0, 2, 5}) {
                    auto decision = DecideCrash(
                        {.attempt = 2,
                         .max_attempts = max_attempts,
                         .alone = alone,
                         .crashes_alone = crashes,
                         .cancel_requested = cancel}
                    );
                    Event want = cancel                                    ? Event::kCancel
                                 : alone && crashes >= limits::kMaxCrashes ? Event::kQuarantine
                                 : max_attempts == 2                       ? Event::kFailFinal
                                                                           : Event::kReclaim;
                    EXPECT_EQ(decision.event, want);
                    EXPECT_EQ(Next(State::kInProgress, decision.event), decision.to);
                    EXPECT_EQ(decision.reason.empty(), want == Event::kReclaim);
                    EXPECT_EQ(decision.delay > 0ms, want == Event::kReclaim);
                    EXPECT_EQ(
                        decision.reason.starts_with("quarantined: "), want == Event::kQuarantine
                    );
                }
            }
        }
    }
}

TEST(Decide, CrashDelayDoublesUpToItsMaximum) {
    EXPECT_EQ(CrashDelay(1), 250ms);
    EXPECT_EQ(CrashDelay(2), 500ms);
    EXPECT_EQ(CrashDelay(3), 1s);
    EXPECT_EQ(CrashDelay(8), limits::kCrashDelayMax);
    EXPECT_EQ(CrashDelay(1'000'000), limits::kCrashDelayMax);
}

}  // namespace
}  // namespace stint::model
