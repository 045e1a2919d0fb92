// What a worker's heartbeat tells of it: what it does, and what it would not take now, so that
// others can say why a task is not taken. As old as the last heartbeat.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/room.h"

namespace stint::model {

struct WorkerNote {
    std::string doing;                                 // the name of a WorkerState
    std::vector<std::string> withheld;                 // resources
    std::map<std::string, int> queue_room, type_room;  // so many more of these
    Room resource_room;
    friend bool operator==(const WorkerNote&, const WorkerNote&) = default;
};

// "polling", or "polling; withheld gpu; room queue:slow=1 type:render=0". What does not fit within
// limits::kWorkerNote is left out.
std::string NoteText(const WorkerNote& note);
WorkerNote NoteOf(std::string_view text);

}  // namespace stint::model
