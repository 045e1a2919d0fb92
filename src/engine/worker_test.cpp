// The worker's rules, step by step, on virtual time.
#include "engine/worker.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <system_error>

#include "base/planted_bug.h"
#include "engine/context.h"
#include "support/engine_rig.h"

namespace stint::engine {
namespace {

using model::AttemptEnd;
using model::State;
using model::WorkerState;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Worker, RunsATaskFromSubmitToComplete) {
    Rig rig;
    rig.Handle("echo", [](Context&, std::string_view input) { return Done(std::string(input)); });
    rig.Open();
    TaskId id = rig.Submit("echo", {.input = R"({"a":1})"});
    EXPECT_EQ(rig.Drive(), 1);
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.Get(id).output, R"({"a":1})");
    EXPECT_EQ(rig.metrics.completed, 1u);
}

TEST(Worker, StartUpRecoversBeforeItClaims) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Submit("t");
    rig.Open();
    auto order = rig.store.order();
    auto at = [&](std::string_view op) {
        return std::find(order.begin(), order.end(), op) - order.begin();
    };
    EXPECT_LT(at("publish"), at("open"));
    EXPECT_LT(at("open"), at("reclaim"));
    EXPECT_LT(at("reclaim"), at("claim"));
}

TEST(Worker, ExclusiveStartTakesBackWhatTheDeadProcessHeldAtOnce) {
    Rig rig;
    rig.options.slots = 1;
    int runs = 0;
    rig.Handle("t", [&](Context&, std::string_view) { return ++runs, Done(); });
    TaskId normal = rig.Submit("t");
    rig.Open();
    rig.worker->ClaimOnce();
    rig.worker.reset();  // dies without a word
    TaskId other = rig.Submit("t");
    auto cancelled = rig.memory.Cancel(std::span(&normal, 1), "test", "changed my mind");
    EXPECT_EQ(cancelled.front().kind, store::CancelReply::Kind::kRequested);
    rig.options.exclusive = true;
    rig.Open();
    EXPECT_EQ(rig.StateOf(normal), State::kCancelled) << "orphaned cancellation is honoured";
    rig.Drive();
    EXPECT_EQ(rig.StateOf(other), State::kComplete);
    EXPECT_EQ(runs, 1);
}

TEST(Worker, WithoutExclusivityALivingSessionKeepsItsTasks) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    TaskId id = rig.Submit("t");
    rig.Open();
    rig.worker->ClaimOnce();
    rig.worker.reset();
    rig.Open();
    rig.Drive();
    EXPECT_EQ(rig.StateOf(id), State::kInProgress);
    rig.clock.Advance(31s);
    rig.worker->RenewOnce();  // it was idle too long and must begin anew
    rig.Drive();
    EXPECT_EQ(rig.Get(id).attempt, 1);
    EXPECT_TRUE(rig.Get(id).suspect);
    rig.clock.Advance(1s);  // the delay after a crash
    rig.Drive();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

TEST(Worker, StateMachineShowsWhatTheLoopDoes) {
    Rig rig;
    rig.options.slots = 1;
    rig.Handle("t", [&](Context&, std::string_view) {
        EXPECT_EQ(rig.worker->state(), WorkerState::kProcessing);
        return Done();
    });
    rig.Make();
    EXPECT_EQ(rig.worker->state(), WorkerState::kStartup);
    rig.worker->Open();
    EXPECT_EQ(rig.worker->state(), WorkerState::kIdle);
    rig.Submit("t");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->state(), WorkerState::kProcessing);
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.worker->state(), WorkerState::kPolling);
    rig.worker->RenewOnce();
    EXPECT_EQ(rig.memory.Sessions().front().worker_state, "polling");
    rig.worker->Drain();
    EXPECT_EQ(rig.worker->state(), WorkerState::kStopped);
}

// ---- polling ----

TEST(Polling, GrowsFromMinToMaxAndIsJittered) {
    Rig rig;
    rig.options.poll = {50ms, 400ms};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    std::vector<double> waits;
    for (int i = 0; i < 6; ++i) {
        auto next = rig.worker->ClaimOnce();
        waits.push_back(std::chrono::duration<double, std::milli>(next - rig.clock.Now()).count());
    }
    EXPECT_GE(waits[0], 40);  // the second poll: Open made the first
    EXPECT_LE(waits[0], 130);
    EXPECT_GE(waits[5], 0.8 * 400 - 1);
    EXPECT_LE(waits[5], 1.2 * 400 + 1);
    EXPECT_NE(waits[4], waits[5]);
}

TEST(Polling, RespectsTheNextDueTime) {
    Rig rig;
    rig.options.poll = {1s, 60s};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.Submit("t", {.delay = 300ms});
    EXPECT_EQ(rig.worker->ClaimOnce() - rig.clock.Now(), 300ms);
}

