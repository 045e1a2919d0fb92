// Chooses how hints travel for a store.
#pragma once

#include <stint/log.h>

#include <memory>

#include "node/open_store.h"
#include "wake/wake.h"

namespace stint::node {

std::unique_ptr<wake::Wake> MakeWake(const StoreUrl& url, const LogSink& log);

}  // namespace stint::node
