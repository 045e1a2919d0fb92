// Probes with real sockets and processes; tests wait for what they bring about.
#include "services/probes.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/thread.h"
#include "engine/isolate/spawn.h"
#include "services/probe_checks.h"
#include "support/engine_rig.h"

namespace stint::services {
namespace {

using namespace std::chrono_literals;
using engine::Eventually;
using engine::isolate::Fd;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A server on the loopback that answers every connection with the same text, or with silence.
class Server {
public:
    explicit Server(std::string answer, int port = 0)
        : answer_(std::move(answer)), listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        int yes = 1;
        setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(bind(listening_.get(), generic, sizeof address), 0);
        EXPECT_EQ(listen(listening_.get(), 8), 0);
        socklen_t size = sizeof address;
        getsockname(listening_.get(), generic, &size);
        port_ = ntohs(address.sin_port);
        thread_ = base::StartThread([this] { Serve(); });
    }
    ~Server() {
        shutdown(listening_.get(), SHUT_RDWR);
        thread_.join();
    }
    int port() const { return port_; }
    std::string url(std::string_view path = "/") const {
        return fmt::format("http://127.0.0.1:{}{}", port_, path);
    }
    std::string last_request() {
        std::lock_guard guard(mutex_);
        return request_;
    }

private:
    void Serve() {
        std::vector<Fd> silent;
        for (;;) {
            Fd one(accept(listening_.get(), nullptr, nullptr));
            if (!one.open()) return;
            if (answer_.empty()) {
                silent.push_back(std::move(one));
                continue;
            }
            char chunk[2048];
            ssize_t got = recv(one.get(), chunk, sizeof chunk, 0);
            if (got > 0) {
                std::lock_guard guard(mutex_);
                request_.assign(chunk, static_cast<std::size_t>(got));
            }
            send(one.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
        }
    }

    const std::string answer_;
    Fd listening_;
    int port_ = 0;
    std::mutex mutex_;
    std::string request_;  // guarded by mutex_
    std::jthread thread_;
};

Result<void> Once(decltype(Probe::check) check, Duration timeout = 5s) {
    return RunProbe({.resource = "r", .check = std::move(check), .timeout = timeout}, {});
}

TEST(ProbeChecks, ATcpConnectionThatIsAcceptedIsEnough) {
    int port = 0;
    {
        Server server("x");
        port = server.port();
        EXPECT_TRUE(Once(TcpProbe{"127.0.0.1", port}));
    }
    auto refused = Once(TcpProbe{"127.0.0.1", port});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("refused"));
    EXPECT_FALSE(Once(TcpProbe{"no-such-host.invalid", 1}));
}

TEST(ProbeChecks, HttpLooksAtTheStatus) {
    Server good("HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_TRUE(Once(HttpProbe{good.url("/health?deep=1")}));
    EXPECT_THAT(good.last_request(), HasSubstr("GET /health?deep=1 HTTP/1.1\r\n"));
    EXPECT_THAT(good.last_request(), HasSubstr(fmt::format("Host: 127.0.0.1:{}\r\n", good.port())));
    Server bad("HTTP/1.1 503 Service Unavailable\r\n\r\n");
    auto answer = Once(HttpProbe{bad.url()});
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message, HasSubstr("503 Service Unavailable"));
    Server other("SSH-2.0-OpenSSH_9\r\n");
    EXPECT_FALSE(Once(HttpProbe{other.url()}));
    Server silent("");
    auto late = Once(HttpProbe{silent.url()}, 50ms);
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().message, HasSubstr("no answer within 50 ms"));
}

TEST(ProbeChecks, CommandsEndWithZeroOrSayWhy) {
    EXPECT_TRUE(Once(CommandProbe{{"true"}}));
    auto failed = Once(CommandProbe{{"sh", "-c", "echo no device >&2; exit 3"}});
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, "sh: exit code 3: no device");
    EXPECT_FALSE(Once(CommandProbe{{"/no/such/program"}}));
    auto late = Once(CommandProbe{{"sleep", "600"}}, 50ms);
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().message, HasSubstr("did not end within 50 ms"));
}

TEST(ProbeChecks, ACallbackThatThrowsHasFailed) {
    EXPECT_TRUE(Once([]() -> Result<void> { return {}; }));
    auto thrown = Once([]() -> Result<void> { throw std::runtime_error("boom"); });
    ASSERT_FALSE(thrown);
    EXPECT_EQ(thrown.error().message, "boom");
}

TEST(ProbeTally, ThresholdsCountInARow) {
    ProbeTally tally(2, 3);
    EXPECT_FALSE(tally.offered()) << "not before it was checked";
    EXPECT_FALSE(tally.Note(true));
    EXPECT_FALSE(tally.Note(true));
    EXPECT_TRUE(tally.Note(true));
    EXPECT_TRUE(tally.offered());
    EXPECT_FALSE(tally.Note(false));
    EXPECT_FALSE(tally.Note(true)) << "not two in a row";
    EXPECT_FALSE(tally.Note(false));
    EXPECT_TRUE(tally.Note(false));
    EXPECT_FALSE(tally.offered());
    ProbeTally first(1, 1);
    EXPECT_TRUE(first.Note(false)) << "the first finding is news";
}

