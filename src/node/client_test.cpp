#include "node/client.h"
#include "node/scratch_store.h"

#include <gtest/gtest.h>
#include <stint/engine.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/random.h"
#include "node/command_tasks.h"
#include "node/engine_impl.h"
#include "node/json_view.h"
#include "support/troubled_store.h"

namespace stint::node {
namespace {

using namespace std::chrono_literals;

model::NewTask Request(std::string type) {
    model::NewTask task;
    task.type = std::move(type);
    task.queue = "q";
    return task;
}

class ClientTest : public testing::Test {
protected:
    ClientTest() : engine_({.store = "memory:"}), client_(Client::Of(engine_)) {}

    TaskId Submit(const model::NewTask& task) {
        auto reply = client_.Submit({&task, 1}).at(0);
        EXPECT_TRUE(reply) << reply.error().message;
        return reply->id;
    }

    bool Idle(std::vector<std::string> queues, std::vector<std::string> types) {
        ClaimRequest worker;
        worker.queues = std::move(queues);
        worker.types = std::move(types);
        return client_.LookIdle(worker).idle;
    }
    // The conditions of what a worker that carries these labels leaves, or "busy".
    std::vector<std::string> Left(std::vector<std::string> labels = {}) {
        ClaimRequest worker;
        worker.labels = std::move(labels);
        IdleLook look = client_.LookIdle(worker);
        if (!look.idle) return {"busy"};
        std::vector<std::string> conditions;
        for (const LeftOver& one : look.left) conditions.push_back(one.condition);
        return conditions;
    }

