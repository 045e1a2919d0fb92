#include "store/sqlite/recent.h"

namespace stint::store::lite {

const TaskRow* RecentRows::Find(TaskId id) const {
    if (places_.empty() || !id.valid()) return nullptr;
    const TaskRow& row = places_[PlaceOf(id)];
    return row.id == id ? &row : nullptr;
}

void RecentRows::Keep(const TaskRow& row) {
    // Long errors come by the thousand when something is down, and a place keeps its memory.
    if (row.input.size() + row.error.size() + row.progress.size() + row.tags.size() > kLargest) {
        return Drop(row.id);
    }
    if (places_.empty()) places_.resize(kPlaces);
    places_[PlaceOf(row.id)] = row;  // its texts keep their memory
}

void RecentRows::Drop(TaskId id) {
    if (places_.empty()) return;
    TaskRow& row = places_[PlaceOf(id)];
    if (row.id == id) row.id = {};
}

void RecentRows::Clear() {
    places_.clear();
}

}  // namespace stint::store::lite
