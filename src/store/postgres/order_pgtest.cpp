// Order keys, where it matters how the server is asked.
#include <gmock/gmock.h>
#include <libpq-fe.h>

#include <cstdio>
#include <memory>

#include "base/random.h"
#include "store/postgres/postgres_store.h"
#include "support/postgres_schema.h"

namespace stint::store {
namespace {

using ::testing::HasSubstr;

class OrderTest : public ::testing::Test {
protected:
    void SetUp() override {
        SKIP_WITHOUT_POSTGRES();
        static stint::testing::PostgresSchema one("order");
        schema_ = &one;
        schema_->Empty();
        PostgresOptions options;
        options.url = stint::testing::TestPostgresUrl();
        options.schema = schema_->name();
        options.migrate = false;
        store_ = OpenPostgresStore(options);
        session_ = base::SystemRandom().MakeId<SessionId>();
        store_->OpenSession({.id = session_, .hostname = "h", .lease = std::chrono::hours{24}});
    }
    // The last of so many behind a head that takes them along.
    TaskId Submit(const std::string& key, int behind) {
        NewTask task{.type = "t"};
        task.order_key = key;
        task.on_failed_head = OnFailedHead::kDeadLetter;
        std::vector<NewTask> tasks(static_cast<std::size_t>(behind) + 1, task);
        return store_->Submit(tasks).back().id;
    }
    // How often the server is asked for an answer until the head is dead.
    int TripsOfDeath() {
        ClaimRequest request{.session = session_, .limit = 1, .types = {"t"}, .hinted = true};
        Lease head = store_->Claim(request).leases.at(0);
        Settlement dead{.task = head.task, .token = head.token, .session = session_};
        dead.kind = Settlement::Kind::kDead;
        dead.end = AttemptEnd::kFailed;
        dead.error = TaskError{.message = "no", .retryable = false};
        std::unique_ptr<std::FILE, int (*)(std::FILE*)> trace(std::tmpfile(), &std::fclose);
        postgres::Connection& mine = schema_->connection();
        mine.Script("BEGIN");
        PQtrace(mine.native(), trace.get());
        SettleReply reply = store_->Borrow(mine.native()).value()->Settle(dead);
        PQuntrace(mine.native());
        mine.Script("COMMIT");
        EXPECT_EQ(reply.kind, SettleReply::Kind::kAccepted) << reply.message;
        int trips = 0;
        std::rewind(trace.get());
        char line[4096];
        while (std::fgets(line, sizeof line, trace.get()) != nullptr) {
            if (std::string_view(line).find("\tSync") != std::string_view::npos) ++trips;
        }
        return trips;
    }

    stint::testing::PostgresSchema* schema_ = nullptr;
    std::unique_ptr<Store> store_;
    SessionId session_;
};

TEST_F(OrderTest, TheServerIsAskedAsOftenWhateverIsBehindTheDead) {
    TaskId last = Submit("few", 2);
    int few = TripsOfDeath();
    EXPECT_GT(few, 0);
    EXPECT_THAT(store_->Get(last)->reason, HasSubstr("\"few\""));
    last = Submit("many", 400);
    EXPECT_EQ(TripsOfDeath(), few);
    EXPECT_EQ(store_->Get(last)->state, State::kDead);
    EXPECT_THAT(store_->Get(last)->reason, HasSubstr("\"many\""));
}

}  // namespace
}  // namespace stint::store