    Engine engine_;
    Client client_;
};

TEST_F(ClientTest, WaitTellsWhatIsLeft) {
    TaskId done = Submit(Request("a")), waiting = Submit(Request("a"));
    client_.Cancel({&done, 1}, "operator:ann", "no more");
    std::vector<TaskId> finished;
    auto left = client_.Wait({done, waiting}, 0ms, [&](const FinishedTask& task) {
        finished.push_back(task.id);
        EXPECT_EQ(task.state, model::State::kCancelled);
    });
    EXPECT_EQ(finished, std::vector<TaskId>{done});
    EXPECT_EQ(left, std::vector<TaskId>{waiting});
}

TEST_F(ClientTest, WaitEndsWhenStopped) {
    TaskId waiting = Submit(Request("a"));
    std::stop_source stop;
    stop.request_stop();
    auto left = client_.Wait(
        {waiting}, {}, [](const FinishedTask&) {}, stop.get_token()
    );
    EXPECT_EQ(left.size(), 1u);
}

TEST_F(ClientTest, IdleLooksAtDueWorkOfTheGivenQueuesAndTypes) {
    EXPECT_TRUE(Idle({}, {}));
    model::NewTask later = Request("a");
    later.delay = 1h;
    Submit(later);
    EXPECT_TRUE(Idle({}, {})) << "what is not due does not count";
    TaskId due = Submit(Request("b"));
    EXPECT_FALSE(Idle({}, {}));
    EXPECT_FALSE(Idle({"q"}, {"b"}));
    EXPECT_TRUE(Idle({"other"}, {}));
    EXPECT_TRUE(Idle({}, {"a"}));
    client_.Cancel({&due, 1}, "t", "");
    EXPECT_TRUE(Idle({}, {}));
}

TEST_F(ClientTest, IdleLeavesWhatTheWorkerTakesNoneOf) {
    auto left = [&](std::map<std::string, int> queues, std::map<std::string, int> resources) {
        ClaimRequest worker;
        worker.queue_room = std::move(queues);
        worker.resource_room = std::move(resources);
        IdleLook look = client_.LookIdle(worker);
        return !look.idle ? "busy" : look.left.empty() ? "nothing" : look.left[0].condition;
    };
    model::NewTask needs = Request("a");
    needs.needs = model::Needs{{"host:a", 1}};
    Submit(needs);
    Submit(needs);
    EXPECT_EQ(left({{"q", 1}}, {{"host:*", 1}}), "busy") << "room comes back";
    EXPECT_EQ(left({{"q", 0}}, {}), "no_room");
    EXPECT_EQ(left({}, {{"host:*", 0}}), "no_room");
    EXPECT_EQ(left({}, {{"host:*", 0}, {"host:a", 1}}), "busy");
}

TEST_F(ClientTest, IdleLeavesWhatNeedsTheHelpOfOthers) {
    using Words = std::vector<std::string>;
    auto over = [&](TaskId task) { client_.Cancel({&task, 1}, "t", ""); };
    EXPECT_EQ(Left(), Words{});
    model::NewTask labelled = Request("a");
    labelled.labels = {"gpu"};
    TaskId task = Submit(labelled);
    EXPECT_EQ(Left(), Words{"label_missing"});
    EXPECT_EQ(Left({"gpu"}), Words{"busy"});
    over(task);

    task = Submit(Request("a"));
    client_.ChangeQueue({.name = "q", .paused = true}, "t");
    EXPECT_EQ(Left(), Words{"queue_paused"});
    client_.ChangeQueue({.name = "q", .paused = false}, "t");
    EXPECT_EQ(Left(), Words{"busy"});
    over(task);

    model::NewTask first = Request("a"), second = Request("a");
    first.order_key = second.order_key = "k";
    first.delay = 1h;
    TaskId head = Submit(first);
    task = Submit(second);
    EXPECT_EQ(Left(), (Words{"behind_in_order", "not_due"}));
    over(head);
    EXPECT_EQ(Left(), Words{"busy"});
    over(task);

    task = Submit(labelled);
    model::NewTask after = Request("a");
    after.after.emplace().on = {task};
    Submit(after);
    EXPECT_EQ(Left(), (Words{"blocked", "label_missing"}));
}

TEST_F(ClientTest, IdleWaitsForWhatAResourceWillGive) {
    using Words = std::vector<std::string>;
    auto resources = engine_.resources();
    model::NewTask request = Request("a");
    request.needs = model::Needs{{"gpu", 2}};
    TaskId task = Submit(request);
    EXPECT_EQ(Left(), Words{"busy"}) << "without limit";
    ASSERT_TRUE(resources.Set("gpu", {.capacity = 1}));
    EXPECT_EQ(Left(), Words{"resource_full"}) << "it needs more than there is";
    ASSERT_TRUE(resources.Set("gpu", {.capacity = 2}));
    EXPECT_EQ(Left(), Words{"busy"});
    ASSERT_TRUE(resources.Close("gpu", 1h));
    EXPECT_EQ(Left(), Words{"resource_closed"}) << "as what is due later";
    ASSERT_TRUE(resources.Open("gpu"));
    ASSERT_TRUE(resources.Set("queue:q", {.capacity = 0}));
    EXPECT_EQ(Left(), Words{"resource_full"});
    client_.Cancel({&task, 1}, "t", "");
    EXPECT_EQ(Left(), Words{});
}

TEST_F(ClientTest, ChangeQueueKeepsWhatItDoesNotChange) {
    client_.ChangeQueue({.name = "q", .cap = 7}, "operator:ann");
    client_.ChangeQueue({.name = "q", .paused = true}, "operator:ann");
    auto queues = client_.Queues();
    ASSERT_EQ(queues.size(), 1u);
    EXPECT_EQ(queues[0].settings.cap, 7);
    EXPECT_TRUE(queues[0].settings.paused);
}

TEST_F(ClientTest, JsonShowsPayloadsThemselvesAndIdsAsStrings) {
    model::NewTask task = Request("a");
    task.input = R"({"n":[1,2]})";
    auto json = ToJson(*client_.Get(Submit(task)));
    EXPECT_TRUE(json["id"].is_string());
    EXPECT_EQ(json["input"]["n"][1], 2);
    EXPECT_EQ(json["state"], "open");
    EXPECT_TRUE(json["finished_at"].is_null());
}

// The store of an engine, made to fail on request.
class TroubledTest : public testing::Test {
protected:
    TroubledTest() : engine_({.store = "memory:"}) {
        inner_ = std::move(engine_.impl().store);
        auto troubled = std::make_unique<engine::TroubledStore>(*inner_);
        troubled_ = troubled.get();
        engine_.impl().store = std::move(troubled);
        client_.emplace(Client::Of(engine_));
    }
    std::size_t Stored() { return inner_->List({}).tasks.size(); }
    model::State StateOf(TaskId task) { return inner_->Get(task).value().state; }

    // A task that is finished from outside, and the token that does it.
    std::pair<TaskId, std::string> InBackground() {
        model::NewTask task = Request("a");
        inner_->Submit({&task, 1});
        auto session = base::SystemRandom().MakeId<SessionId>();
        inner_->OpenSession({.id = session, .hostname = "h", .lease = 1h});
        store::Lease lease =
            inner_->Claim({.session = session, .limit = 1, .types = {"a"}}).leases.at(0);
        store::Settlement outside;
        outside.task = lease.task;
        outside.token = lease.token;
        outside.kind = store::Settlement::Kind::kBackground;
        EXPECT_EQ(inner_->Settle({&outside, 1}).at(0).state, model::State::kBackground);
        return {lease.task, lease.token.ToString()};
    }

