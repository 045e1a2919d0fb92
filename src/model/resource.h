// Named resources: how many tasks may use one at once, how often, and whether it works at all; and
// where and with what a task may run.
#pragma once

#include <stint/time.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint::model {

// So many units of a resource for as long as the task runs. Names are case-insensitive: kept in
// lower case.
struct Need {
    std::string resource;
    int units = 1;
    friend auto operator<=>(const Need&, const Need&) = default;
};
using Needs = std::vector<Need>;  // canonical: by name, each name once

// What becomes of the tasks behind one that failed for good, where tasks of a key go one by one.
enum class OnFailedHead : std::uint8_t {
    kBlock,       // they wait until it is retried or cancelled by an operator
    kSkip,        // the next one goes
    kDeadLetter,  // all that wait behind it become DEAD with it
};

// Where and with what a task may run. Tasks with the same placement, queue, type, tenant and
// priority wait in one line.
struct Placement {
    Needs needs;
    std::vector<std::string> labels;  // a worker must carry all of these; by name, each once
    std::string order_key;            // tasks of one key run one at a time, in submit order
    OnFailedHead on_failed_head = OnFailedHead::kBlock;
    friend bool operator==(const Placement&, const Placement&) = default;
};

}  // namespace stint::model
