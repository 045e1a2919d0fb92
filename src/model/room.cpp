#include "model/room.h"

#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"

namespace stint::model {

using base::MakeError;
using base::Quoted;

namespace {

Room::const_iterator EntryFor(const Room& room, std::string_view resource) {
    if (room.empty()) return room.end();
    auto own = room.find(std::string(resource));
    return own != room.end() ? own : room.find(PatternFor(room, resource));
}

}  // namespace

std::optional<int> RoomOf(const Room& room, std::string_view resource) {
    auto entry = EntryFor(room, resource);
    if (entry == room.end()) return std::nullopt;
    return entry->second;
}

void TakeRoom(Room& room, const std::string& resource) {
    // Not below none: a limit may have been lower than what is held already.
    if (auto left = RoomOf(room, resource)) room[resource] = *left > 0 ? *left - 1 : 0;
}

Result<Room> RoomFrom(std::string_view field, const std::map<std::string, int>& given) {
    Room room;
    for (const auto& [name, at_once] : given) {
        if (auto ok = ValidateResourceName(field, name, true); !ok) return ok.error();
        std::string canonical = ResourceName(name);
        if (!ReservedPrefix(canonical).empty()) {
            return MakeError(
                Code::kInvalid,
                "{}: {} stands for a queue or a type; limit a queue by at_once_of_queue, and a "
                "type by its at_once_per_worker",
                field,
                Quoted(name)
            );
        }
        if (at_once < 0 || at_once > limits::kSlots) {
            return MakeError(
                Code::kInvalid,
                "{} of {} is {}; it must be between 0 (none of it) and {}",
                field,
                Quoted(name),
                at_once,
                limits::kSlots
            );
        }
        if (room.emplace(std::move(canonical), at_once).second) continue;
        return MakeError(
            Code::kInvalid,
            "{}: {} is there twice, since names are case-insensitive; keep one of them",
            field,
            Quoted(name)
        );
    }
    return room;
}

}  // namespace stint::model
