// The process is killed at the first boundary between steps, at the second, …, until there are no
// more of them; another process then takes each flow over. Whenever it happened: every step is
// recorded once, in order, and the output is what the record says.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <stint/stint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "node/client.h"
#include "support/postgres.h"

namespace stint {
namespace {

using ::testing::ElementsAre;
namespace fs = std::filesystem;

constexpr int kMostBoundaries = 120;

struct Ended {
    bool killed = false;
    int code = 0;
    std::string out;
};

class FlowKill : public ::testing::Test {
protected:
    FlowKill() {
        std::string pattern = (fs::temp_directory_path() / "stint-flow-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        setenv("XDG_STATE_HOME", folder_.c_str(), 1);
    }
    ~FlowKill() override { fs::remove_all(folder_); }

    Ended Victim(const std::string& store, const std::string& key, int kill_at) {
        int out[2];
        EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
        const char* program = std::getenv("STINT_FLOW_VICTIM");
        std::vector<std::string> words = {
            program != nullptr ? program : "./flow_victim",
            store,
            Effects(key),
            key,
            std::to_string(kill_at)};
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_t pid = 0;
        EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        close(out[1]);
        Ended ended;
        std::array<char, 4096> buffer;
        for (ssize_t n; (n = read(out[0], buffer.data(), buffer.size())) > 0;) {
            ended.out.append(buffer.data(), static_cast<std::size_t>(n));
        }
        close(out[0]);
        int status = 0;
        waitpid(pid, &status, 0);
        ended.killed = WIFSIGNALED(status);
        ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return ended;
    }

    std::string Effects(const std::string& key) const { return folder_ + "/" + key; }
    std::map<std::string, int> EffectsOf(const std::string& key) const {
        std::map<std::string, int> effects;
        std::ifstream file(Effects(key));
        for (std::string line; std::getline(file, line);) ++effects[line];
        return effects;
    }

    // How often it was killed.
    int KillEverywhere(const std::string& store, const std::string& prefix) {
        for (int n = 1; n <= kMostBoundaries; ++n) {
            std::string key = prefix + std::to_string(n);
            Ended first = Victim(store, key, n);
            if (!first.killed) {
                EXPECT_EQ(first.code, 0) << first.out;
                return n - 1;
            }
            Ended second = Victim(store, key, 0);
            EXPECT_EQ(second.code, 0) << "killed at boundary " << n << ": " << second.out;
            if (second.code != 0) return n;
            CheckRecord(store, second.out, key, n);
        }
        return kMostBoundaries;
    }

    void CheckRecord(
        const std::string& store, const std::string& out, const std::string& key, int n
    ) {
        SCOPED_TRACE("killed at boundary " + std::to_string(n));
        std::size_t space = out.find(' ');
        TaskId task = TaskId::Parse(out.substr(0, space)).value();
        base::Json output = base::ReadJson(out.substr(space + 1));
        EXPECT_EQ(output["sum"], 84 + 86 + 7);
        Engine engine({.store = store});
        FlowDetails flow = engine.flows().Get(task).value();
        std::vector<std::string> names;
        for (const FlowStepInfo& step : flow.steps) names.push_back(step.name);
        EXPECT_THAT(
            names,
            ElementsAre(
                "reserve",
                "charge",
                "shipped",
                "version",
                "silence",
                "rest",
                "id",
                "thank",
                "one",
                "two",
                "first"
            )
        );
        EXPECT_EQ(output["version"], 2);
        EXPECT_EQ(flow.steps.at(4).state, "timed_out");
        EXPECT_EQ(output["silent"], true);
        EXPECT_EQ(base::ReadJson(flow.steps.at(6).result), output["id"]);
        EXPECT_EQ(base::ReadJson(flow.steps.at(10).result), output["first"]);
        ASSERT_EQ(flow.signals.size(), 1u);
        EXPECT_EQ(flow.signals[0].step, 3);
        node::ListRequest called;
        called.filter.parent = task;
        EXPECT_EQ(node::Client::Of(engine).List(called).tasks.size(), 3u)
            << "charge, one and two were made once each";
        int again = 0;
        std::map<std::string, int> effects = EffectsOf(key);
        ASSERT_EQ(effects.size(), 2u) << "the same idempotency key each time";
        for (const auto& [line, count] : effects) again += count - 1;
        EXPECT_LE(again, 1) << "only what was done and not yet recorded is done again";
    }

    std::string folder_;
};

TEST_F(FlowKill, AtEveryBoundaryOnSqlite) {
    int kills = KillEverywhere("sqlite:" + folder_ + "/stint.db", "lite-");
    EXPECT_GE(kills, 15);
    RecordProperty("kills", kills);
}

TEST_F(FlowKill, AtEveryBoundaryOnPostgres) {
    SKIP_WITHOUT_POSTGRES();
    std::string url = stint::testing::WithParameter(
        stint::testing::TestPostgresUrl(), "stint_schema=flow_kill_" + std::to_string(getpid())
    );
    int kills = KillEverywhere(url, "pg-");
    EXPECT_GE(kills, 15);
    RecordProperty("kills", kills);
}

}  // namespace
}  // namespace stint