TEST(Polling, PlantedWakeOnlyMissesWhatNoHintTold) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    auto run = [&] {
        rig.Open();
        model::NewTask task;
        task.type = "t";
        rig.memory.Submit(std::span(&task, 1));  // another process, whose hint got lost
        return rig.Drive();
    };
    EXPECT_EQ(run(), 1);
    base::PlantBug(base::Bug::kWakeOnly);
    EXPECT_EQ(run(), 0);
    base::PlantBug(base::Bug::kNone);
}

TEST(Claiming, TakesAtMostTheFreeSlots) {
    Rig rig;
    rig.options.slots = 3;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    for (int i = 0; i < 5; ++i) rig.Submit("t");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3);
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3);
    rig.worker->RunOneAttempt();
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 3);
    EXPECT_EQ(rig.Drive(), 4);
}

TEST(Claiming, AsksForMuchOnlyWhereMuchWasFound) {
    Rig rig;
    rig.options.slots = 1;
    rig.options.claim_ahead = 1'000;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    for (int i = 0; i < 300; ++i) rig.Submit("t");
    auto holds_after_a_claim = [&] {
        base::Instant next = rig.worker->ClaimOnce();
        return std::pair(rig.worker->running(), next <= rig.clock.Now());
    };
    EXPECT_EQ(holds_after_a_claim(), std::pair(64, true)) << "there is more: again at once";
    EXPECT_EQ(holds_after_a_claim(), std::pair(192, true));
    EXPECT_EQ(holds_after_a_claim(), std::pair(300, false)) << "that was all";
    EXPECT_EQ(rig.Drive(), 300);
}

TEST(Claiming, RetiresASessionThatMayHoldUnknownLeases) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    SessionId before = rig.worker->session();
    TaskId id = rig.Submit("t");
    rig.store.Next("claim", Trouble::kUnknownAfter);
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.StateOf(id), State::kInProgress);
    EXPECT_EQ(rig.worker->state(), WorkerState::kErrorWait);
    rig.clock.Advance(1s);
    rig.worker->ClaimOnce();
    EXPECT_TRUE(rig.worker->session().valid());
    EXPECT_NE(rig.worker->session(), before);
    // The retired one holds nothing that we know of: it is left to expire and its task comes back,
    // neither suspect nor with an attempt used up.
    rig.worker->RenewOnce();
    rig.clock.Advance(1s);
    rig.worker->SweepOnce();
    EXPECT_EQ(rig.Drive(), 1);
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.Get(id).attempt, 1);
}

TEST(Claiming, ARetiredSessionIsRenewedWhileItsAttemptsRun) {
    Rig rig;
    rig.options.slots = 3;
    TaskId first;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    first = rig.Submit("t");
    rig.worker->ClaimOnce();  // held, not run yet
    rig.store.Next("claim", Trouble::kUnknownAfter);
    rig.Submit("t");
    rig.worker->ClaimOnce();
    for (int i = 0; i < 10; ++i) {
        rig.clock.Advance(9s);
        rig.worker->RenewOnce();
        rig.worker->WatchOnce();
        rig.worker->SweepOnce();
    }
    EXPECT_EQ(rig.StateOf(first), State::kInProgress);
    rig.Drive();
    EXPECT_EQ(rig.StateOf(first), State::kComplete);
    EXPECT_EQ(rig.metrics.lost, 0u);
}

// ---- how attempts end ----

struct EndRig : Rig {
    model::TaskRecord Run(Handler handler, model::NewTask task = {}) {
        Handle("t", std::move(handler));
        Open();
        id = Submit("t", std::move(task));
        Drive();
        return Get(id);
    }
    TaskId id;
};

TEST(Ends, ExceptionsAreClassified) {
    auto state = [](Handler handler) {
        EndRig rig;
        return rig.Run(std::move(handler)).state;
    };
    auto thrower = [](auto error) {
        return [error](Context&, std::string_view) -> Outcome<std::string> { throw error; };
    };
    EXPECT_EQ(state(thrower(Retryable("x"))), State::kError);
    EXPECT_EQ(state(thrower(std::system_error(EIO, std::generic_category()))), State::kError);
    EXPECT_EQ(state(thrower(std::ios_base::failure("x"))), State::kError);
    EXPECT_EQ(state(thrower(Permanent("x"))), State::kDead);
    EXPECT_EQ(state(thrower(DecodeError("x"))), State::kDead);
    EXPECT_EQ(state(thrower(std::logic_error("x"))), State::kDead);
    EXPECT_EQ(state(thrower(42)), State::kDead);
}

