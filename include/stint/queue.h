// How the tasks of a queue take turns, where priority and place in the line are not enough.
//
//     // While others wait, too, three tasks of tenant 7 start for each one of another tenant.
//     engine.queues().SetTurns("mail", {.fair = true, .weights = {{TenantId(7), 3}}});
//     // Whoever has waited for an hour is twelve steps of priority further.
//     engine.queues().SetTurns("*", {.aging = 5min});
//
// What limits a queue is elsewhere: how many of its tasks run at once is the capacity of the
// resource "queue:NAME" (<stint/resource.h>).
#pragma once

#include <stint/ids.h>
#include <stint/info.h>
#include <stint/result.h>
#include <stint/time.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace stint {

struct QueueTurns {
    // Of the tasks of one priority the tenant is next of which the fewest have started lately,
    // measured by its weight, with one slot as with a thousand. Weights imply it.
    bool fair = false;
    std::map<TenantId, int> weights = {};  // 1 where not named
    // A task gains one step of priority for each such time that it has waited, up to the highest
    // priority: so none waits behind others for ever. Zero = none.
    Duration aging = Duration::zero();
    friend bool operator==(const QueueTurns&, const QueueTurns&) = default;
};

// The queues of an engine's store: Engine::queues(). Valid as long as the engine.
class Queues {
public:
    // All of it, from the next claim of every worker on. "*": of each queue that has no turns of
    // its own. kInvalid, kLimit: what is wrong and what would be right.
    Result<void> SetTurns(std::string_view queue, const QueueTurns& turns);
    // What holds for the queue: its own, else those of "*", else by priority and place.
    Result<QueueTurns> Turns(std::string_view queue);
    Result<std::map<std::string, QueueTurns>> AllTurns();  // those that were set, by queue
    Result<bool> RemoveTurns(std::string_view queue);      // false: there were none

    // What keeps its waiting tasks, in shares: by the conditions of the claim itself, for the
    // workers that are there. Reads all that waits in the queue once; not for every second.
    //
    //     for (const auto& share : engine.queues().Why("mail").value().shares)
    //         std::cout << share.tasks << " " << share.condition << ": " << share.cure << "\n";
    Result<QueueWait> Why(std::string_view queue);

private:
    friend class Engine;
    struct Body;
    explicit Queues(std::shared_ptr<Body> body) : body_(std::move(body)) {}

    std::shared_ptr<Body> body_;
};

}  // namespace stint
