#include "model/condition.h"

#include <array>

namespace stint::model {

namespace {

struct Words {
    std::string_view name;
    std::string_view text;
};

constexpr std::array kWords = {
    Words{"eligible", "The next claim may take it."},
    Words{
        "not_waiting",
        "It is not waiting to be claimed: it runs, waits for something else, or is finished."},
    Words{"not_due", "Its due time is in the future."},
    Words{"start_by_passed", "Its start-by deadline is over; housekeeping will mark it dead."},
    Words{"queue_paused", "Its queue is paused; resume the queue to let it run."},
    Words{"queue_not_served", "The worker does not serve its queue."},
    Words{"type_not_handled", "The worker has no handler for its type."},
    Words{"cancel_requested", "A cancel was requested; it will not be started again."},
    Words{
        "suspect_must_be_alone",
        "It was running when its process crashed; only an idle worker takes it, alone."},
    Words{"session_not_live", "The worker's session is over; it must open a new one first."},
    Words{
        "behind_in_order",
        "An earlier task of its order key is not over; it goes when that one is."},
    Words{"label_missing", "It requires a label that the worker does not carry."},
    Words{"no_room", "The worker runs as many of its queue, type or resource as it takes at once."},
    Words{"resource_withheld", "The worker's node cannot offer a resource that it needs."},
    Words{
        "resource_closed",
        "Tasks have found that a resource it needs does not work; it waits without losing "
        "attempts."},
    Words{"rate_limited", "No more tasks may start with a resource that it needs just now."},
    Words{
        "resource_full", "What it needs of a resource is held by others, or for those before it."},
};
static_assert(kWords.size() == kConditionCount);

}  // namespace

std::string_view ConditionName(Condition condition) {
    return kWords.at(static_cast<std::size_t>(condition)).name;
}
std::string_view ConditionText(Condition condition) {
    return kWords.at(static_cast<std::size_t>(condition)).text;
}

}  // namespace stint::model
