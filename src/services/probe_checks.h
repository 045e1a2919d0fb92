// One check of a probe: a callback, a connection, a GET, a command.
#pragma once

#include <stint/probe.h>

#include <stop_token>

namespace stint::services {

// Whether it is one that can be run at all; the message says what to write instead.
Result<void> CheckOfProbe(const Probe& probe);
// That, and whether all else of it can be. The message names the resource, the field and the cure.
Result<void> ValidateProbe(const Probe& probe);

// Blocks, not longer than the probe's timeout unless a callback or a name server does. Never
// throws.
Result<void> RunProbe(const Probe& probe, std::stop_token stop);

}  // namespace stint::services