struct Rig {
    std::atomic<bool> works{false};
    std::atomic<int> offered{0};
    std::vector<std::string> log;
    std::mutex mutex;
    std::unique_ptr<Probes> probes;

    void Make(std::vector<Probe> all) {
        base::Logger logger(
            [this](const LogRecord& record) {
                std::lock_guard guard(mutex);
                log.emplace_back(record.message);
            },
            "test"
        );
        probes = std::make_unique<Probes>(base::SystemClock(), logger, std::move(all));
        probes->OnOffered([this] { ++offered; });
        probes->Start();
    }
    Probe Callback(std::string resource) {
        return {
            .resource = std::move(resource),
            .check = [this]() -> Result<void> {
                if (works) return {};
                return Error{Code::kUnavailable, "down"};
            },
            .every = 10ms};
    }
};

TEST(Probes, WithholdWhatDoesNotWorkUntilItDoes) {
    Rig rig;
    rig.Make({rig.Callback("Ollama")});
    EXPECT_THAT(rig.probes->Withheld(), ElementsAre("ollama"));
    ASSERT_TRUE(Eventually([&] { return rig.probes->Look()[0].failures > 2; }));
    EXPECT_EQ(rig.probes->Look()[0].message, "down");
    EXPECT_EQ(rig.offered, 0);
    rig.works = true;
    ASSERT_TRUE(Eventually([&] { return rig.probes->Withheld().empty(); }));
    ASSERT_TRUE(Eventually([&] { return rig.offered == 1; }));
    EXPECT_TRUE(rig.probes->Look()[0].since);
    rig.works = false;
    ASSERT_TRUE(Eventually([&] { return !rig.probes->Withheld().empty(); }));
    rig.probes->Stop();
    EXPECT_THAT(rig.log, testing::Contains("a resource is withheld"));
    EXPECT_THAT(rig.log, testing::Contains("a resource is offered"));
}

TEST(Probes, OfOneResourceMustAllSucceed) {
    Rig rig;
    rig.works = true;
    std::atomic<bool> second{false};
    Probe other = rig.Callback("gpu");
    other.check = [&]() -> Result<void> {
        if (second) return {};
        return Error{Code::kUnavailable, "second"};
    };
    rig.Make({rig.Callback("gpu"), other});
    ASSERT_TRUE(Eventually([&] { return rig.probes->Look()[0].offered; }));
    EXPECT_THAT(rig.probes->Withheld(), ElementsAre("gpu"));
    second = true;
    ASSERT_TRUE(Eventually([&] { return rig.probes->Withheld().empty(); }));
}

TEST(Probes, ACallbackThatHangsCountsAsFailedAndHoldsUpNothing) {
    engine::Gate gate;
    auto calls = std::make_shared<std::atomic<int>>(0);
    Rig rig;
    Probe probe = rig.Callback("slow");
    probe.timeout = 30ms;
    // The thread is left behind: it holds nothing of this test but what is shared.
    auto held = std::make_shared<engine::Gate>();
    probe.check = [calls, held]() -> Result<void> {
        if (++*calls > 1) held->Pass();
        return {};
    };
    rig.Make({probe});
    ASSERT_TRUE(held->WaitForVisitors(1));
    ASSERT_TRUE(Eventually([&] { return !rig.probes->Withheld().empty(); }))
        << "it was offered, and its check is late";
    rig.probes->Stop();
    rig.probes.reset();
    EXPECT_THAT(
        rig.log, testing::Contains("a probe's callback does not return; its thread is left behind")
    );
    held->Open();
}

TEST(Probes, WhatCannotBeProbedIsRefusedWithTheCure) {
    auto message = [](Probe probe) -> std::string {
        try {
            Probes probes(base::SystemClock(), base::Logger({}, "test"), {std::move(probe)});
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message({.resource = "r", .check = HttpProbe{"http://[::1]:80/x"}}), "accepted");
    EXPECT_THAT(
        message({.resource = "r", .check = HttpProbe{"https://a/"}}), HasSubstr("needs a command")
    );
    EXPECT_THAT(
        message({.resource = "r", .check = HttpProbe{"http://a:x/"}}), HasSubstr("its port")
    );
    EXPECT_THAT(
        message({.resource = "r", .check = HttpProbe{"http://a/b c"}}), HasSubstr("percent-encoded")
    );
    EXPECT_THAT(message({.resource = "r", .check = HttpProbe{"ftp://a"}}), HasSubstr("http://"));
    EXPECT_THAT(message({.resource = "r", .check = TcpProbe{"a", 0}}), HasSubstr("a port"));
    EXPECT_THAT(message({.resource = "r", .check = CommandProbe{}}), HasSubstr("is empty"));
    EXPECT_THAT(message({.resource = "r", .check = CallbackProbe{}}), HasSubstr("is empty"));
    EXPECT_THAT(message({.resource = "", .check = CommandProbe{{"true"}}}), HasSubstr("resource"));
    EXPECT_THAT(
        message({.resource = "r", .check = CommandProbe{{"true"}}, .every = 0ms}),
        HasSubstr("every is 0 ms")
    );
}

}  // namespace
}  // namespace stint::services
