#include "node/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "node/config_file.h"

namespace stint::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class ConfigTest : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "stint-config-XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        directory_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::filesystem::path Write(const std::string& name, const std::string& text) {
        std::ofstream(directory_ / name) << text;
        return directory_ / name;
    }

    Result<Config> Load(std::vector<ConfigSources::File> files) {
        ConfigSources sources;
        sources.files = std::move(files);
        sources.environment = [this](std::string_view key) -> std::optional<std::string> {
            auto found = environment_.find(std::string(key));
            if (found == environment_.end()) return std::nullopt;
            return found->second;
        };
        return Config::Load(sources);
    }

    std::string Problem(const std::string& toml) {
        auto config = Load({{Write("bad.toml", toml), true}});
        EXPECT_FALSE(config.has_value()) << toml;
        return config ? "" : config.error().message;
    }

    std::filesystem::path directory_;
    std::map<std::string, std::string> environment_;
};

TEST_F(ConfigTest, DefaultsStandAlone) {
    Config config = Load({}).value();
    EXPECT_EQ(config.Text("store"), "sqlite:.stint/stint.db");
    EXPECT_EQ(config.Get("store").origin, "default");
    EXPECT_EQ(config.Number("worker.slots"), 8);
    EXPECT_EQ(config.Time("worker.drain"), 25s);
    EXPECT_TRUE(config.Names("worker.queues").empty());
    EXPECT_TRUE(config.commands().empty());
    for (const SettingSpec& spec : SettingSpecs()) {
        EXPECT_TRUE(config.Set(spec.key, std::string(spec.fallback), "test").has_value())
            << spec.key;
    }
}

TEST_F(ConfigTest, PrecedenceFlagEnvironmentProjectUserSystem) {
    auto project = Write("project.toml", "store = 'sqlite:p.db'\nworker.slots = 2\n");
    auto user = Write("user.toml", "store = 'sqlite:u.db'\n[worker]\nslots = 3\ndrain = '1m'\n");
    auto system = Write("system.toml", "[worker]\ndrain = '2m'\nlease = 'patient'\n");
    environment_["STINT_STORE"] = "sqlite:e.db";
    Config config = Load({{project}, {user}, {system}}).value();
    EXPECT_EQ(config.Text("store"), "sqlite:e.db");
    EXPECT_EQ(config.Get("store").origin, "STINT_STORE");
    EXPECT_EQ(config.Number("worker.slots"), 2);
    EXPECT_EQ(config.Get("worker.slots").origin, project.string());
    EXPECT_EQ(config.Time("worker.drain"), 60s);
    EXPECT_EQ(config.Lease("worker.lease").lease, LeaseOptions::Patient().lease);
    ASSERT_TRUE(config.Set("store", "memory:", "flag --store").has_value());
    EXPECT_EQ(config.Text("store"), "memory:");
    EXPECT_EQ(config.files_read().size(), 3u);
}

TEST_F(ConfigTest, MissingFilesAreFineUnlessNamed) {
    EXPECT_TRUE(Load({{directory_ / "none.toml", false}}).has_value());
    auto config = Load({{directory_ / "none.toml", true}});
    ASSERT_FALSE(config.has_value());
    EXPECT_THAT(config.error().message, HasSubstr("none.toml"));
}

TEST_F(ConfigTest, MistakesNameFileLineKeyAndCure) {
    EXPECT_THAT(Problem("a = [\n"), HasSubstr("not TOML"));
    EXPECT_THAT(Problem("\nstor = 'x'\n"), HasSubstr("bad.toml:2: unknown setting \"stor\""));
    EXPECT_THAT(Problem("stor = 'x'\n"), HasSubstr("did you mean \"store\"?"));
    EXPECT_THAT(Problem("worker.slots = 0\n"), HasSubstr("worker.slots: \"0\" is too small"));
    EXPECT_THAT(Problem("worker.slots = 'many'\n"), HasSubstr("not a whole number"));
    EXPECT_THAT(Problem("worker.prefetch = \"outo\"\n"), HasSubstr("nor \"auto\""));
    EXPECT_THAT(Problem("worker.prefetch = -1\n"), HasSubstr("worker.prefetch: \"-1\" is too"));
    EXPECT_THAT(Problem("worker.drain = '25'\n"), HasSubstr("90s"));
    EXPECT_THAT(Problem("worker.lease = 'short'\n"), HasSubstr("brisk"));
    EXPECT_THAT(Problem("worker.lease = '10ms'\n"), HasSubstr("lease"));
    EXPECT_THAT(Problem("log.format = 'xml'\n"), HasSubstr("human|json"));
    EXPECT_THAT(Problem("store = 4.5\n"), HasSubstr("store must be"));
    environment_["STINT_WORKER_SLOTS"] = "x";
    EXPECT_THAT(Problem(""), HasSubstr("STINT_WORKER_SLOTS"));
}

