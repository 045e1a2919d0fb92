// Which process is behind a session, so that the death of one can be known instead of waited for.
#pragma once

#include <stint/ids.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::store::lite {

using HandleId = RandomId<struct HandleIdTag>;  // one open store object

struct Opener {
    HandleId handle;
    std::string process;  // see ProcessIdentity
};

// "<boot>/<pid namespace>/<pid>/<start time>": names one process for ever. Empty when the process
// cannot be seen.
std::string ProcessIdentity(std::int64_t pid);

// True only when it is certain: another boot, no such pid, or the pid was given to another process.
// A process of another pid namespace cannot be judged and counts as alive.
bool ProcessIsGone(std::string_view identity);

std::string CommandOfThisProcess();
std::string HostName();

}  // namespace stint::store::lite
