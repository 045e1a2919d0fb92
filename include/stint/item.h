// Results of single objects inside one task.
#pragma once

#include <stint/codec.h>

#include <cstdint>
#include <string>

namespace stint {

// What became of one object. The same key again, in this attempt or a later one, replaces it.
struct ItemResult {
    std::string key;     // of the object, unique in the task; at most 256 bytes
    std::string action;  // "create", "update", "skip", …; at most 64 bytes
    Json before = {};    // JSON, at most 64 KiB each
    Json after = {};
    std::string error = {};  // empty: it went well
};

// Of a task's items. When a handler completes: all in error is a failed attempt, some are a
// completion with a warning.
struct ItemCounts {
    std::int64_t total = 0;
    std::int64_t errors = 0;
    friend bool operator==(const ItemCounts&, const ItemCounts&) = default;
};

}  // namespace stint
