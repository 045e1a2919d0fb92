#include "services/probe_checks.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "base/thread.h"
#include "engine/isolate/command.h"
#include "model/placement.h"

namespace stint::services {

namespace {

using engine::isolate::Fd;

constexpr std::size_t kStatusLine = 4096;
constexpr std::size_t kOutputShown = 256;
constexpr Duration kCommandGrace = std::chrono::milliseconds{200};
constexpr Duration kShortestInterval = std::chrono::milliseconds{10};

std::string ErrorText(int number) {
    return std::generic_category().message(number);
}

// How long one check may take, and whether it is still wanted.
class Limit {
public:
    Limit(Duration timeout, std::stop_token stop)
        : timeout_(timeout), end_(base::SystemClock().Now() + timeout), stop_(std::move(stop)) {}

    // Until the socket can be read or written. False: the time is over, or nobody wants to know.
    bool Wait(const Fd& socket, short events) const {
        while (!stop_.stop_requested()) {
            auto left = std::chrono::ceil<Duration>(end_ - base::SystemClock().Now());
            if (left <= Duration::zero()) return false;
            pollfd ready{socket.get(), events, 0};
            auto slice = std::min<std::int64_t>(left.count(), 100);
            if (poll(&ready, 1, static_cast<int>(slice)) > 0) return true;
        }
        return false;
    }
    Error TimedOut(std::string_view what) const {
        return base::MakeError(Code::kTimeout, "{} within {} ms", what, timeout_.count());
    }
    base::Instant end() const { return end_; }
    const std::stop_token& stop() const { return stop_; }

private:
    const Duration timeout_;
    const base::Instant end_;
    const std::stop_token stop_;
};

Result<Fd> ConnectTo(const addrinfo& address, const Limit& limit) {
    Fd socket(::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) return Error{Code::kUnavailable, ErrorText(errno)};
    if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return socket;
    if (errno != EINPROGRESS) return Error{Code::kUnavailable, ErrorText(errno)};
    if (!limit.Wait(socket, POLLOUT)) return limit.TimedOut("no connection");
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0) return Error{Code::kUnavailable, ErrorText(failure)};
    return socket;
}

Result<Fd> Connect(const std::string& host, int port, const Limit& limit) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
        return base::MakeError(Code::kUnavailable, "{}: {}", host, gai_strerror(failure));
    }
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
    Error last{Code::kUnavailable, "no address"};
    for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
        auto socket = ConnectTo(*one, limit);
        if (socket) return socket;
        last = socket.error();
    }
    return base::MakeError(last.code, "{}:{}: {}", host, port, last.message);
}

// ---- HTTP, as much of it as a probe needs ----

struct Url {
    std::string host;
    int port = 80;
    std::string path = "/";
    std::string authority;  // for the Host header
};

Result<Url> ParseUrl(std::string_view text) {
    auto wrong = [&](std::string_view why) {
        return base::MakeError(Code::kInvalid, "the URL is {}: {}", base::Quoted(text), why);
    };
    constexpr std::string_view kScheme = "http://";
    if (text.starts_with("https://")) {
        return wrong("https needs a command, such as {\"curl\", \"-fsS\", URL}");
    }
    if (!text.starts_with(kScheme)) return wrong("write http://host[:port][/path]");
    bool plain = std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; });
    if (!plain) return wrong("spaces and characters beyond ASCII must be percent-encoded");
    std::string_view rest = text.substr(kScheme.size());
    Url url;
    std::size_t slash = rest.find('/');
    if (slash != rest.npos) url.path = rest.substr(slash);
    url.authority = rest.substr(0, slash);
    std::string_view authority = url.authority;
    std::size_t bracket = authority.find(']');  // of an IPv6 address
    std::size_t colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
    std::string_view host = authority.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    url.host = host;
    if (colon != authority.npos) {
        std::string_view port = authority.substr(colon + 1);
        auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
        bool number = error == std::errc{} && end == port.data() + port.size();
        if (!number || url.port < 1 || url.port > 65535) return wrong("its port is not a number");
    }
    if (url.host.empty()) return wrong("it names no host");
    return url;
}

Result<std::string> FirstLine(const Fd& socket, const Limit& limit) {
    std::string text;
    while (text.size() < kStatusLine) {
        if (!limit.Wait(socket, POLLIN)) return limit.TimedOut("no answer");
        char chunk[512];
        ssize_t got = recv(socket.get(), chunk, sizeof chunk, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) return Error{Code::kUnavailable, "the connection was closed"};
        text.append(chunk, static_cast<std::size_t>(got));
        std::size_t end = text.find("\r\n");
        if (end != text.npos) return text.substr(0, end);
    }
    return Error{Code::kUnavailable, "the answer is not HTTP"};
}

