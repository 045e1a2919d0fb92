// Where things are on this machine.
#pragma once

#include <string>

#include "node/open_store.h"

namespace stint::node {

extern const char* const kVersion;  // of this program, such as "0.1.0"

std::string HostName();

// Spool and flight records: beside the SQLite file, else $XDG_STATE_HOME/stint or
// ~/.local/state/stint, else none.
std::string DefaultStateDir(const StoreUrl& url);

// Each store has its own folder in there: what a worker of one store left behind would be refused,
// and then thrown away, by another. Empty stays empty.
std::string StateDirOfStore(const std::string& state_dir, const std::string& identity);

}  // namespace stint::node