    std::unique_ptr<store::Store> inner_;
    Engine engine_;
    engine::TroubledStore* troubled_ = nullptr;
    std::optional<Client> client_;
};

TEST_F(TroubledTest, ASubmitWhoseAnswerWasLostIsReadBack) {
    model::NewTask task = Request("a");
    troubled_->Next("submit", engine::Trouble::kUnknownAfter);
    troubled_->Next("get", engine::Trouble::kUnavailable, 2);  // the server restarts
    auto reply = client_->Submit({&task, 1}).at(0);
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(Stored(), 1u);
    EXPECT_TRUE(inner_->Get(reply->id));
}

TEST_F(TroubledTest, NothingIsSaidToBeUnchangedThatMayHaveBeenStored) {
    std::vector<model::NewTask> tasks{Request("a"), Request("bad name!")};
    troubled_->Next("submit", engine::Trouble::kUnknownAfter);
    troubled_->Next("get", engine::Trouble::kUnavailable, 1000);
    auto replies = client_->Submit(tasks);
    EXPECT_EQ(replies[0].error().code, Code::kUnknown);
    EXPECT_NE(replies[0].error().message.find("idempotency key"), std::string::npos);
    EXPECT_EQ(replies[1].error().code, Code::kInvalid) << "a refused member keeps its own error";
    EXPECT_EQ(Stored(), 1u);
}

TEST_F(TroubledTest, CancelAndRetrySendHints) {
    model::NewTask task = Request("a");
    TaskId id = client_->Submit({&task, 1}).at(0).value().id;
    std::vector<wake::Hint> hints;
    int number =
        engine_.impl().wake->Subscribe([&](const wake::Hint& hint) { hints.push_back(hint); });
    client_->Cancel({&id, 1}, "operator:ann", "");
    ASSERT_EQ(hints.size(), 1u);
    EXPECT_EQ(hints[0].kind, wake::Hint::Kind::kTaskFinished);
    EXPECT_EQ(hints[0].task, id);
    client_->Retry({&id, 1}, "operator:ann");
    ASSERT_EQ(hints.size(), 2u);
    EXPECT_EQ(hints[1].kind, wake::Hint::Kind::kTaskAvailable);
    client_->Retry({&id, 1}, "operator:ann");  // it is open: refused
    EXPECT_EQ(hints.size(), 2u);
    engine_.impl().wake->Unsubscribe(number);
}

using engine::Trouble;

TEST_F(TroubledTest, WhatTheStoreThrowsAtAFinishIsAnAnswer) {
    auto [task, token] = InBackground();
    auto finish = [&, id = task, by = token](Trouble trouble, bool success) {
        troubled_->Next("finish", trouble);
        auto done = success ? engine_.Complete(id, by, 9) : engine_.Fail(id, by, {"broken"});
        EXPECT_FALSE(done);
        return done ? Code{} : done.error().code;
    };
    for (bool success : {true, false}) {
        EXPECT_EQ(finish(Trouble::kUnavailable, success), Code::kUnavailable);
        EXPECT_EQ(finish(Trouble::kUnknownBefore, success), Code::kUnknown);
        EXPECT_EQ(finish(Trouble::kUnstorable, success), Code::kInvalid);
        EXPECT_EQ(finish(Trouble::kBug, success), Code::kUnknown);
    }
    EXPECT_EQ(StateOf(task), model::State::kBackground) << "each may be tried again";
    EXPECT_EQ(finish(Trouble::kUnknownAfter, true), Code::kUnknown);
    EXPECT_EQ(StateOf(task), model::State::kComplete);
    EXPECT_EQ(engine_.Complete(task, token, 9).error().code, Code::kConflict)
        << "asked again, the store tells that it is done";
}

TEST_F(TroubledTest, WhatTheStoreThrowsAtABorrowIsAnAnswer) {
    auto borrow = [&](Trouble trouble) {
        troubled_->Next("borrow", trouble);
        return engine_.Borrow(this).error().code;
    };
    EXPECT_EQ(borrow(Trouble::kUnavailable), Code::kUnavailable);
    EXPECT_EQ(borrow(Trouble::kUnstorable), Code::kInvalid);
    // To borrow changes nothing, so there is nothing to be unsure of.
    EXPECT_EQ(borrow(Trouble::kUnknownBefore), Code::kUnavailable);
    EXPECT_EQ(borrow(Trouble::kBug), Code::kUnavailable);
}

TEST_F(TroubledTest, WhatTheStoreThrowsAtAWriteIsAnAnswer) {
    constexpr Task<int> kTask{"a"};
    auto write = [&](Trouble trouble) {
        troubled_->Next("write", trouble);
        auto done = engine_.Write([&](Transaction& transaction) -> Result<void> {
            EXPECT_TRUE(engine_.Submit(kTask, 1, {.in = &transaction}));
            return {};
        });
        EXPECT_FALSE(done);
        return done ? Code{} : done.error().code;
    };
    EXPECT_EQ(write(Trouble::kUnavailable), Code::kUnavailable);
    EXPECT_EQ(write(Trouble::kUnknownBefore), Code::kUnknown);
    EXPECT_EQ(write(Trouble::kUnstorable), Code::kInvalid);
    EXPECT_EQ(write(Trouble::kBug), Code::kUnknown);
    EXPECT_EQ(Stored(), 0u);
    EXPECT_EQ(write(Trouble::kUnknownAfter), Code::kUnknown);
    EXPECT_EQ(Stored(), 1u);
}

TEST_F(TroubledTest, WhatTheWorkThrewIsNotHiddenByWhatTheStoreThrew) {
    troubled_->Next("write", Trouble::kUnknownAfter);
    auto throwing = [](Transaction&) -> Result<void> { throw std::domain_error("mine"); };
    EXPECT_THROW((void)engine_.Write(throwing), std::domain_error);
}

class PlaceTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "stint-client-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        place_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(place_); }
    std::filesystem::path place_;
};

TEST_F(PlaceTest, MakesOnlyItsOwnDirectory) {
    PrepareStoreDirectory("sqlite:" + (place_ / ".stint/stint.db").string());
    EXPECT_TRUE(std::filesystem::exists(place_ / ".stint/.gitignore"));
    PrepareStoreDirectory("sqlite:" + (place_ / "typo/stint.db").string());
    EXPECT_FALSE(std::filesystem::exists(place_ / "typo"));
}

TEST_F(PlaceTest, MemoryIsRefusedBecauseNobodyElseWouldSeeIt) {
    try {
        Client::Open("memory:", Client::IfMissing::kCreate);
        FAIL() << "opened";
    } catch (const StoreError& error) {
        EXPECT_EQ(error.code(), Code::kInvalid);
        EXPECT_NE(std::string(error.what()).find("sqlite:PATH"), std::string::npos);
    }
}

TEST_F(PlaceTest, LookingMakesNoStore) {
    std::string url = "sqlite:" + (place_ / "none.db").string();
    try {
        Client::Open(url, Client::IfMissing::kRefuse);
        FAIL() << "opened what is not there";
    } catch (const StoreError& error) {
        EXPECT_EQ(error.code(), Code::kNotFound);
    }
    EXPECT_TRUE(std::filesystem::is_empty(place_));
}

TEST_F(PlaceTest, ScratchStoreIsRemovedWithAllBesideIt) {
    std::string url = "sqlite:" + (place_ / "t.db").string();
    std::ofstream(place_ / "t.db") << "somebody's";
    {
        ScratchStore scratch(url);
        std::string path = *SqlitePath(scratch.url());
        EXPECT_NE(path, (place_ / "t.db").string());
        for (const char* part : {"", "-wal", ".lock"}) std::ofstream(path + part) << "x";
        std::filesystem::create_directory(path + ".state");
    }
    EXPECT_TRUE(std::filesystem::exists(place_ / "t.db")) << "the store itself is not touched";
    std::filesystem::remove(place_ / "t.db");
    EXPECT_TRUE(std::filesystem::is_empty(place_));
    EXPECT_THROW(ScratchStore("memory:"), StoreError);
}

TEST(CommandOutput, JsonOrText) {
    EXPECT_EQ(OutputOfCommand("{\"a\": 1}\n"), "{\"a\": 1}");
    EXPECT_EQ(OutputOfCommand("17\n"), "17");
    EXPECT_EQ(OutputOfCommand("two words\n\n"), "\"two words\"");
    EXPECT_EQ(OutputOfCommand("say \"hi\""), R"("say \"hi\"")");
    EXPECT_EQ(OutputOfCommand(""), "null");
    EXPECT_EQ(OutputOfCommand("\n"), "null");
    EXPECT_EQ(OutputOfCommand("a\xff"), "\"a\xEF\xBF\xBD\"") << "not UTF-8 is made so";
}

}  // namespace
}  // namespace stint::node
