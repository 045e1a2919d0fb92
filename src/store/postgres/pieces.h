// What one statement would carry too much of, in pieces: a server takes at most 1 GiB in one value,
// and both sides hold a statement in memory several times over.
#pragma once

#include <cstddef>
#include <vector>

#include "model/limits.h"

namespace stint::store::pg {

struct Piece {
    std::size_t from = 0;
    std::size_t count = 0;
    friend bool operator==(const Piece&, const Piece&) = default;
};

// One audit entry says the same of so many tasks at most: its ids stay within a page.
inline constexpr std::size_t kTasksPerEntry = 500;

// `bytes_of` tells the size of an item's texts. A piece has at least one item.
template <class Items, class BytesOf>
std::vector<Piece> Pieces(const Items& items, BytesOf bytes_of) {
    constexpr std::size_t kRest = 512;  // of an item beside its large texts, generously
    std::vector<Piece> pieces;
    std::size_t bytes = 0, at = 0;
    for (const auto& item : items) {
        std::size_t size = bytes_of(item) + kRest;
        if (pieces.empty() || bytes + size > model::limits::kStatementBytes) {
            pieces.push_back({at, 0});
            bytes = 0;
        }
        bytes += size;
        ++pieces.back().count;
        ++at;
    }
    return pieces;
}

}  // namespace stint::store::pg
