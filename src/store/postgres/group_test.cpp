#include "store/postgres/group.h"

#include <gmock/gmock.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "base/test_point.h"
#include "store/postgres/db.h"

namespace stint::store::pg {
namespace {

using ::testing::SizeIs;

std::vector<SubmitReply> Answer(std::span<const NewTask> tasks) {
    std::vector<SubmitReply> replies(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) replies[i].message = tasks[i].input;
    return replies;
}

// Holds the first transaction until the others have gathered behind it.
class Gate {
public:
    GroupSubmit::Work Around(const GroupSubmit::Work& work) {
        return [this, work](std::span<const NewTask> tasks) {
            if (calls_++ == 0) {
                entered_.release();
                open_.acquire();
            }
            return work(tasks);
        };
    }
    void WaitEntered() { entered_.acquire(); }
    void Open() { open_.release(); }
    int calls() const { return calls_; }

private:
    std::binary_semaphore entered_{0}, open_{0};
    std::atomic<int> calls_{0};
};

// Submits `count` single tasks from as many threads behind a first one that is held at the gate.
std::vector<std::string> Gather(
    GroupSubmit& group, Gate& gate, int count, const std::string& padding = {}
) {
    std::counting_semaphore<> lined_up{0};
    base::SetTestPointListener([&](std::string_view name) {
        if (name == "store_postgres.lined_up") lined_up.release();
    });
    std::vector<std::string> answers(static_cast<std::size_t>(count) + 1);
    auto submit = [&](std::size_t i) {
        NewTask task{.type = "t", .input = std::to_string(i) + padding};
        try {
            answers[i] = group.Submit({&task, 1}).at(0).message;
        } catch (const std::exception& error) {
            answers[i] = error.what();
        }
    };
    std::jthread first(submit, 0);
    gate.WaitEntered();
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i <= static_cast<std::size_t>(count); ++i) {
        others.emplace_back(submit, i);
    }
    for (int i = 0; i <= count; ++i) lined_up.acquire();  // the first one too
    gate.Open();
    others.clear();
    first.join();
    base::SetTestPointListener({});
    return answers;
}

TEST(GroupSubmit, ThoseThatGatherShareATransaction) {
    Gate gate;
    GroupSubmit group(gate.Around(Answer), 1);
    std::vector<std::string> answers = Gather(group, gate, 20);
    for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], std::to_string(i));
    EXPECT_EQ(gate.calls(), 2);
}

