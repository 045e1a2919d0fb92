#include "model/task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace stint::model {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

NewTask Good() {
    NewTask task;
    task.type = "mail.send";
    return task;
}

std::string Why(const std::function<void(NewTask&)>& change) {
    NewTask task = Good();
    change(task);
    auto result = Validate(task);
    return result ? std::string() : result.error().message;
}

TEST(NewTasks, APlainOneAndAFullOneAreValid) {
    EXPECT_TRUE(Validate(Good()));
    NewTask full = Good();
    full.id = TaskId(5);
    full.input = R"({"to":"ann"})";
    full.queue = "mail/out";
    full.priority = 255;
    full.retry = RetryPolicy::UncountedQuick();
    full.timeout = 5min;
    full.run_at = Time{100s};
    full.start_by = Time{200s};
    full.tags = {"grün", "customer=12"};
    full.idempotency_key = "order 77";
    full.unique_key = "ann";
    full.throttle = Throttle{"ann", 1min};
    full.actor = "user:ann";
    EXPECT_TRUE(Validate(full)) << Validate(full).error().message;
}

TEST(NewTasks, MessagesNameFieldValueAndCure) {
    EXPECT_EQ(
        Why([](auto& t) { t.priority = 300; }), "priority is 300; it must be between 0 and 255"
    );
    EXPECT_EQ(
        Why([](auto& t) { t.priority = -1; }), "priority is -1; it must be between 0 and 255"
    );
    EXPECT_EQ(Why([](auto& t) { t.type = ""; }), "type is empty; give it a name");
    EXPECT_EQ(
        Why([](auto& t) { t.type = "a b*"; }),
        "type is \"a b*\"; use letters, digits and . _ - : / @ +"
    );
    EXPECT_EQ(
        Why([](auto& t) { t.type = std::string(129, 'x'); }),
        "type is 129 bytes; the limit is 128 bytes"
    );
    EXPECT_THAT(Why([](auto& t) { t.queue = ""; }), StartsWith("queue is empty"));
    EXPECT_THAT(Why([](auto& t) { t.queue = "grün"; }), StartsWith("queue is \"grün\""));
    EXPECT_THAT(Why([](auto& t) { t.tenant = TenantId(0); }), StartsWith("tenant is 0"));
    EXPECT_THAT(Why([](auto& t) { t.id = TaskId(-1); }), StartsWith("id is -1"));
    EXPECT_THAT(Why([](auto& t) { t.parent = TaskId(-1); }), StartsWith("parent is -1"));
    EXPECT_THAT(
        Why([](auto& t) { t.timeout = -1s; }),
        StartsWith("timeout is -1 s; it must be between 0 s and 8760 h")
    );
    EXPECT_THAT(Why([](auto& t) { t.delay = limits::kDelayMax + 1ms; }), StartsWith("delay is "));
    EXPECT_THAT(
        Why([](auto& t) { t.retry = RetryPolicy{.max_attempts = -3}; }),
        StartsWith("retry.max_attempts is -3")
    );
    EXPECT_THAT(Why([](auto& t) { t.run_at = Time{-1s}; }), StartsWith("run_at is -1000000"));
    EXPECT_THAT(Why([](auto& t) { t.start_by = Time::max(); }), StartsWith("start_by is "));
    EXPECT_THAT(
        Why([](auto& t) { t.actor = std::string(200, 'a'); }), StartsWith("actor is 200 bytes")
    );
    EXPECT_THAT(
        Why([](auto& t) { t.idempotency_key = "a\nb"; }),
        HasSubstr("idempotency_key is \"a?b\"; it must not have control")
    );
    EXPECT_THAT(Why([](auto& t) { t.unique_key = "\xFF"; }), HasSubstr("valid UTF-8"));
    EXPECT_THAT(Why([](auto& t) { t.unique_key = std::string(257, 'k'); }), HasSubstr("257 bytes"));
    EXPECT_THAT(
        Why([](auto& t) { t.unique_policy = static_cast<UniquePolicy>(7); }),
        StartsWith("unique_policy is 7")
    );
}

TEST(NewTasks, InputMustBeJsonWithinItsLimits) {
    EXPECT_THAT(Why([](auto& t) { t.input = ""; }), StartsWith("input is empty"));
    EXPECT_THAT(Why([](auto& t) { t.input = "{"; }), StartsWith("input is not JSON at byte"));
    EXPECT_THAT(Why([](auto& t) { t.input = "\"\\u0000\""; }), StartsWith("input holds U+0000"));
    EXPECT_THAT(
        Why([](auto& t) { t.input = std::string(65, '[') + std::string(65, ']'); }),
        StartsWith("input is nested deeper than 64")
    );
    EXPECT_EQ(Why([](auto& t) { t.input = std::string(64, '[') + std::string(64, ']'); }), "");
    NewTask large = Good();
    large.input = '"' + std::string(limits::kInput, 'x') + '"';
    auto result = Validate(large);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kLimit);
    EXPECT_THAT(result.error().message, HasSubstr("pass a reference"));
    large.input = '"' + std::string(limits::kInput - 2, 'x') + '"';
    EXPECT_TRUE(Validate(large));
}

