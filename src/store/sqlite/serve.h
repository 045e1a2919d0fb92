// How the owner answers one request.
#pragma once

#include <tuple>
#include <type_traits>

#include "store/events.h"
#include "store/flows.h"
#include "store/resources.h"
#include "store/results.h"
#include "store/schedules.h"
#include "store/sqlite/protocol.h"

namespace stint::store::lite {

// Decodes Args, calls `work` with them, encodes what it returns.
template <class... Args, class Work>
void Reply(Decoder& in, Encoder& out, Work&& work) {
    std::tuple<Args...> args;
    std::apply([&in](Args&... arg) { in(arg...); }, args);
    in.End();
    auto call = [&](Args&... arg) { return work(arg...); };
    out(Outcome::kReply);
    if constexpr (std::is_void_v<decltype(std::apply(call, args))>) {
        std::apply(call, args);
    } else {
        out(std::apply(call, args));
    }
}

// server_schedules.cpp. False: the operation is none of its own.
bool ServeSchedules(Operation operation, ScheduleStore& store, Decoder& in, Encoder& out);
// False: it is not one about events.
bool ServeEvents(Operation operation, EventStore& events, Decoder& in, Encoder& out);
// False: it is not one about flows.
bool ServeFlows(Operation operation, FlowStore& flows, Decoder& in, Encoder& out);
bool ServeResources(Operation operation, ResourceStore& resources, Decoder& in, Encoder& out);
// False: it is not one about results.
bool ServeResults(Operation operation, ResultStore& results, Decoder& in, Encoder& out);

}  // namespace stint::store::lite
