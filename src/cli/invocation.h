// What a command gets to work with: the configuration after precedence, standard output as data,
// standard error as talk, and the store.
#pragma once

#include <fmt/format.h>
#include <stint/log.h>

#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "node/client.h"
#include "node/config.h"

namespace stint::cli {

class Invocation {
public:
    Invocation(node::Config config, bool quiet, bool progress);

    const node::Config& config() const { return config_; }
    const Output& out() const { return out_; }
    bool quiet() const { return quiet_; }
    bool progress() const { return progress_; }
    LogSink log() const { return log_; }

    // Who acts, for the audit log: the configured actor, else "operator:<user>".
    std::string actor() const;
    const std::string& store_url() const { return config_.Text("store"); }

    // For commands that may make a store, and for those that only look at one.
    node::Client OpenStore() const;
    node::Client LookAtStore() const;

    // A line of talk on standard error, unless --quiet.
    template <class... Args>
    void Say(fmt::format_string<Args...> format, Args&&... args) const {
        if (!quiet_) SayText(fmt::format(format, std::forward<Args>(args)...));
    }
    // Suggests the next command; only to a person at a terminal.
    template <class... Args>
    void Suggest(fmt::format_string<Args...> format, Args&&... args) const {
        if (terminal_ && !quiet_) SayText(fmt::format(format, std::forward<Args>(args)...));
    }
    // A warning: also with --quiet.
    void Warn(std::string_view text) const;

private:
    static void SayText(std::string_view text);

    node::Config config_;
    Output out_;
    bool quiet_;
    bool progress_;
    bool terminal_;  // standard error is one
    LogSink log_;
};

}  // namespace stint::cli
