// What the doors may ask about flows. Throws StoreError, see client.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "store/flows.h"
#include "wake/wake.h"

namespace stint::node {

// The words of the store that the doors share.
using store::FlowListRequest;

// A flow and the task that it is.
struct FlowView {
    model::FlowRecord flow;
    model::TaskRecord task;
    std::string waits_for;  // in words; empty = for nothing of its own
};

class FlowClient {
public:
    FlowClient(store::Store& store, wake::Wake& wake) : store_(store), wake_(wake) {}

    // The signal is kept now: "accepted", "existing", or "woken".
    Result<std::string_view> Signal(const model::NewSignal& signal);
    std::vector<FlowView> List(const store::FlowListRequest& request);
    struct Details {
        FlowView view;
        model::FlowHistory history;
    };
    Result<Details> Get(TaskId task);
    Result<std::string> History(TaskId task);  // as stint::testing::ReplayFlow reads it
    struct Forked {
        TaskId task;
        int steps = 0;  // taken over
    };
    Result<Forked> Fork(TaskId task, std::string_view step, int occurrence, std::string_view actor);

private:
    void Hint(const std::string& queue);

    store::Store& store_;
    wake::Wake& wake_;
};

base::OrderedJson ToJson(const FlowView& view);
base::OrderedJson ToJson(const model::FlowStep& step);
base::OrderedJson ToJson(const model::FlowSignal& signal);

}  // namespace stint::node