TEST(NewTasks, CombinationsThatCannotBeMeantAreRefused) {
    EXPECT_THAT(
        Why([](auto& t) { t.delay = 1s, t.run_at = Time{1s}; }),
        HasSubstr("delay and run_at are both given")
    );
    EXPECT_THAT(
        Why([](auto& t) { t.run_at = Time{9s}, t.start_by = Time{9s}; }),
        HasSubstr("could never start")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"k", 1s, {}}, t.unique_key = "u";
        }),
        HasSubstr("debounce and unique_key")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"k", 1s, {}}, t.delay = 1s;
        }),
        HasSubstr("together with delay")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"k", 1s, {}}, t.run_at = Time{1s};
        }),
        HasSubstr("together with run_at")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"", 1s, {}};
        }),
        HasSubstr("debounce.key is empty")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"k", 0s, {}};
        }),
        HasSubstr("debounce.wait is 0 s")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.debounce = Debounce{"k", 2s, 1s};
        }),
        HasSubstr("debounce.max_wait is 1 s")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.throttle = Throttle{"", 1s};
        }),
        HasSubstr("throttle.key is empty")
    );
    EXPECT_THAT(
        Why([](auto& t) {
            t.throttle = Throttle{"k", 0s};
        }),
        HasSubstr("throttle.period is 0 s")
    );
}

TEST(NewTasks, TagsAreFewShortAndDistinct) {
    EXPECT_THAT(Why([](auto& t) { t.tags = {"a", "b", "a"}; }), HasSubstr("\"a\" twice"));
    EXPECT_THAT(Why([](auto& t) { t.tags = {""}; }), HasSubstr("empty tag"));
    EXPECT_THAT(Why([](auto& t) { t.tags = {std::string(65, 't')}; }), HasSubstr("65 bytes"));
    EXPECT_THAT(
        Why([](auto& t) {
            for (int i = 0; i < 17; ++i) t.tags.push_back(std::to_string(i));
        }),
        HasSubstr("17 tags; the limit is 16")
    );
}

TEST(RequestHashes, DependOnEveryFieldButIdActorAndKeys) {
    const std::vector<std::function<void(NewTask&)>> changes = {
        [](auto& t) { t.tenant = TenantId(2); },
        [](auto& t) { t.type = "mail.read"; },
        [](auto& t) { t.input = "1"; },
        [](auto& t) { t.queue = "default"; },
        [](auto& t) { t.priority = 128; },
        [](auto& t) { t.retry = RetryPolicy{}; },
        [](auto& t) { t.timeout = 0s; },
        [](auto& t) { t.delay = 0s; },
        [](auto& t) { t.run_at = Time{}; },
        [](auto& t) { t.start_by = Time{}; },
        [](auto& t) { t.tags = {"a"}; },
        [](auto& t) {
            t.tags = {"a", "b"};
        },
        [](auto& t) {
            t.debounce = Debounce{"k", 1s, {}};
        },
        [](auto& t) {
            t.throttle = Throttle{"k", 1s};
        },
        [](auto& t) { t.parent = TaskId(3); },
    };
    std::set<std::string> hashes = {RequestHash(Good())};
    for (const auto& change : changes) {
        NewTask task = Good();
        change(task);
        EXPECT_TRUE(hashes.insert(RequestHash(task)).second);
    }
    NewTask same = Good();
    same.id = TaskId(9);
    same.actor = "ann";
    same.idempotency_key = "i";
    same.unique_key = "u";
    EXPECT_EQ(RequestHash(same), RequestHash(Good()));
    NewTask ab = Good(), ba = Good();
    ab.tags = {"a", "b"};
    ba.tags = {"b", "a"};
    EXPECT_EQ(RequestHash(ab), RequestHash(ba));
}

TEST(RequestHashes, DoNotDependOnHowTheInputIsWritten) {
    NewTask compact = Good(), spaced = Good(), other = Good();
    compact.input = R"({"a":[1,2.5],"b":"é"})";
    spaced.input = R"( {"b": "\u00e9", "a": [1, 2.50]} )";
    other.input = R"({"a":[2.5,1],"b":"é"})";
    for (const char* thousand : {"1e3", "1000.0", "0.1E+4"}) {
        NewTask digits = Good(), written = Good();
        digits.input = R"({"a":[1000]})";
        written.input = fmt::format(R"({{"a":[{}]}})", thousand);
        EXPECT_EQ(RequestHash(digits), RequestHash(written)) << thousand;
    }
    EXPECT_EQ(RequestHash(compact), RequestHash(spaced));
    EXPECT_NE(RequestHash(compact), RequestHash(other));
}

TEST(RequestHashes, AreStableAcrossVersions) {
    // Stored for days; a change here makes running systems refuse honest repeats.
    EXPECT_EQ(
        RequestHash(Good()), "7fc4ea012db7bd1d08570ae21472c5ac39e02defcefb5998ab4f522ae4c56eef"
    );
}