TEST(Ends, RetryOnAllRetriesEveryException) {
    EndRig rig;
    model::RetryPolicy all;
    all.on = model::RetryPolicy::On::kAll;
    auto record = rig.Run(
        [](Context&, std::string_view) -> Outcome<std::string> { throw std::logic_error("x"); },
        {.retry = all}
    );
    EXPECT_EQ(record.state, State::kError);
}

TEST(Ends, TheErrorHasItsClassAndMessage) {
    EndRig rig;
    auto record = rig.Run([](Context&, std::string_view) -> Outcome<std::string> {
        throw std::out_of_range("seven");
    });
    EXPECT_EQ(record.error->klass, "std::out_of_range");
    EXPECT_EQ(record.error->message, "seven");
    EXPECT_FALSE(record.error->retryable);
}

TEST(Ends, TheStackIsTheChainOfNestedExceptions) {
    EndRig rig;
    auto record = rig.Run([](Context&, std::string_view) -> Outcome<std::string> {
        try {
            try {
                throw std::out_of_range("seven");
            } catch (...) {
                std::throw_with_nested(std::runtime_error("reading the index"));
            }
        } catch (...) {
            std::throw_with_nested(Retryable("opening the album"));
        }
    });
    EXPECT_EQ(record.error->message, "opening the album");
    EXPECT_EQ(record.error->klass, "stint::Retryable");
    EXPECT_EQ(
        record.error->stack,
        "stint::Retryable: opening the album\n"
        "caused by std::runtime_error: reading the index\n"
        "caused by std::out_of_range: seven"
    );
}

TEST(Ends, AnEndlessChainOfExceptionsIsBounded) {
    EndRig rig;
    std::function<void(int)> fail = [&](int depth) {
        if (depth == 0) throw std::runtime_error("the root");
        try {
            fail(depth - 1);
        } catch (...) {
            std::throw_with_nested(std::runtime_error(std::string(200, 'x')));
        }
    };
    auto record = rig.Run([&](Context&, std::string_view) -> Outcome<std::string> {
        fail(200);
        return Done();
    });
    EXPECT_LE(record.error->stack.size(), model::limits::kErrorStack);
    EXPECT_GT(record.error->stack.size(), model::limits::kErrorStack / 2);
}

TEST(Ends, AFailedAttemptIsLoggedWithWhatOneNeedsToFindIt) {
    EndRig rig;
    std::map<std::string, std::string> fields;
    rig.options.log = [&](const LogRecord& record) {
        if (record.message != "attempt failed") return;
        for (const auto& [name, value] : record.fields) fields[std::string(name)] = value;
    };
    auto record = rig.Run([](Context&, std::string_view) -> Outcome<std::string> {
        try {
            throw std::logic_error("beneath");
        } catch (...) {
            std::throw_with_nested(std::out_of_range("seven"));
        }
    });
    EXPECT_THAT(fields["stack"], HasSubstr("beneath"));
    EXPECT_EQ(fields["stack"], record.error->stack);
    EXPECT_EQ(fields["task"], rig.id.ToString());
    EXPECT_EQ(fields["type"], "t");
    EXPECT_EQ(fields["attempt"], "1");
    EXPECT_EQ(fields["class"], "std::out_of_range");
    EXPECT_EQ(fields["error"], "seven");
}

