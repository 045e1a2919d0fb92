// How many more attempts with a resource one worker takes: by name, or by pattern for each name
// that has no entry of its own. A pattern holds for every name by itself, as patterns do.
#pragma once

#include <stint/result.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stint::model {

using Room = std::map<std::string, int>;  // by canonical name

// By its own entry, else by that of the longest pattern; none = no limit.
std::optional<int> RoomOf(const Room& room, std::string_view resource);
// One attempt more has it. What had its room of a pattern gets an entry of its own.
void TakeRoom(Room& room, const std::string& resource);

// What a user gave, by canonical name. An Error names the field, the value and the cure.
Result<Room> RoomFrom(std::string_view field, const std::map<std::string, int>& given);

}  // namespace stint::model
