// What is broken in a file is found by the self-check.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <filesystem>

#include "store/resources.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class SqliteCheck : public testing::Test {
protected:
    SqliteCheck() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-check-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        options_.path = directory_ + "/a.db";
        options_.sync = false;
    }
    ~SqliteCheck() override { std::filesystem::remove_all(directory_); }

    std::vector<std::string> Broken() {
        std::vector<std::string> broken;
        for (const CheckFinding& finding : OpenSqliteStore(options_)->Check()) {
            if (!finding.ok) broken.push_back(finding.what + ": " + finding.detail);
        }
        return broken;
    }
    void Break(const char* sql) {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open(options_.path.c_str(), &db), SQLITE_OK);
        EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db);
        sqlite3_close(db);
    }
    // One task that runs and needs a gpu, of which there is one, and one that waits for it.
    void Fill() {
        auto store = OpenSqliteStore(options_);
        ResourceChange change{.name = "gpu"};
        change.capacity = 1;
        ASSERT_TRUE(store->Resources().Change(change, "ann"));
        SessionId session = base::SystemRandom().MakeId<SessionId>();
        store->OpenSession({.id = session, .hostname = "h", .lease = std::chrono::hours{24}});
        NewTask first{.type = "t", .needs = Needs{{"gpu", 1}}};
        NewTask second{.type = "t"};
        second.after = WaitOn{.on = {store->Submit({&first, 1}).at(0).id}};
        store->Submit({&second, 1});
        ASSERT_EQ(store->Claim({.session = session, .limit = 1, .types = {"t"}}).leases.size(), 1u);
    }

    std::string directory_;
    SqliteOptions options_;
};

TEST_F(SqliteCheck, FindsWhatIsBroken) {
    Fill();
    ASSERT_THAT(Broken(), IsEmpty());
    Break("UPDATE stint_slot SET units = 2");
    EXPECT_THAT(Broken(), Contains(HasSubstr("gpu: capacity 1, 2 held")));
    EXPECT_THAT(Broken(), Contains(HasSubstr("what its holders need")));
    Break("UPDATE stint_resource SET state = '{\"over\":2}'");
    EXPECT_THAT(Broken(), testing::Not(Contains(HasSubstr("capacity 1"))));
    Break("DELETE FROM stint_slot");
    EXPECT_THAT(Broken(), Contains(HasSubstr("running tasks count for what they need")));
    Break("UPDATE stint_wait SET pending = 7");
    EXPECT_THAT(Broken(), Contains(HasSubstr("each wait counts what it waits for")));
    Break(
        "INSERT INTO stint_flow (task, tenant, steps, bytes, signals, waiting, came, started_at, "
        "look_at) VALUES (1, 1, 3, 0, 0, 0, 0, 0, 0)"
    );
    EXPECT_THAT(Broken(), Contains(HasSubstr("flow 1 counts 3 steps")));
}

}  // namespace
}  // namespace stint::store