TEST(Ends, LongErrorsAreCutBetweenCharacters) {
    EndRig rig;
    std::string umlauts;
    for (int i = 0; i < 10'000; ++i) umlauts += "ü";
    auto record = rig.Run([&](Context&, std::string_view) -> Outcome<std::string> {
        throw std::runtime_error("a" + umlauts);
    });
    EXPECT_LE(record.error->message.size(), model::limits::kErrorMessage);
    EXPECT_THAT(record.error->message, HasSubstr("ü… ["));
    EXPECT_THAT(record.error->message, HasSubstr(" bytes cut]"));
}

TEST(Ends, AnOutputOverTheLimitIsAFailureThatSaysSo) {
    EndRig rig;
    auto record = rig.Run([](Context&, std::string_view) {
        return Done("\"" + std::string(model::limits::kOutput, 'x') + "\"");
    });
    EXPECT_EQ(record.state, State::kDead);
    EXPECT_EQ(record.error->klass, "output_too_large");
    EXPECT_THAT(record.error->message, HasSubstr("1048578 bytes, the limit is 1048576"));
}

TEST(Ends, AnOutputThatIsNotJsonIsAFailure) {
    EndRig rig;
    EXPECT_EQ(
        rig.Run([](Context&, std::string_view) { return Done("{oops"); }).state, State::kDead
    );
}

TEST(Ends, SnoozeRefundsTheAttempt) {
    EndRig rig;
    int runs = 0;
    rig.Run([&](Context&, std::string_view) -> Outcome<std::string> {
        if (++runs == 1) return Outcome<std::string>(Snooze{10s});
        return Done();
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kOpen);
    EXPECT_EQ(rig.Get(rig.id).attempt, 0);
    rig.clock.Advance(10s);
    rig.Drive();
    EXPECT_EQ(rig.StateOf(rig.id), State::kComplete);
    EXPECT_EQ(rig.Get(rig.id).attempt, 1);
}

TEST(Ends, BackgroundWaitsForTheCompletionToken) {
    EndRig rig;
    std::string token;
    auto record = rig.Run([&](Context& context, std::string_view) {
        token = context.completion_token();
        return Outcome<std::string>(Background{"a human", 0s});
    });
    EXPECT_EQ(record.state, State::kBackground);
    EXPECT_EQ(record.reason, "a human");
    store::BackgroundFinish finish;
    finish.task = rig.id;
    finish.token = LeaseToken::Parse(token);
    finish.output = "7";
    ASSERT_TRUE(rig.memory.FinishBackground(finish));
    EXPECT_EQ(rig.Get(rig.id).output, "7");
}

TEST(Ends, WarnMarksTheCompletion) {
    EndRig rig;
    auto record = rig.Run([](Context& context, std::string_view) {
        context.Warn("half of them failed");
        return Done();
    });
    EXPECT_EQ(record.state, State::kComplete);
    EXPECT_TRUE(record.warning);
}

TEST(Ends, RetriesUntilAttemptsAreExhausted) {
    EndRig rig;
    model::RetryPolicy twice;
    twice.max_attempts = 2;
    rig.Run(
        [](Context&, std::string_view) -> Outcome<std::string> {
            return Outcome<std::string>(Failed{"no", true});
        },
        {.retry = twice}
    );
    EXPECT_EQ(rig.StateOf(rig.id), State::kError);
    rig.clock.Advance(1h);
    rig.worker->RenewOnce();
    rig.Drive();
    EXPECT_EQ(rig.StateOf(rig.id), State::kDead);
    EXPECT_EQ(rig.memory.Attempts(rig.id).size(), 2u);
}

TEST(Ends, ContextShowsTheAttempt) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view input) {
        EXPECT_EQ(context.type(), "t");
        EXPECT_EQ(context.attempt(), 1);
        EXPECT_EQ(context.fencing_number(), 1);
        EXPECT_EQ(context.tenant(), kDefaultTenant);
        EXPECT_FALSE(context.stop().stop_requested());
        EXPECT_EQ(context.why(), StopReason::kNone);
        EXPECT_EQ(context.idempotency_key(), "task-" + context.id().ToString());
        EXPECT_EQ(input, "null");
        return Done();
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kComplete);
}

TEST(Ends, EvidenceOfAProcessGoesToTheAttempt) {
    EndRig rig;
    rig.Run([](Context& context, std::string_view) -> Outcome<std::string> {
        Record(context, {.exit_code = 3, .exit_signal = {}, .stderr_tail = "boo"});
        return Outcome<std::string>(Failed{"exit 3", false, "exit"});
    });
    auto attempt = rig.memory.Attempts(rig.id).back();
    EXPECT_EQ(attempt.exit_code, 3);
    EXPECT_EQ(attempt.stderr_tail, "boo");
}

// ---- completing in a transaction ----

TEST(CompleteIn, ACommittedTransactionIsTheCompletion) {
    EndRig rig;
    auto record = rig.Run([&](Context& context, std::string_view) {
        auto wrote = rig.memory.Write([&](store::Transaction& inner) -> Result<void> {
            Transaction transaction(&inner);
            return context.CompleteIn(transaction, Json{"5"});
        });
        EXPECT_TRUE(wrote);
        return Done("\"ignored\"");
    });
    EXPECT_EQ(record.state, State::kComplete);
    EXPECT_EQ(record.output, "5");
    EXPECT_EQ(rig.metrics.completed, 1u);
    EXPECT_EQ(rig.metrics.lost, 0u);
}

TEST(CompleteIn, ARolledBackTransactionIsAFailure) {
    EndRig rig;
    auto record = rig.Run([&](Context& context, std::string_view) {
        auto wrote = rig.memory.Write([&](store::Transaction& inner) -> Result<void> {
            Transaction transaction(&inner);
            EXPECT_TRUE(context.CompleteIn(transaction));
            return Error{Code::kConflict, "the host's own write failed"};
        });
        EXPECT_FALSE(wrote);
        return Done();
    });
    EXPECT_EQ(record.state, State::kError);
    EXPECT_THAT(record.error->message, HasSubstr("was not committed"));
}

TEST(CompleteIn, IsRefusedWhenTheLeaseIsLost) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view) {
        rig.clock.Advance(31s);
        rig.memory.Reclaim({});
        auto wrote = rig.memory.Write([&](store::Transaction& inner) -> Result<void> {
            Transaction transaction(&inner);
            return context.CompleteIn(transaction);
        });
        EXPECT_FALSE(wrote);
        EXPECT_EQ(wrote.error().code, Code::kLeaseLost);
        return Done();
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kOpen);
    EXPECT_EQ(rig.metrics.lost, 1u);
}

