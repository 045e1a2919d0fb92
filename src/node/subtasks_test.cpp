// Subtasks as a program sees them: made, waited for, their outputs and failures read.
#include <gmock/gmock.h>
#include <stint/stint.h>
#include <stint/testing.h>

namespace stint {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::Submitted;
using testing::TestEngine;

constexpr Task<int, int> kSquare{"square", {.retry = Retry::Times(1)}};
constexpr Task<std::vector<int>, int> kSum{"sum"};

int Square(Context&, int in) {
    if (in < 0) throw Permanent("negative");
    return in * in;
}

// Sums the squares of its input, each made by a subtask.
struct SumOfSquares {
    Outcome<int> Start(Context& context, const std::vector<int>& in) {
        for (int one : in) context.Subtask(kSquare, one);
        return Blocked{};
    }
    Outcome<int> Resume(Context& context, const std::vector<int>&) {
        int sum = 0;
        for (int one : context.OutputsOf(kSquare)) sum += one;
        return sum;
    }
};

std::string StateOf(TestEngine& engine, TaskId task) {
    return engine.engine().Get(task).value().state;
}

TEST(Subtasks, TheParentResumesWithTheirOutputs) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, SumOfSquares{});
    auto run = engine.Submit(kSum, {1, 2, 3}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 14);
    EXPECT_THAT(engine.OfType("square"), SizeIs(3));
    TaskInfo parent = engine.engine().Get(run.id()).value();
    EXPECT_EQ(parent.attempt, 1) << "waiting costs no attempt";
}

TEST(Subtasks, WithoutAnErrorStageTheTaskFailsAsItsSubtaskDid) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, SumOfSquares{});
    auto run = engine.Submit(kSum, {1, -2, 3}).value();
    engine.RunUntilIdle();
    TaskInfo parent = engine.engine().Get(run.id()).value();
    EXPECT_EQ(parent.state, "dead");
    EXPECT_THAT(parent.error, HasSubstr("(square) failed: negative"));
    EXPECT_EQ(parent.error_class, "stint::Permanent");
}

TEST(Subtasks, AnErrorStageDecidesForItself) {
    struct Lenient : SumOfSquares {
        Outcome<int> Error(
            Context& context, const std::vector<int>&, const SubtaskFailure& failure
        ) {
            EXPECT_EQ(failure.message, "negative");
            EXPECT_EQ(failure.type, "square");
            EXPECT_FALSE(failure.cancelled);
            int sum = 0;
            for (const WaitedTask& one : context.waited()) {
                EXPECT_TRUE(one.finished);
                sum += context.OutputOf(kSquare, one.id).value_or(100);
                EXPECT_EQ(context.FailureOf(one.id).has_value(), !one.complete);
            }
            return sum;
        }
    };
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, Lenient{});
    auto run = engine.Submit(kSum, {1, -2, 3}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 110);
}

TEST(Subtasks, WithoutAResumeStageItStartsAgain) {
    struct Again {
        Outcome<int> Start(Context& context, const std::vector<int>&) {
            if (context.stage() == Stage::kResume) return context.OutputsOf(kSquare).at(0);
            context.Subtask(kSquare, 5);
            return Blocked{};
        }
    };
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, Again{});
    auto run = engine.Submit(kSum, {}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 25);
}

TEST(Subtasks, AFunctionMayBlockAndIsCalledAgain) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, [](Context& context, const std::vector<int>& in) -> Outcome<int> {
        if (context.stage() == Stage::kStart) {
            TaskId id = context.Subtask(kSquare, in.at(0), {.priority = 200});
            return Blocked{.on = {id}};
        }
        return context.OutputOf(kSquare, context.waited().at(0).id).value();
    });
    auto run = engine.Submit(kSum, {6}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 36);
    EXPECT_EQ(engine.OfType("square").at(0).priority, 200);
}

