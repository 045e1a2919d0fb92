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
using testing::Pair;

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

TEST_F(ConfigTest, LimitsAreTablesInFilesAndListsElsewhere) {
    auto file = Write("l.toml", R"(
[worker.at_once_of_queue]
slow = 2
mail = 0

[worker.at_once_of_resource]
"host:*" = 3
GPU = 1
)");
    Config config = Load({{file}}).value();
    EXPECT_THAT(
        config.Limits("worker.at_once_of_queue"), ElementsAre(Pair("mail", 0), Pair("slow", 2))
    );
    EXPECT_THAT(
        config.Limits("worker.at_once_of_resource"), ElementsAre(Pair("gpu", 1), Pair("host:*", 3))
    );
    EXPECT_EQ(config.Get("worker.at_once_of_queue").value, "mail=0,slow=2");
    EXPECT_EQ(config.Get("worker.at_once_of_queue").origin, file.string());
    EXPECT_TRUE(Load({}).value().Limits("worker.at_once_of_queue").empty());
    environment_["STINT_WORKER_AT_ONCE_OF_RESOURCE"] = "host:*=7, disk=1";
    EXPECT_THAT(
        Load({{file}}).value().Limits("worker.at_once_of_resource"),
        ElementsAre(Pair("disk", 1), Pair("host:*", 7))
    ) << "the stronger one, as a whole";
    auto list = Write("a.toml", "worker.at_once_of_queue = ['slow=2']\n");
    EXPECT_THAT(
        Load({{list}}).value().Limits("worker.at_once_of_queue"), ElementsAre(Pair("slow", 2))
    );
}

TEST_F(ConfigTest, LimitsThatCannotBeAreRefusedWithTheCure) {
    const std::string queue = "[worker.at_once_of_queue]\n";
    const std::string resource = "[worker.at_once_of_resource]\n";
    EXPECT_THAT(
        Problem(queue + "slow = 'two'\n"),
        HasSubstr("bad.toml:2: worker.at_once_of_queue: \"slow\" must be a whole number")
    );
    EXPECT_THAT(Problem(queue + "slow = -1\n"), HasSubstr("not negative"));
    EXPECT_THAT(
        Problem(queue + "slow = 5000\n"),
        HasSubstr("worker.at_once_of_queue: \"slow=5000\" has 5000; it must be between 0")
    );
    EXPECT_THAT(Problem("worker.at_once_of_queue = 'slow'\n"), HasSubstr("such as slow=2"));
    EXPECT_THAT(
        Problem("worker.at_once_of_queue = 'a=1,a=2'\n"), HasSubstr("\"a\" is named twice")
    );
    EXPECT_THAT(Problem(resource + "'a b' = 1\n"), HasSubstr("name is \"a b\"; use letters"));
    EXPECT_THAT(Problem(resource + "'*' = 1\n"), HasSubstr("such as host:*"));
    EXPECT_THAT(Problem(resource + "'queue:slow' = 1\n"), HasSubstr("at_once_of_queue"));
    EXPECT_THAT(Problem(resource + "gpu = 1\nGPU = 2\n"), HasSubstr("twice"));
}

TEST_F(ConfigTest, ProbesAreTables) {
    auto file = Write("p.toml", R"(
[probe.ollama]
kind = "http"
target = "http://127.0.0.1:11434/"
every = "10s"

[probe.directory]
kind = "tcp"
target = "[::1]:389"
resource = "ldap"
timeout = "500ms"
fail_after = 3
pass_after = 2

[probe.gpu]
kind = "command"
target = ["nvidia-smi", "-L"]
)");
    auto weak = Write("w.toml", "[probe.gpu]\nkind = 'tcp'\ntarget = 'gpu:1'\n");
    Config config = Load({{file}, {weak}}).value();
    ASSERT_EQ(config.probes().size(), 3u);
    std::map<std::string, ProbeSetting> probes;
    for (const ProbeSetting& one : config.probes()) probes[one.name] = one;
    EXPECT_EQ(std::get<HttpProbe>(probes.at("ollama").probe.check).url, "http://127.0.0.1:11434/");
    EXPECT_EQ(probes.at("ollama").probe.resource, "ollama");
    EXPECT_EQ(probes.at("ollama").probe.every, 10s);
    const Probe& ldap = probes.at("directory").probe;
    EXPECT_EQ(ldap.resource, "ldap");
    EXPECT_EQ(std::get<TcpProbe>(ldap.check).host, "::1");
    EXPECT_EQ(std::get<TcpProbe>(ldap.check).port, 389);
    EXPECT_EQ(ldap.timeout, 500ms);
    EXPECT_EQ(ldap.fail_after, 3);
    EXPECT_EQ(ldap.pass_after, 2);
    EXPECT_THAT(
        std::get<CommandProbe>(probes.at("gpu").probe.check).argv, ElementsAre("nvidia-smi", "-L")
    ) << "the stronger file";
    EXPECT_THAT(probes.at("gpu").origin, HasSubstr("p.toml:"));
}

TEST_F(ConfigTest, ProbesThatCannotBeAreRefusedWithTheCure) {
    const std::string x = "[probe.x]\n", tcp = x + "kind = 'tcp'\n";
    EXPECT_THAT(Problem("probe = 3\n"), HasSubstr("[probe.NAME]"));
    EXPECT_THAT(Problem("[probe]\nx = 1\n"), HasSubstr("[probe.x]"));
    EXPECT_THAT(Problem(x), HasSubstr("probe.x: kind is \"\"; it must be tcp, http or command"));
    EXPECT_THAT(Problem(x + "kind = 'ping'\n"), HasSubstr("kind is \"ping\""));
    EXPECT_THAT(Problem(tcp), HasSubstr("probe.x: target is missing"));
    EXPECT_THAT(
        Problem(tcp + "target = 'db'\n"),
        HasSubstr("bad.toml:3: probe.x: target is \"db\"; write host:port")
    );
    EXPECT_THAT(Problem(tcp + "target = 'db:0'\n"), HasSubstr("write host:port"));
    EXPECT_THAT(Problem(x + "kind = 'http'\ntarget = 'https://a'\n"), HasSubstr("curl"));
    EXPECT_THAT(Problem(x + "kind = 'command'\ntarget = 'a b'\n"), HasSubstr("array of strings"));
    EXPECT_THAT(Problem(x + "kind = 'command'\ntarget = []\n"), HasSubstr("probe.x: "));
    EXPECT_THAT(Problem(tcp + "target = 'a:1'\nevery = 5\n"), HasSubstr("probe.x: every must be"));
    EXPECT_THAT(Problem(tcp + "target = 'a:1'\nevery = '1ms'\n"), HasSubstr("at least 10 ms"));
    EXPECT_THAT(Problem(tcp + "target = 'a:1'\nfail_after = 0\n"), HasSubstr("at least 1"));
    EXPECT_THAT(Problem(tcp + "target = 'a:1'\nresource = 'a b'\n"), HasSubstr("\"a b\""));
    EXPECT_THAT(
        Problem(tcp + "target = 'a:1'\nevry = '5s'\n"),
        HasSubstr("probe.x: unknown key \"evry\"; did you mean \"every\"?")
    );
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