// ---- stopping attempts ----

TEST(Stopping, ACancelReachesTheHandlerWithTheHeartbeat) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view) -> Outcome<std::string> {
        TaskId id = context.id();
        rig.memory.Cancel(std::span(&id, 1), "test", "no longer needed");
        EXPECT_FALSE(context.stop().stop_requested());
        rig.worker->RenewOnce();
        EXPECT_TRUE(context.stop().stop_requested());
        EXPECT_EQ(context.why(), StopReason::kCancelled);
        throw std::runtime_error("stopped in the middle");
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kCancelled);
    EXPECT_EQ(rig.memory.Attempts(rig.id).back().end, AttemptEnd::kCancelled);
}

TEST(Stopping, WorkThatIsDoneStaysDoneInSpiteOfACancel) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view) {
        TaskId id = context.id();
        rig.memory.Cancel(std::span(&id, 1), "test", "too late");
        rig.worker->RenewOnce();
        return Done("1");
    });
    EXPECT_EQ(rig.StateOf(rig.id), State::kComplete);
}

TEST(Stopping, ATimeoutIsRetryableAndSaysItsTime) {
    EndRig rig;
    rig.Run(
        [&](Context& context, std::string_view) -> Outcome<std::string> {
            rig.clock.Advance(4s);
            rig.worker->WatchOnce();
            EXPECT_FALSE(context.stop().stop_requested());
            rig.clock.Advance(1s);
            rig.worker->WatchOnce();
            EXPECT_EQ(context.why(), StopReason::kTimeout);
            return Outcome<std::string>(Failed{"stopped", false});
        },
        {.timeout = 5s}
    );
    auto record = rig.Get(rig.id);
    EXPECT_EQ(record.state, State::kError);
    EXPECT_EQ(record.error->klass, "timeout");
    EXPECT_EQ(rig.memory.Attempts(rig.id).back().end, AttemptEnd::kTimedOut);
    EXPECT_EQ(rig.metrics.timed_out, 1u);
}

TEST(Stopping, AHungHandlerIsSettledFencedAndItsSlotIsNotReused) {
    EndRig rig;
    rig.options.slots = 3;
    rig.options.lease = model::LeasePolicy::Patient();
    std::string unhealthy;
    rig.options.on_unhealthy = [&](std::string_view why) { unhealthy = why; };
    rig.Run(
        [&](Context& context, std::string_view) {
            if (context.attempt() > 1) return Done();
            rig.clock.Advance(15s);  // timeout + grace
            rig.worker->WatchOnce();
            rig.worker->SettleOnce();
            EXPECT_EQ(rig.StateOf(context.id()), State::kError);
            return Done("\"too late\"");
        },
        {.timeout = 5s}
    );
    EXPECT_EQ(rig.StateOf(rig.id), State::kError) << "the late output was not accepted";
    EXPECT_EQ(rig.metrics.hung, 1u);
    EXPECT_EQ(rig.metrics.lost, 0u) << "nor was it even sent";
    EXPECT_TRUE(rig.worker->healthy());
    for (int i = 0; i < 5; ++i) rig.Submit("t");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 2) << "three slots, one lost";
    EXPECT_EQ(unhealthy, "");
}

TEST(Stopping, WithHalfThePoolLostItClaimsNoMoreAndTellsTheHost) {
    EndRig rig;
    rig.options.slots = 2;
    std::string unhealthy;
    rig.options.on_unhealthy = [&](std::string_view why) {
        unhealthy = why;
        throw std::runtime_error("hosts throw");
    };
    rig.Run(
        [&](Context&, std::string_view) {
            rig.clock.Advance(15s);
            rig.worker->WatchOnce();
            return Done();
        },
        {.timeout = 5s}
    );
    EXPECT_FALSE(rig.worker->healthy());
    EXPECT_THAT(unhealthy, HasSubstr("1 of 2 slots"));
    rig.Submit("t");
    EXPECT_EQ(rig.Drive(), 0);
}

// ---- the session ----

TEST(SessionLoss, TheWorkerStopsItsOwnTasksBeforeTheLeaseCanBeTaken) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view) -> Outcome<std::string> {
        rig.store.SetDown(true);
        for (int i = 0; i < 21; ++i) {
            rig.clock.Advance(1s);
            rig.worker->RenewOnce();
            rig.worker->WatchOnce();
        }
        EXPECT_FALSE(context.stop().stop_requested());
        rig.clock.Advance(1s);  // 22 s since the session was opened, the lease is 30 s
        rig.worker->WatchOnce();
        EXPECT_EQ(context.why(), StopReason::kLeaseLost);
        rig.store.SetDown(false);
        throw std::runtime_error("stopped");
    });
    EXPECT_EQ(rig.metrics.self_stops, 1u);
    // Nobody had taken it over: it goes back untouched.
    rig.clock.Advance(6s);
    rig.Drive();
    EXPECT_EQ(rig.memory.Attempts(rig.id).front().end, AttemptEnd::kReleased);
}

