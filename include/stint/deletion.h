// Deletion in time: an object is marked, and deleted when its grace period is over, unless somebody
// takes the mark away. What has to happen first (follow-ups) completes before the deletion starts;
// both are tasks, in the name of who marked it. Any worker with Options::schedules sweeps; of one
// kind no more than its pace allows are begun per cycle, however many workers there are.
//
//   engine.deletions().Mark("user", "ann", {.task = Later(kDeleteUser, {"ann"}),
//                                           .follow_ups = {Later(kRevoke, {"ann"})},
//                                           .grace = std::chrono::hours{24 * 30}});
#pragma once

#include <stint/ids.h>
#include <stint/result.h>
#include <stint/time.h>
#include <stint/to_come.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

class Engine;
namespace services {
class DeletionDesk;
}

struct DeletionRequest {
    TaskToCome task;                          // deletes the object
    std::vector<TaskToCome> follow_ups = {};  // side by side, before it; one that fails prevents it
    Duration grace = std::chrono::hours{24 * 30};
    std::string initiator = {};  // for the audit log of all of these tasks; empty = "engine"
};

struct DeletionInfo {
    std::string kind;
    std::string key;
    std::string initiator;
    std::string state;  // "marked", "begun"
    Time marked_at{};
    Time delete_at{};
    std::optional<TaskId> task;  // begun: the task whose steps are the follow-ups and the deletion
};

// How fast marks of one kind become deletions.
struct DeletionPace {
    int cap = 50;  // per cycle
    Duration every = std::chrono::minutes{1};
};

// Of an engine's store: Engine::deletions(). Valid as long as the engine.
class Deletions {
public:
    // An object that is marked stays as it is marked: its time and its initiator are the first's.
    Result<DeletionInfo> Mark(
        std::string_view kind, std::string_view key, const DeletionRequest& request
    );
    // Takes the mark away. kConflict: the deletion has begun; cancel its task.
    Result<DeletionInfo> Unmark(std::string_view kind, std::string_view key);
    // By kind and key; `after` is the last key of the page before, and needs the kind.
    Result<std::vector<DeletionInfo>> List(
        std::string_view kind = {}, std::string_view after = {}, int limit = 100
    );
    Result<void> SetPace(std::string_view kind, const DeletionPace& pace);

private:
    friend class Engine;
    Deletions(services::DeletionDesk& desk, TenantId tenant) : desk_(&desk), tenant_(tenant) {}

    services::DeletionDesk* desk_;
    TenantId tenant_;
};

}  // namespace stint
