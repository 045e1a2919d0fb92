// Named resources, shared by all workers of a store: how many units of one may be in use at once,
// how often it may be used, and whether it works at all.
//
//     engine.resources().Set("ollama", {.capacity = 2});
//     engine.resources().Set("host:*", {.capacity = 2});     // each host by itself
//     engine.resources().Set("mail-api", {.rate = ResourceRate{.count = 100, .period = 1min}});
//
// A task names what it needs on its type (TaskDefaults::needs), when it is submitted
// (SubmitOptions::needs) or while it runs (Context::Require). It starts when it can have all of it.
// What nobody has set is without limit.
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

namespace store {
class Store;
}
namespace wake {
class Wake;
}

// At most `count` starts per `period`, at most `burst` of them at once (0 = count).
struct ResourceRate {
    int count = 0;
    Duration period = Duration::zero();
    int burst = 0;
};

// What is left out stays as it is; a new resource is without limit.
struct ResourceOptions {
    std::optional<int> capacity = {};  // units in use at once
    bool unlimited = false;            // takes the capacity away
    std::optional<ResourceRate> rate = {};
    bool unrated = false;  // takes the rate away
    // Reports of ResourceUnavailable in a row that close it, and for how long at first and at most:
    // twice as long after each try that failed.
    std::optional<int> close_after = {};
    std::optional<Duration> close_for = {};
    std::optional<Duration> close_at_most = {};
};

struct ResourceInfo {
    std::string name;             // lower case; with a trailing * a default for names
    std::string pattern;          // whose settings these are, where they are not its own
    std::optional<int> capacity;  // none = without limit
    std::optional<ResourceRate> rate;
    int held = 0;                       // units in use
    std::vector<TaskId> holders;        // the first hundred
    std::int64_t waiting = 0;           // tasks that need it and are not running
    std::string state;                  // "open", "closed", "trying"
    std::optional<Time> closed_until;   // nothing starts before
    std::vector<std::string> evidence;  // what was reported, newest first
};

// The resources of an engine's store: Engine::resources(). Valid as long as the engine.
class Resources {
public:
    Result<ResourceInfo> Set(std::string_view name, const ResourceOptions& options);
    Result<ResourceInfo> Get(std::string_view name);
    Result<std::vector<ResourceInfo>> List();
    Result<bool> Remove(std::string_view name);  // false: there was none
    // Lets tasks use it again, or none for so long, whatever its own state is.
    Result<bool> Open(std::string_view name);
    Result<bool> Close(std::string_view name, Duration length, std::string_view reason = {});

private:
    friend class Engine;
    Resources(store::Store& store, wake::Wake& wake) : store_(&store), wake_(&wake) {}

    store::Store* store_;
    wake::Wake* wake_;
};

}  // namespace stint