TEST(SessionLoss, TheDeadlineCountsFromWhenTheRenewalWasSent) {
    auto deadline_after_slow_renewal = [] {
        EndRig rig;
        Duration lived{};
        rig.Run([&](Context& context, std::string_view) {
            rig.store.OnCall([&](std::string_view op) {
                if (op == "renew") rig.clock.Advance(10s);  // a slow answer
            });
            rig.worker->RenewOnce();
            rig.store.OnCall({});
            auto answered = rig.clock.Now();
            while (!context.stop().stop_requested()) {
                rig.clock.Advance(500ms);
                rig.worker->WatchOnce();
            }
            lived = std::chrono::duration_cast<Duration>(rig.clock.Now() - answered);
            return Done();
        });
        return lived;
    };
    EXPECT_EQ(deadline_after_slow_renewal(), 12s);
    base::PlantBug(base::Bug::kSelfStopFromReply);
    EXPECT_EQ(deadline_after_slow_renewal(), 22s);
    base::PlantBug(base::Bug::kNone);
}

TEST(SessionLoss, ADeadSessionIsNeverResurrected) {
    EndRig rig;
    SessionId before;
    rig.Run([&](Context& context, std::string_view) {
        before = rig.worker->session();
        rig.clock.Advance(31s);
        rig.memory.Reclaim({});
        rig.worker->RenewOnce();
        EXPECT_EQ(context.why(), StopReason::kLeaseLost);
        EXPECT_FALSE(rig.worker->session().valid());
        return Done("\"late\"");
    });
    EXPECT_EQ(rig.metrics.sessions_lost, 1u);
    EXPECT_EQ(rig.metrics.lost, 1u) << "the fence refused the late output";
    EXPECT_NE(rig.worker->session(), before);
    EXPECT_TRUE(rig.worker->session().valid());
    EXPECT_TRUE(rig.Logged("stale write rejected"));
}

TEST(SessionLoss, NothingStartsAfterTheDeadline) {
    Rig rig;
    bool ran = false;
    rig.Handle("t", [&](Context&, std::string_view) { return ran = true, Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.clock.Advance(23s);  // frozen between claim and start
    rig.worker->RunOneAttempt();
    EXPECT_FALSE(ran);
    rig.worker->SettleOnce();
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_EQ(rig.Get(id).attempt, 0);
}

TEST(SessionLoss, ProgressRidesOnTheHeartbeatAndSurvivesAFailedOne) {
    EndRig rig;
    rig.Run([&](Context& context, std::string_view) {
        context.Progress("copying", 3, 10, "three");
        rig.store.Next("renew", Trouble::kUnavailable);
        rig.worker->RenewOnce();
        EXPECT_FALSE(rig.Get(context.id()).progress);
        rig.clock.Advance(1s);
        rig.worker->RenewOnce();
        auto progress = rig.Get(context.id()).progress;
        EXPECT_TRUE(progress && progress->step == "copying" && progress->done == 3);
        return Done();
    });
}

// ---- a failing store ----

TEST(StoreTrouble, ErrorWaitUntilItAnswersAgain) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    TaskId id = rig.Submit("t");
    rig.store.SetDown(true);
    rig.Open();
    EXPECT_EQ(rig.worker->state(), WorkerState::kErrorWait);
    base::Instant last = rig.clock.Now();
    for (int i = 0; i < 20; ++i) {
        auto next = rig.worker->ClaimOnce();
        ASSERT_LT(next - rig.clock.Now(), 5s + 1ms) << "waits at most error_wait";
        rig.clock.Advance(std::max<std::chrono::nanoseconds>(next - rig.clock.Now(), 1ns));
        last = next;
    }
    EXPECT_GT(last.time_since_epoch(), 30s) << "and grew to it";
    EXPECT_EQ(rig.metrics.breaker_opened, 1u);
    rig.store.SetDown(false);
    rig.clock.Advance(5s);
    rig.Drive();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
    EXPECT_EQ(rig.worker->state(), WorkerState::kIdle);
}

TEST(StoreTrouble, ARenewalDoesNotWaitForAProberThatHangs) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.store.SetDown(true);
    while (rig.metrics.breaker_opened == 0) {
        rig.worker->SweepOnce();
        rig.clock.Advance(1s);
    }
    rig.clock.Advance(5s);
    rig.store.SetDown(false);
    int renewals = 0;
    rig.store.OnCall([&](std::string_view op) {
        if (op != "reclaim" || renewals > 0) return;
        // The sweep is the one that asks first, and its answer does not come.
        int before = rig.store.calls("renew");
        rig.worker->RenewOnce();
        renewals = rig.store.calls("renew") - before;
    });
    rig.worker->SweepOnce();
    EXPECT_EQ(renewals, 1);
}