Result<void> Get(const HttpProbe& probe, const Limit& limit) {
    auto url = ParseUrl(probe.url);
    if (!url) return url.error();
    auto socket = Connect(url->host, url->port, limit);
    if (!socket) return socket.error();
    std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: stint\r\nAccept: */*\r\nConnection: "
        "close\r\n\r\n",
        url->path,
        url->authority
    );
    for (std::string_view left = request; !left.empty();) {
        if (!limit.Wait(*socket, POLLOUT)) return limit.TimedOut("the request was not taken");
        ssize_t sent = send(socket->get(), left.data(), left.size(), MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (sent <= 0) return Error{Code::kUnavailable, ErrorText(errno)};
        left.remove_prefix(static_cast<std::size_t>(sent));
    }
    auto line = FirstLine(*socket, limit);
    if (!line) return line.error();
    // HTTP/1.1 200 OK
    int status = 0;
    std::size_t space = line->find(' ');
    if (line->starts_with("HTTP/") && space != line->npos) {
        std::from_chars(line->data() + space + 1, line->data() + line->size(), status);
    }
    if (status >= 100 && status < 400) return {};
    return base::MakeError(Code::kUnavailable, "it answered {}", base::Quoted(*line));
}

// ---- commands ----

// Requests a stop when the time is over or the probe is no longer wanted.
class Timer {
public:
    explicit Timer(const Limit& limit)
        : thread_(base::StartThread([this, &limit](std::stop_token done) {
              std::stop_callback wanted(limit.stop(), [this] { wake_.notify_all(); });
              std::unique_lock lock(mutex_);
              while (!done.stop_requested()) {
                  bool over = base::SystemClock().Now() >= limit.end();
                  if (over || limit.stop().stop_requested()) {
                      source_.request_stop();
                      return;
                  }
                  base::SystemClock().WaitUntil(lock, wake_, done, limit.end());
              }
          })) {}
    std::stop_token token() const { return source_.get_token(); }

private:
    std::stop_source source_;
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // last: it uses the others
};

Result<void> RunCommandProbe(const CommandProbe& probe, const Limit& limit) {
    engine::isolate::CommandRequest request;
    request.argv = probe.argv;
    request.grace = kCommandGrace;
    request.stderr_tail = kOutputShown;
    request.output_limit = kOutputShown;
    Timer timer(limit);
    auto result = engine::isolate::RunCommand(request, timer.token());
    if (result.ok()) return {};
    if (result.stopped) return limit.TimedOut(probe.argv[0] + " did not end");
    std::string end = result.exit_signal
                          ? engine::isolate::SignalName(*result.exit_signal)
                          : fmt::format("exit code {}", result.exit_code.value_or(-1));
    std::string said = base::CleanText(result.stderr_tail, kOutputShown);
    while (said.ends_with('\n')) said.pop_back();
    return base::MakeError(
        Code::kUnavailable, "{}: {}{}{}", probe.argv[0], end, said.empty() ? "" : ": ", said
    );
}

struct Run {
    const Limit& limit;

    Result<void> operator()(const CallbackProbe& callback) const { return callback(); }
    Result<void> operator()(const TcpProbe& tcp) const {
        auto socket = Connect(tcp.host, tcp.port, limit);
        if (!socket) return socket.error();
        return {};
    }
    Result<void> operator()(const HttpProbe& http) const { return Get(http, limit); }
    Result<void> operator()(const CommandProbe& command) const {
        return RunCommandProbe(command, limit);
    }
};

struct Check {
    Result<void> operator()(const CallbackProbe& callback) const {
        if (callback) return {};
        return Error{Code::kInvalid, "its callback is empty"};
    }
    Result<void> operator()(const TcpProbe& tcp) const {
        if (!tcp.host.empty() && tcp.port > 0 && tcp.port < 65536) return {};
        return base::MakeError(
            Code::kInvalid, "it connects to \"{}:{}\"; name a host and a port", tcp.host, tcp.port
        );
    }
    Result<void> operator()(const HttpProbe& http) const {
        auto url = ParseUrl(http.url);
        if (!url) return url.error();
        return {};
    }
    Result<void> operator()(const CommandProbe& command) const {
        if (!command.argv.empty() && !command.argv[0].empty()) return {};
        return Error{Code::kInvalid, "its command is empty; write {\"program\", \"argument\"}"};
    }
};

}  // namespace

Result<void> CheckOfProbe(const Probe& probe) {
    return std::visit(Check{}, probe.check);
}

Result<void> ValidateProbe(const Probe& probe) {
    auto wrong = [&](std::string_view why) {
        return base::MakeError(
            Code::kInvalid, "the probe of resource {}: {}", base::Quoted(probe.resource), why
        );
    };
    if (auto name = model::ValidateResourceName("resource", probe.resource, false); !name) {
        return wrong(name.error().message);
    }
    if (probe.every < kShortestInterval) {
        return wrong(fmt::format("every is {} ms; it must be at least 10 ms", probe.every.count()));
    }
    if (probe.timeout <= Duration::zero()) return wrong("timeout must be positive");
    if (probe.fail_after < 1 || probe.pass_after < 1) {
        return wrong("fail_after and pass_after must be at least 1");
    }
    if (auto good = CheckOfProbe(probe); !good) return wrong(good.error().message);
    return {};
}

Result<void> RunProbe(const Probe& probe, std::stop_token stop) {
    Limit limit(probe.timeout, std::move(stop));
    try {
        return std::visit(Run{limit}, probe.check);
    } catch (const std::exception& error) {
        return Error{Code::kUnavailable, error.what()};
    } catch (...) {
        return Error{Code::kUnavailable, "the check threw something that is not a std::exception"};
    }
}

}  // namespace stint::services
