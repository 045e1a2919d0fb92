// Will running instances of a flow survive this change of its code? Export the histories of some
// (`stint flow show ID --history`, Flows::History) and replay them in a test:
//
//     stint::testing::FlowReplayed replayed =
//         stint::testing::ReplayFlow(history, kCheckout, Checkout);
//     EXPECT_EQ(replayed.divergence, "");
//
// Nothing is executed: what the history does not answer ends the replay.
#pragma once

#include <stint/flow.h>
#include <stint/task.h>

#include <string>
#include <string_view>
#include <utility>

namespace stint::testing {

struct FlowReplayed {
    std::string divergence;  // the first one, explained; empty = none
    std::string stopped_at;  // the step at which the history ended, or diverged
    bool finished = false;   // the function returned
    std::string output;      // JSON, then
    std::string failure;     // it failed with this, as a flow may
};

FlowReplayed ReplayErased(std::string_view history, const detail::ErasedFlow& flow);

// Throws std::invalid_argument for a history that cannot be read.
template <class In, class Out, FlowFor<In, Out> F>
FlowReplayed ReplayFlow(std::string_view history, const Task<In, Out>&, F flow) {
    return ReplayErased(history, detail::EraseFlow<In, Out>(std::move(flow)));
}

}  // namespace stint::testing