TEST(Subtasks, FailFastAndCancelRest) {
    struct Fast : SumOfSquares {
        Outcome<int> Start(Context& context, const std::vector<int>& in) {
            SumOfSquares::Start(context, in);
            return Blocked{.on_failure = OnFailure::kCancelRest};
        }
        Outcome<int> Error(Context& context, const std::vector<int>&, const SubtaskFailure&) {
            int left = 0;
            for (const WaitedTask& one : context.waited()) left += one.complete ? 0 : 1;
            return left;
        }
    };
    TestEngine engine;
    engine.Handle(kSquare, Square);
    engine.Handle(kSum, Fast{});
    auto run = engine.Submit(kSum, {-1, 2, 3}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(run.Wait().value(), 3);
    std::vector<std::string> states;
    for (const Submitted& one : engine.OfType("square")) states.push_back(one.state);
    EXPECT_THAT(states, ElementsAre("dead", "cancelled", "cancelled"));
}

TEST(Subtasks, ThatNobodyWaitsForAreAFailureThatSaysSo) {
    TestEngine engine;
    engine.Handle(kSum, [](Context& context, const std::vector<int>&) {
        context.Subtask(kSquare, 1);
        return 1;
    });
    auto run = engine.Submit(kSum, {}).value();
    engine.RunUntilIdle();
    TaskInfo task = engine.engine().Get(run.id()).value();
    EXPECT_EQ(task.error_class, "subtasks_not_waited_for");
    EXPECT_THAT(engine.OfType("square"), SizeIs(0));
}

TEST(Subtasks, BlockedByNothingIsAFailureThatSaysSo) {
    TestEngine engine;
    engine.Handle(kSum, [](Context&, const std::vector<int>&) -> Outcome<int> {
        return Blocked{};
    });
    auto run = engine.Submit(kSum, {}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(engine.engine().Get(run.id()).value().error_class, "blocked_by_nothing");
}

TEST(Subtasks, WhatCanNeverBeSubmittedIsThrownWhereItIsAsked) {
    TestEngine engine;
    engine.Handle(kSum, [](Context& context, const std::vector<int>&) -> Outcome<int> {
        context.Subtask(kSquare, 1, {.priority = 1000});
        return Blocked{};
    });
    auto run = engine.Submit(kSum, {}).value();
    engine.RunUntilIdle();
    TaskInfo task = engine.engine().Get(run.id()).value();
    EXPECT_EQ(task.error_class, "std::invalid_argument");
    EXPECT_THAT(task.error, HasSubstr("priority is 1000"));
}

TEST(Subtasks, AWaitThatTheStoreRefusesFailsTheAttempt) {
    TestEngine engine;
    engine.Handle(kSum, [](Context&, const std::vector<int>&) -> Outcome<int> {
        return Blocked{.on = {TaskId(987'654)}};
    });
    auto run = engine.Submit(kSum, {}, {.retry = Retry::Never()}).value();
    engine.RunUntilIdle();
    TaskInfo task = engine.engine().Get(run.id()).value();
    EXPECT_EQ(task.state, "dead");
    EXPECT_EQ(task.error_class, "subtask_refused");
    EXPECT_THAT(task.error, HasSubstr("987654"));
}

TEST(Subtasks, ATaskMayStartAfterOthers) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    auto first = engine.Submit(kSquare, 2, {.delay = 1h}).value();
    auto second = engine.Submit(kSquare, 3, {.after = After{.tasks = {first.id()}}}).value();
    engine.RunUntilIdle();
    EXPECT_EQ(StateOf(engine, second.id()), "blocked");
    EXPECT_EQ(engine.engine().Get(second.id()).value().waiting_for, 1);
    engine.AdvanceTime(2h);
    engine.RunUntilIdle();
    EXPECT_EQ(second.Wait().value(), 9);
}

TEST(Graphs, RunInTheirOrder) {
    TestEngine engine;
    std::vector<int> order;
    engine.Handle(kSquare, [&](Context&, int in) {
        order.push_back(in);
        return in;
    });
    Graph graph;
    Graph::Node first = graph.Add(kSquare, 1);
    Graph::Node last = graph.Add(kSquare, 3, {}, {.tasks = {first}});
    Graph::Node second = graph.Add(kSquare, 2, {}, {.tasks = {first}});
    graph.Depend(last, second);
    std::vector<TaskId> ids = engine.engine().SubmitGraph(graph).value();
    ASSERT_THAT(ids, SizeIs(3));
    engine.RunUntilIdle();
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(Graphs, ACycleIsRefusedAndNothingIsStored) {
    TestEngine engine;
    Graph graph;
    Graph::Node a = graph.Add(kSquare, 1);
    Graph::Node b = graph.Add(kSquare, 2, {}, {.tasks = {a}});
    graph.Add(kSquare, 3);
    graph.Depend(a, b);
    auto ids = engine.engine().SubmitGraph(graph);
    ASSERT_FALSE(ids);
    EXPECT_THAT(ids.error().message, HasSubstr("cycle"));
    EXPECT_THAT(engine.All(), SizeIs(0));
}

TEST(Graphs, ABatchHasItsCallbackWhenAllAreDone) {
    TestEngine engine;
    engine.Handle(kSquare, Square);
    constexpr Task<std::string, int> kCallback{"callback"};
    engine.Handle(kCallback, [](Context& context, const std::string&) {
        int complete = 0;
        for (const WaitedTask& one : context.waited()) complete += one.complete ? 1 : 0;
        return complete;
    });
    Graph graph;
    std::vector<Graph::Node> batch;
    for (int in : {1, -1, 2}) batch.push_back(graph.Add(kSquare, in));
    graph.Add(kCallback, "done", {}, {.tasks = batch, .need_success = false});
    std::vector<TaskId> ids = engine.engine().SubmitGraph(graph).value();
    engine.RunUntilIdle();
    EXPECT_EQ(engine.engine().Find(kCallback, ids.back()).Wait().value(), 2);
}

// The first of the batch fails, the second succeeds, the third would come later.
TEST(Graphs, ACallbackOnAnyComesWithTheFirstSuccessOrWithTheFirstEnd) {
    constexpr Task<std::string, std::string> kCallback{"callback"};
    for (bool need_success : {true, false}) {
        TestEngine engine;
        engine.Handle(kSquare, Square);
        engine.Handle(kCallback, [](Context& context, const std::string&) {
            std::string seen;
            for (const WaitedTask& one : context.waited()) {
                seen += one.complete ? 'c' : one.finished ? 'f' : '-';
            }
            return seen;
        });
        Graph graph;
        std::vector<Graph::Node> batch;
        for (int in : {-1, 1, 2}) {
            SubmitOptions options;
            if (in > 0) options.delay = std::chrono::hours{in};
            batch.push_back(graph.Add(kSquare, in, options));
        }
        graph.Add(
            kCallback, "done", {}, {.tasks = batch, .any = true, .need_success = need_success}
        );
        std::vector<TaskId> ids = engine.engine().SubmitGraph(graph).value();
        auto callback = engine.engine().Find(kCallback, ids.back());
        engine.RunUntilIdle();
        EXPECT_EQ(callback.done(), !need_success);
        engine.AdvanceTime(std::chrono::minutes{61});
        engine.RunUntilIdle();
        EXPECT_EQ(callback.Wait().value(), need_success ? "fc-" : "f--");
    }
}

}  // namespace
}  // namespace stint
