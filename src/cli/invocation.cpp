#include "cli/invocation.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdio>

#include "cli/log_lines.h"

namespace stint::cli {

Invocation::Invocation(node::Config config, bool quiet, bool progress)
    : config_(std::move(config)),
      out_(FormatNamed(config_.Text("output.format")), WantColor(config_.Text("output.color"))),
      quiet_(quiet),
      progress_(progress),
      terminal_(isatty(STDERR_FILENO) == 1),
      log_(MakeLogSink(config_.Text("log.level"), config_.Text("log.format"))) {
}

std::string Invocation::actor() const {
    if (const std::string& named = config_.Text("actor"); !named.empty()) return named;
    const passwd* user = getpwuid(geteuid());
    return fmt::format("operator:{}", user != nullptr ? user->pw_name : std::to_string(geteuid()));
}

node::Client Invocation::OpenStore() const {
    return node::Client::Open(store_url(), node::Client::IfMissing::kCreate, log_);
}

node::Client Invocation::LookAtStore() const {
    return node::Client::Open(store_url(), node::Client::IfMissing::kRefuse, log_);
}

void Invocation::Warn(std::string_view text) const {
    SayText(fmt::format("stint: {}", text));
}

void Invocation::SayText(std::string_view text) {
    fmt::print(stderr, "{}\n", text);
}

}  // namespace stint::cli
