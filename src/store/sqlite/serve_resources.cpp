#include "store/sqlite/serve.h"
#include "store/sqlite/wire_resources.h"

namespace stint::store::lite {

bool ServeResources(Operation operation, ResourceStore& s, Decoder& in, Encoder& out) {
    using Text = std::string;
    switch (operation) {
        case Operation::kResourceChange:
            Reply<ResourceChange, Text>(in, out, [&](auto& x, auto& actor) {
                return s.Change(x, actor);
            });
            return true;
        case Operation::kResourceRemove:
            Reply<Text, Text>(in, out, [&](auto& name, auto& actor) {
                return s.Remove(name, actor);
            });
            return true;
        case Operation::kResourceReopen:
            Reply<Text, Text>(in, out, [&](auto& name, auto& actor) {
                return s.Reopen(name, actor);
            });
            return true;
        case Operation::kResourceClose:
            Reply<Text, Duration, Text, Text>(
                in,
                out,
                [&](auto& name, Duration length, auto& reason, auto& actor) {
                    return s.Close(name, length, reason, actor);
                }
            );
            return true;
        case Operation::kOrderSet:
            Reply<QueueOrder, Text>(in, out, [&](auto& x, auto& actor) {
                return s.SetOrder(x, actor);
            });
            return true;
        case Operation::kOrderRemove:
            Reply<Text, Text>(in, out, [&](auto& queue, auto& actor) {
                return s.RemoveOrder(queue, actor);
            });
            return true;
        case Operation::kResourceList:
            Reply<>(in, out, [&] { return s.List(); });
            return true;
        case Operation::kResourceFind:
            Reply<Text>(in, out, [&](auto& name) { return s.Find(name); });
            return true;
        case Operation::kOrders:
            Reply<>(in, out, [&] { return s.Orders(); });
            return true;
        default:
            return false;
    }
}

}  // namespace stint::store::lite