TEST(StoreTrouble, AnUnexpectedExceptionDoesNotEndTheLoop) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.store.Next("claim", Trouble::kBug);
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->state(), WorkerState::kErrorWait);
    rig.clock.Advance(5s);
    rig.Drive();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

// ---- draining ----

TEST(Drain, HandsBackWhatHasNotStartedWithTheAttemptRefunded) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    SessionId session = rig.worker->session();
    TaskId id = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->Drain();
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_EQ(rig.Get(id).attempt, 0);
    EXPECT_EQ(rig.worker->state(), WorkerState::kStopped);
    for (const auto& record : rig.memory.Sessions()) {
        if (record.id == session) {
            EXPECT_EQ(record.state, model::SessionState::kClosed);
        }
    }
    EXPECT_EQ(rig.worker->ClaimOnce(), base::Instant::max());
}

TEST(Drain, ReportsWhatIsFinished) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    EXPECT_EQ(rig.worker->unsettled(), 1);
    rig.worker->Drain();
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

// ---- hooks ----

TEST(WorkerHooks, SeeAttemptsAndTransitionsAndCannotBreakTheLoop) {
    Rig rig;
    std::vector<std::string> seen;
    rig.options.hooks.before_attempt = [&](const AttemptInfo& info) {
        seen.push_back("before " + std::string(info.type));
        throw std::runtime_error("hook");
    };
    rig.options.hooks.after_attempt = [&](const AttemptInfo& info) {
        seen.push_back("after " + std::string(info.outcome));
        throw 42;
    };
    rig.options.hooks.on_transition = [&](const TransitionInfo& info) {
        seen.push_back(std::string(info.from) + ">" + std::string(info.to));
    };
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.Drive();
    EXPECT_THAT(
        seen, ElementsAre("open>in_progress", "before t", "after complete", "in_progress>complete")
    );
    EXPECT_EQ(rig.metrics.hook_errors, 2u);
    EXPECT_EQ(rig.StateOf(id), State::kComplete);
}

TEST(WorkerHooks, OneThatStopsTheWorkerIsRefusedInsteadOfWaitingForItself) {
    ThreadedRig rig;
    std::atomic<int> refused{0};
    auto stop = [&](const auto&) {
        try {
            rig.worker->Stop();
        } catch (const std::logic_error& error) {
            EXPECT_THAT(error.what(), HasSubstr("called by a hook"));
            ++refused;
        }
    };
    rig.options.hooks.on_transition = stop;
    rig.options.hooks.before_attempt = stop;
    rig.options.hooks.after_attempt = stop;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Make().Start();
    TaskId id = rig.Submit("t");
    EXPECT_TRUE(Eventually([&] { return rig.StateOf(id) == State::kComplete && refused == 4; }));
    rig.worker->Stop();
}

// ---- services ----

TEST(Services, HousekeepingGoesOnWhileAllSlotsAreBusy) {
    Rig rig;
    rig.options.slots = 1;
    TaskId waiting;
    rig.Handle("t", [&](Context&, std::string_view) {
        EXPECT_EQ(rig.worker->running(), 1);
        waiting = rig.Submit("t", {.start_by = rig.clock.WallTime() + 10s});
        rig.clock.Advance(11s);
        rig.worker->HousekeepOnce();
        EXPECT_EQ(rig.StateOf(waiting), State::kDead);
        return Done();
    });
    rig.Open();
    rig.Submit("t");
    EXPECT_EQ(rig.Drive(), 1);
    EXPECT_TRUE(waiting.valid());
}

TEST(Services, CancellationsOfTheDeadAreToldBeforeRecoveries) {
    Rig rig;
    rig.options.slots = 2;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId recovered = rig.Submit("t");
    TaskId cancelled = rig.Submit("t");
    rig.worker->ClaimOnce();
    EXPECT_EQ(rig.worker->running(), 2);
    rig.memory.Cancel(std::span(&cancelled, 1), "test", "changed my mind");
    rig.worker.reset();  // dies
    rig.clock.Advance(31s);
    std::vector<std::string> seen;
    rig.options.hooks.on_transition = [&](const TransitionInfo& info) {
        seen.push_back(info.task.ToString() + " " + std::string(info.to));
    };
    rig.Open();
    ASSERT_GE(seen.size(), 2u);
    EXPECT_EQ(seen[0], cancelled.ToString() + " cancelled");
    EXPECT_EQ(seen[1], recovered.ToString() + " open");
}

