// Rows of live tasks as they were read or written last: the end of an attempt need not read again
// what its claim has read.
//
// Exact because nobody else writes the file, as long as whoever owns this says Drop() of each row
// that a statement changes, and Clear() after a rollback.
#pragma once

#include <vector>

#include "store/sqlite/row.h"

namespace stint::store::lite {

class RecentRows {
public:
    const TaskRow* Find(TaskId id) const;
    void Keep(const TaskRow& row);
    void Drop(TaskId id);
    void Clear();

private:
    // By the end of its id, each in one place: tasks that are claimed together mostly follow each
    // other. As many as a worker may hold and claim at once.
    static constexpr std::size_t kPlaces = 2048;
    static constexpr std::size_t kLargest = 4096;  // bytes of what may be long: all stay small

    static std::size_t PlaceOf(TaskId id) { return static_cast<std::size_t>(id.value()) % kPlaces; }

    std::vector<TaskRow> places_;  // made when first needed; no valid id = free
};

}  // namespace stint::store::lite