TEST(Resolving, ExplicitBeforeRegisteredBeforeGlobal) {
    TypeDefaults registered;
    registered.type = "mail.send";
    registered.queue = "mail";
    registered.priority = 7;
    registered.retry = RetryPolicy::ErrorIsFinal();
    registered.timeout = 9s;

    Resolved global = Resolve(Good(), nullptr);
    EXPECT_EQ(global.queue, "default");
    EXPECT_EQ(global.priority, limits::kPriorityDefault);
    EXPECT_EQ(global.retry, RetryPolicy{});
    EXPECT_EQ(global.timeout, 0s);
    EXPECT_FALSE(global.type_known);

    Resolved known = Resolve(Good(), &registered);
    EXPECT_EQ(known.queue, "mail");
    EXPECT_EQ(known.priority, 7);
    EXPECT_EQ(known.retry, RetryPolicy::ErrorIsFinal());
    EXPECT_EQ(known.timeout, 9s);
    EXPECT_TRUE(known.type_known);

    NewTask given = Good();
    given.queue = "now";
    given.priority = 0;
    given.retry = RetryPolicy::UncountedQuick();
    given.timeout = 0s;
    for (const TypeDefaults* defaults :
         {static_cast<const TypeDefaults*>(nullptr),
          static_cast<const TypeDefaults*>(&registered)}) {
        Resolved resolved = Resolve(given, defaults);
        EXPECT_EQ(resolved.queue, "now");
        EXPECT_EQ(resolved.priority, 0);
        EXPECT_EQ(resolved.retry, RetryPolicy::UncountedQuick());
        EXPECT_EQ(resolved.timeout, 0s);
    }
}

TEST(Resolving, TheMaskNamesWhatWasExplicit) {
    for (int mask = 0; mask < 16; ++mask) {
        NewTask task = Good();
        if (mask & kExplicitQueue) task.queue = "q";
        if (mask & kExplicitPriority) task.priority = 1;
        if (mask & kExplicitRetry) task.retry = RetryPolicy{};
        if (mask & kExplicitTimeout) task.timeout = 1s;
        EXPECT_EQ(ExplicitMask(task), mask);
    }
}

TEST(Edits, MustChangeSomethingAndFollowTheSameRules) {
    auto why = [](const TaskEdit& edit) {
        auto result = Validate(edit);
        return result ? std::string() : result.error().message;
    };
    EXPECT_THAT(why({}), HasSubstr("the edit is empty"));
    EXPECT_EQ(why({.queue = "q"}), "");
    EXPECT_EQ(why({.tags = std::vector<std::string>{}}), "");
    EXPECT_THAT(why({.queue = "a b"}), StartsWith("queue is \"a b\""));
    EXPECT_THAT(why({.priority = 256}), StartsWith("priority is 256"));
    EXPECT_THAT(why({.input = "{"}), StartsWith("input is not JSON"));
    EXPECT_THAT(why({.delay = 1s, .run_at = Time{1s}}), HasSubstr("both given"));
    EXPECT_THAT(why({.timeout = -1s}), StartsWith("timeout is -1 s"));
    EXPECT_THAT(why({.tags = std::vector<std::string>{"a", "a"}}), HasSubstr("twice"));
}

TEST(Queues, SettingsAreChecked) {
    auto why = [](const QueueSettings& settings) {
        auto result = Validate(settings);
        return result ? std::string() : result.error().message;
    };
    EXPECT_EQ(why({.name = "mail", .cap = 0, .keep_complete = 1h}), "");
    EXPECT_THAT(why({.name = ""}), StartsWith("queue is empty"));
    EXPECT_THAT(why({.name = "q", .cap = -1}), StartsWith("cap is -1"));
    EXPECT_THAT(
        why({.name = "q", .keep_dead = 1min}),
        StartsWith("keep_dead is 1 min; it must be between 1 h")
    );
}

TEST(Types, DefaultsAreChecked) {
    EXPECT_TRUE(Validate(TypeDefaults{.type = "a"}));
    EXPECT_FALSE(Validate(TypeDefaults{}));
    EXPECT_FALSE(Validate(TypeDefaults{.type = "a", .queue = ""}));
    EXPECT_FALSE(Validate(TypeDefaults{.type = "a", .priority = 999}));
    EXPECT_FALSE(Validate(TypeDefaults{.type = "a", .timeout = -1s}));
}

TEST(Names, AttemptEndsGoBothWaysAndSessionStatesAreNamed) {
    for (int i = 0; i <= static_cast<int>(AttemptEnd::kLost); ++i) {
        auto end = static_cast<AttemptEnd>(i);
        EXPECT_EQ(AttemptEndNamed(AttemptEndName(end)), end);
    }
    EXPECT_EQ(AttemptEndNamed("gone"), std::nullopt);
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(SessionState::kExpired); ++i) {
        names.insert(SessionStateName(static_cast<SessionState>(i)));
    }
    EXPECT_EQ(names.size(), 4u);
}

}  // namespace
}  // namespace stint::model