TEST(GroupSubmit, ManyCallersAndTwoLeadersLoseNobody) {
    std::atomic<std::size_t> most{0}, transactions{0};
    GroupSubmit group(
        [&](std::span<const NewTask> tasks) {
            ++transactions;
            std::size_t known = most;
            while (known < tasks.size() && !most.compare_exchange_weak(known, tasks.size())) {
            }
            std::this_thread::yield();
            return Answer(tasks);
        },
        2
    );
    constexpr int kThreads = 12, kEach = 400;
    std::atomic<int> right{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                // Some are too large to share: they leave others in the line.
                std::size_t size = i % 50 == 0 ? 3 << 20 : 0;
                NewTask task{.type = "t", .input = std::to_string(t * kEach + i)};
                task.input.resize(task.input.size() + size, 'x');
                if (group.Submit({&task, 1}).at(0).message == task.input) ++right;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(right, kThreads * kEach);
    EXPECT_GT(most, 1u);
    EXPECT_LT(transactions, static_cast<std::size_t>(kThreads * kEach));
}

// Two half groups cost more than a whole one: few wait for the first, many do not.
TEST(GroupSubmit, ASecondTransactionIsForManyTasks) {
    for (bool many : {false, true}) {
        Gate gate;
        GroupSubmit group(gate.Around(Answer), 2, std::chrono::hours{1});
        std::counting_semaphore<> lined_up{0}, answered{0};
        base::SetTestPointListener([&](std::string_view name) {
            if (name == "store_postgres.lined_up") lined_up.release();
        });
        auto submit = [&](std::size_t tasks) {
            std::vector<NewTask> some(tasks, NewTask{.type = "t"});
            group.Submit(some);
            answered.release();
        };
        std::jthread first(submit, 1);
        gate.WaitEntered();
        lined_up.acquire();
        std::jthread second(submit, 60), third(submit, many ? 60 : 1);
        for (int i = 0; i < 2; ++i) lined_up.acquire();
        if (many) {  // they are answered although the first is not
            for (int i = 0; i < 2; ++i) answered.acquire();
        } else {
            EXPECT_EQ(gate.calls(), 1);
        }
        gate.Open();
        first.join();
        second.join();
        third.join();
        base::SetTestPointListener({});
        EXPECT_EQ(gate.calls(), 2);
    }
}

// Whatever holds it up, those who come later do not all wait for it.
TEST(GroupSubmit, WhoComesWhenTheFirstIsLateDoesNotWaitForIt) {
    Gate gate;
    GroupSubmit group(gate.Around(Answer), 2, Duration::zero());
    NewTask task{.type = "t"};
    std::jthread first([&] { group.Submit({&task, 1}); });
    gate.WaitEntered();
    EXPECT_THAT(group.Submit({&task, 1}), SizeIs(1));
    gate.Open();
}

// Also one that came before it was late, and after others were late before.
TEST(GroupSubmit, WhoWaitsForOneThatHasBecomeLateLeadsAfterAWhile) {
    std::binary_semaphore entered{0}, open{0};
    GroupSubmit group(
        [&](std::span<const NewTask> tasks) {
            if (tasks.front().input == "held") {
                entered.release();
                open.acquire();
            }
            return Answer(tasks);
        },
        2
    );
    for (int round = 0; round < 3; ++round) {
        NewTask slow{.type = "t", .input = "held"}, other{.type = "t", .input = "other"};
        std::jthread first([&] { group.Submit({&slow, 1}); });
        entered.acquire();
        EXPECT_THAT(group.Submit({&other, 1}), SizeIs(1)) << "although the first is still held";
        open.release();
    }
}

TEST(GroupSubmit, AnUnknownCommitIsEverybodysWhoWasInIt) {
    Gate gate;
    GroupSubmit group(
        gate.Around([](std::span<const NewTask>) -> std::vector<SubmitReply> {
            throw CommitUnknown("unknown");
        }),
        1
    );
    for (const std::string& answer : Gather(group, gate, 5)) EXPECT_EQ(answer, "unknown");
}

TEST(GroupSubmit, ABadMemberFailsAlone) {
    Gate gate;
    GroupSubmit group(
        gate.Around([](std::span<const NewTask> tasks) {
            for (const NewTask& task : tasks) {
                if (task.input == "3") throw std::runtime_error("bad");
            }
            return Answer(tasks);
        }),
        1
    );
    std::vector<std::string> answers = Gather(group, gate, 6);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        EXPECT_EQ(answers[i], i == 3 ? "bad" : std::to_string(i));
    }
}

TEST(GroupSubmit, WhatSomebodyElseHoldsHoldsUpOnlyWhoWantsIt) {
    Gate gate;
    GroupSubmit group(
        gate.Around([](std::span<const NewTask> tasks) {
            for (const NewTask& task : tasks) {
                if (task.input == "3") throw LockHeld("held");
            }
            return Answer(tasks);
        }),
        1
    );
    std::vector<std::string> answers = Gather(group, gate, 6);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        EXPECT_EQ(answers[i], i == 3 ? "held" : std::to_string(i));
    }
}

TEST(GroupSubmit, LargeRequestsDoNotShareATransaction) {
    Gate gate;
    std::atomic<std::size_t> most{0};
    GroupSubmit group(
        gate.Around([&](std::span<const NewTask> tasks) {
            most = std::max(most.load(), tasks.size());
            return Answer(tasks);
        }),
        1
    );
    Gather(group, gate, 6, std::string(1 << 20, 'x'));
    EXPECT_LE(most.load(), 4u) << "of a megabyte and more each";
}

TEST(GroupSubmit, ALargeBatchGoesByItself) {
    int calls = 0;
    GroupSubmit group(
        [&](std::span<const NewTask> tasks) {
            ++calls;
            return Answer(tasks);
        },
        1
    );
    std::vector<NewTask> many(500);
    EXPECT_THAT(group.Submit(many), SizeIs(500));
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace stint::store::pg
