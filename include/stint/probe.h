// Probes: does a resource work, seen from this process? What does not is withheld from its claims:
// tasks that need it are left to workers that reach it, or wait. Kept in memory only; another
// process may see another thing.
//
//     options.probes = {
//         {.resource = "ollama", .check = stint::HttpProbe{"http://127.0.0.1:11434/"}},
//         {.resource = "ldap", .check = stint::TcpProbe{"ldap.example.org", 389}},
//         {.resource = "gpu", .check = stint::CommandProbe{{"nvidia-smi"}}},
//     };
#pragma once

#include <stint/result.h>
#include <stint/time.h>

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace stint {

// Works: it returns success. Called on a thread of its own, never twice at a time. One that takes
// longer than the probe's timeout counts as failed meanwhile.
using CallbackProbe = std::function<Result<void>()>;

// Works: it accepts a connection.
struct TcpProbe {
    std::string host;
    int port = 0;
};

// Works: it answers GET with a status below 400. For https use a command such as curl -f.
struct HttpProbe {
    std::string url;
};

// Works: it ends with exit code 0. No shell; argv[0] is searched in PATH.
struct CommandProbe {
    std::vector<std::string> argv;
};

struct Probe {
    std::string resource;
    std::variant<CallbackProbe, TcpProbe, HttpProbe, CommandProbe> check;
    Duration every = std::chrono::seconds{5};
    Duration timeout = std::chrono::seconds{2};  // of one check
    int fail_after = 1;                          // failures in a row until it is withheld
    int pass_after = 1;                          // successes in a row until it is offered again
};

// What a probe has found. Before its first check has ended a resource is withheld.
struct ProbeInfo {
    std::string resource;
    bool offered = false;
    std::optional<Time> since;       // it has been so
    std::optional<Time> checked_at;  // the end of the last check
    int failures = 0;                // in a row
    std::string message;             // of the last failure
};

}  // namespace stint
