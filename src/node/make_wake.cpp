#include "node/make_wake.h"

#include "wake/local.h"

namespace stint::node {

std::unique_ptr<wake::Wake> MakeWake(const StoreUrl&, store::Store&, base::Clock&, const LogSink&) {
    return std::make_unique<wake::LocalWake>();
}

}  // namespace stint::node