TEST(Services, HousekeepingExpiresStartByDeadlines) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.memory.SetQueue({.name = "default", .paused = true}, "test");
    TaskId id = rig.Submit("t", {.start_by = rig.clock.WallTime() + 10s});
    rig.clock.Advance(11s);
    auto next = rig.worker->HousekeepOnce();
    EXPECT_EQ(rig.StateOf(id), State::kDead);
    EXPECT_GT(next - rig.clock.Now(), 40s);
}

TEST(Services, ACycleOfHousekeepingIsBoundedAndTheRestIsDoneSoon) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.memory.SetQueue({.name = "default", .paused = true}, "test");
    model::NewTask late{.type = "t", .start_by = rig.clock.WallTime() + 10s};
    for (int tasks : {10'000, 300}) {
        rig.memory.Submit(std::vector<model::NewTask>(static_cast<std::size_t>(tasks), late));
    }
    rig.clock.Advance(11s);
    auto left = [&] {
        return rig.memory.Counts({.states = {State::kOpen}})[{State::kOpen, "default", "t"}];
    };
    auto next = rig.worker->HousekeepOnce();
    EXPECT_EQ(rig.store.calls("housekeep"), 20);
    EXPECT_EQ(left(), 300);
    EXPECT_LE(next - rig.clock.Now(), 6s);
    next = rig.worker->HousekeepOnce();
    EXPECT_EQ(left(), 0);
    EXPECT_GT(next - rig.clock.Now(), 40s);
}

TEST(Services, HistoryIsCleanedUpOnAnIntervalOfItsOwn) {
    using std::chrono::days;
    Rig rig;
    rig.options.history_every = days{10};
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.memory.SetQueue({.name = "default", .keep_complete = days{1}}, "test");
    TaskId id = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->RunOneAttempt();
    rig.worker->SettleOnce();
    ASSERT_EQ(rig.memory.Get(id)->state, State::kComplete);
    rig.worker->HousekeepOnce();
    rig.clock.Advance(days{5});
    rig.worker->HousekeepOnce();
    EXPECT_TRUE(rig.memory.Get(id).has_value());
    rig.clock.Advance(days{6});
    rig.worker->HousekeepOnce();
    EXPECT_FALSE(rig.memory.Get(id).has_value());
}

TEST(Services, WhileNothingIsToBeRecoveredNobodySweeps) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    rig.worker->SweepOnce();
    const int before = rig.store.calls("reclaim");
    rig.store.SetQuiet(store::Quiet{.leases = true});
    rig.worker->SweepOnce();
    EXPECT_EQ(rig.store.calls("reclaim"), before);
    rig.store.SetQuiet(store::Quiet{.schedules = true, .events = true, .deletions = true});
    rig.worker->SweepOnce();
    EXPECT_EQ(rig.store.calls("reclaim"), before + 1);
}

TEST(Services, WhileNothingHappensThereIsLessHousekeeping) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    const store::Quiet all{
        .schedules = true, .events = true, .leases = true, .deletions = true, .deadlines = true};
    auto done = [&] { return rig.store.calls("housekeep"); };
    rig.worker->HousekeepOnce();
    int before = done();
    rig.store.SetQuiet(all);
    rig.worker->HousekeepOnce();
    EXPECT_EQ(done(), before) << "nothing happened since";
    rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker->HousekeepOnce();
    EXPECT_EQ(done(), before + 1) << "something was claimed";
    store::Quiet late = all;
    late.deadlines = false;
    rig.store.SetQuiet(late);
    rig.worker->HousekeepOnce();
    EXPECT_EQ(done(), before + 2);
    rig.store.SetQuiet(all);
    rig.worker->HousekeepOnce();
    EXPECT_EQ(done(), before + 2);
    rig.clock.Advance(5 * rig.options.housekeep_every);
    rig.worker->HousekeepOnce();
    EXPECT_EQ(done(), before + 3) << "not for ever";
}

TEST(Services, TheSweepLogsWhoWasRecovered) {
    Rig rig;
    rig.Handle("t", [](Context&, std::string_view) { return Done(); });
    rig.Open();
    TaskId id = rig.Submit("t");
    rig.worker->ClaimOnce();
    rig.worker.reset();
    rig.Open();
    rig.clock.Advance(20s);
    rig.worker->RenewOnce();
    rig.clock.Advance(11s);
    rig.worker->SweepOnce();
    EXPECT_EQ(rig.StateOf(id), State::kOpen);
    EXPECT_EQ(rig.metrics.reclaimed, 1u);
    EXPECT_TRUE(rig.Logged("recovered a task"));
}

}  // namespace
}  // namespace stint::engine
