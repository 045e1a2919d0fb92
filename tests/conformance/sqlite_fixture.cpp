#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>

#include "base/clock.h"
#include "base/random.h"
#include "conformance/conformance.h"
#include "conformance/view_columns.h"
#include "sqlite/connection.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::conformance {

namespace {

// The file in a directory of its own, its owner in this process. Further handles speak through the
// owner's socket, as another process would.
class SqliteFixture final : public StoreFixture {
public:
    explicit SqliteFixture(bool through_socket) : through_socket_(through_socket) {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "stint-conformance-XXXXXX").string();
        directory_ = mkdtemp(pattern.data());
        owner_ = OpenOne(path(), false);
    }
    ~SqliteFixture() override {
        owner_.reset();
        std::filesystem::remove_all(directory_);
    }

    std::shared_ptr<store::Store> Open() override {
        if (!through_socket_ && !opened_.exchange(true)) return owner_;
        return OpenOne(path(), true);
    }
    std::shared_ptr<store::Store> OpenAnother() override {
        return OpenOne(directory_ + "/another.db", false);
    }
    void AdvanceTime(Duration by) override { clock_.Advance(by); }
    std::string path() const { return directory_ + "/stint.db"; }
    ViewRows ReadView(const std::string& view) override {
        sqlite::Connection reader(directory_ + "/stint.db", {});
        ViewRows read;
        std::string list;
        sqlite::Statement head = reader.Prepare("SELECT name FROM pragma_table_info(?)");
        for (sqlite::Rows names = head.Query(view); names.Next();) {
            read.columns.push_back(names.String(0));
            list += (list.empty() ? "" : ", ") + read.columns.back();
        }
        sqlite::Statement all = reader.Prepare("SELECT json_array(" + list + ") FROM " + view);
        for (sqlite::Rows rows = all.Query(); rows.Next();)
            read.rows.push_back(nlohmann::json::parse(rows.Text(0)));
        return read;
    }

private:
    std::shared_ptr<store::Store> OpenOne(const std::string& path, bool force_client) {
        store::SqliteOptions options;
        options.path = path;
        options.clock = &clock_;
        options.sync = false;  // what reaches the disk is not the subject here
        options.force_client = force_client;
        return store::OpenSqliteStore(options);
    }

    const bool through_socket_;
    std::atomic<bool> opened_ = false;  // cases open from several threads
    base::ManualClock clock_;
    std::string directory_;
    std::shared_ptr<store::Store> owner_;
};

}  // namespace

namespace {

// What SQLite says instead of PostgreSQL's types, and how the value looks.
struct SqliteType {
    std::string type;
    std::string pattern;  // GLOB; empty: any
};
SqliteType InSqlite(const std::string& type) {
    static const std::map<std::string, SqliteType> types = {
        {"int2", {"integer", ""}},
        {"int4", {"integer", ""}},
        {"int8", {"integer", ""}},
        {"bool", {"integer", "[01]"}},
        {"jsonb", {"text", "[[{\"0-9tfn]*"}},
        {"_text", {"text", "[[]*]"}},
        {"uuid", {"text", "*-*-*-*-????????????"}},
        {"timestamptz", {"text", "20[0-9][0-9]-[01][0-9]-[0-3][0-9]T??:??:??.???Z"}},
        {"interval", {"real", ""}},
        {"text", {"text", ""}},
        {"varchar", {"text", ""}},
    };
    return types.at(type);
}

CONFORMANCE_SUITE(SqliteViews);

// One running, one waiting for its retry, one finished, one outside, with all that a task can have.
TEST_P(SqliteViews, HaveTheColumnsOfEveryStore) {
    NewTask full{
        .priority = 7, .start_by = store.Now() + 1h, .tags = {"a", "b"}, .unique_key = "k"};
    Lease finished = MakeClaimed(full);
    Settlement outcome = Outcome(finished, Settlement::Kind::kComplete);
    outcome.output = "[1]";
    outcome.warning = true;
    Settle(outcome);
    SettleAs(MakeClaimed({.retry = Fixed(0, 1min)}), Settlement::Kind::kRetry, 1min);
    SettleAs(MakeClaimed(), Settlement::Kind::kBackground, 1min);
    MakeClaimed();
    sqlite::Connection reader(dynamic_cast<SqliteFixture&>(*fixture_).path(), {});
    for (const ViewContract& view : ViewContracts()) {
        std::vector<std::string> wanted;
        for (const ViewColumn& column : view.columns) wanted.push_back(column.name);
        sqlite::Statement all = reader.Prepare("SELECT * FROM " + view.name);
        std::vector<std::string> found;
        for (int i = 0; i < all.columns(); ++i) found.push_back(all.column_name(i));
        EXPECT_EQ(found, wanted) << view.name;
        for (const ViewColumn& column : view.columns) {
            SqliteType type = InSqlite(column.type);
            auto count = [&](const std::string& condition) {
                return reader.Prepare("SELECT count(*) FROM " + view.name + " WHERE " + condition)
                    .Scalar();
            };
            EXPECT_EQ(count("typeof(" + column.name + ") NOT IN ('" + type.type + "', 'null')"), 0)
                << view.name << "." << column.name;
            if (type.pattern.empty()) continue;
            EXPECT_EQ(count(column.name + " NOT GLOB '" + type.pattern + "'"), 0)
                << view.name << "." << column.name;
        }
    }
    auto value = [&](const std::string& column, State state) {
        sqlite::Statement select =
            reader.Prepare("SELECT " + column + " FROM task WHERE status = ?");
        sqlite::Rows rows = select.Query(static_cast<int>(state));
        return rows.Next() ? rows.IsNull(0) ? "null" : rows.String(0) : "none";
    };
    EXPECT_EQ(value("worker_status", State::kComplete), "done");
    EXPECT_EQ(value("worker_status", State::kInProgress), "running");
    EXPECT_EQ(value("worker_status", State::kError), "pending");
    EXPECT_EQ(value("tags", State::kComplete), R"(["a","b"])");
    EXPECT_EQ(value("output", State::kComplete), "[1]");
    EXPECT_EQ(value("warning", State::kComplete), "1");
    EXPECT_EQ(value("unique_key", State::kComplete), "k");
    EXPECT_EQ(value("run_time", State::kComplete), "0.0");
    EXPECT_EQ(value("executor", State::kComplete), value("executor", State::kInProgress));
    EXPECT_EQ(value("max_tries", State::kError), "null");
    EXPECT_EQ(value("max_tries", State::kInProgress), "20");
    EXPECT_EQ(value("retryable", State::kError), "1");
    EXPECT_EQ(value("replace(lease_owner, '-', '')", State::kInProgress), Worker().ToString());
    EXPECT_NE(value("expires_at", State::kBackground), "null");
    EXPECT_EQ(value("lease_timeout", State::kBackground), "null");
    for (int i = 0; i < kEventCount; ++i) {
        sqlite::Statement name = reader.Prepare("SELECT name FROM stint_event WHERE id = ?");
        sqlite::Rows rows = name.Query(i);
        ASSERT_TRUE(rows.Next());
        EXPECT_EQ(rows.Text(0), EventName(static_cast<Event>(i)));
    }
}

}  // namespace

std::vector<Backend> Backends() {
    return {
        {"sqlite", [] { return std::make_unique<SqliteFixture>(false); }, true},
        {"sqlitesocket", [] { return std::make_unique<SqliteFixture>(true); }, true},
    };
}

}  // namespace stint::conformance