TEST_F(ConfigTest, CommandsAreArgumentVectors) {
    auto file = Write("c.toml", R"(
[task.thumbnail]
command = ["convert", "-", "out put.png"]
timeout = "30s"
queue = "images"
priority = 200
memory = "512Mi"
retry = { max_attempts = 3, on = "none", first_delay = "2s" }

[task.image.resize]
command = ["resize"]
max_attempts = 7

[task."a.b"]
command = ["ab"]
)");
    Config config = Load({{file}}).value();
    ASSERT_EQ(config.commands().size(), 3u);
    std::map<std::string, CommandTask> tasks;
    for (const CommandTask& task : config.commands()) tasks[task.name] = task;
    const CommandTask& thumbnail = tasks.at("thumbnail");
    EXPECT_THAT(thumbnail.command, ElementsAre("convert", "-", "out put.png"));
    EXPECT_EQ(thumbnail.timeout, 30s);
    EXPECT_EQ(thumbnail.queue, "images");
    EXPECT_EQ(thumbnail.priority, 200);
    EXPECT_EQ(thumbnail.memory_bytes, 512u << 20);
    EXPECT_EQ(thumbnail.retry.max_attempts, 3);
    EXPECT_EQ(thumbnail.retry.on, model::RetryPolicy::On::kNone);
    EXPECT_EQ(thumbnail.retry.first_delay, 2s);
    EXPECT_EQ(tasks.at("image.resize").retry.max_attempts, 7);
    EXPECT_EQ(tasks.at("image.resize").retry.on, model::RetryPolicy::On::kAll);
    EXPECT_TRUE(tasks.contains("a.b"));
}

TEST_F(ConfigTest, BadCommandsAreRefused) {
    EXPECT_THAT(Problem("[task.x]\ncommand = 'rm -rf /'\n"), HasSubstr("no shell is involved"));
    EXPECT_THAT(Problem("[task.x]\ncommand = []\n"), HasSubstr("command is empty"));
    EXPECT_THAT(Problem("[task.x]\ncommand = [1]\n"), HasSubstr("only strings"));
    EXPECT_THAT(Problem("[task.x]\ntimeout = '1s'\n"), HasSubstr("task.x has no command"));
    EXPECT_THAT(Problem("[task.x]\n"), HasSubstr("task.x has no command"));
    EXPECT_THAT(
        Problem("[task.x]\ncommand = ['a']\ntimout = '1s'\n"),
        HasSubstr("bad.toml:3: task.x: unknown key \"timout\"; did you mean \"timeout\"?")
    );
    EXPECT_THAT(Problem("[task.x]\ncommand = ['a']\ntimeout = 5\n"), HasSubstr("\"30s\""));
    EXPECT_THAT(Problem("[task.x]\ncommand = ['a']\nretry = 3\n"), HasSubstr("must be a table"));
    EXPECT_THAT(
        Problem("[task.x]\ncommand = ['a']\nretry = {on = 'some'}\n"), HasSubstr("all, retryable")
    );
}

TEST_F(ConfigTest, StrongerFileDefinesACommand) {
    auto strong = Write("s.toml", "[task.x]\ncommand = ['strong']\n");
    auto weak = Write("w.toml", "[task.x]\ncommand = ['weak']\n[task.y]\ncommand = ['y']\n");
    Config config = Load({{strong}, {weak}}).value();
    ASSERT_EQ(config.commands().size(), 2u);
    EXPECT_EQ(config.commands()[0].command[0], "strong");
}

TEST(ConfigText, SizesAndLeases) {
    EXPECT_EQ(ParseSize("64Mi").value(), 64u << 20);
    EXPECT_EQ(ParseSize("7").value(), 7u);
    EXPECT_FALSE(ParseSize("64M").has_value());
    EXPECT_FALSE(ParseSize("").has_value());
    EXPECT_FALSE(ParseSize("99999999999999Ti").has_value());
    EXPECT_EQ(ParseLease("10s").value().heartbeat_every, 2s);
}

}  // namespace
}  // namespace stint::node
