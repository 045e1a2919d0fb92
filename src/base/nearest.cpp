#include "base/nearest.h"

#include <algorithm>
#include <vector>

namespace stint::base {

namespace {

char Lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

template <class Candidates>
std::string_view NearestOf(std::string_view word, const Candidates& candidates) {
    // A third of the word may be wrong; more is guessing.
    int best = std::max(1, static_cast<int>(word.size() + 1) / 3) + 1;
    std::string_view found;
    for (std::string_view candidate : candidates) {
        int distance = EditDistance(word, candidate);
        if (distance < best) {
            best = distance;
            found = candidate;
        }
    }
    if (!found.empty() || word.size() < 3) return found;
    // "mig" for "migrate": not near in edits, but clearly meant.
    for (std::string_view candidate : candidates) {
        if (candidate.starts_with(word)) return candidate;
    }
    return {};
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
    // Names are short; what is longer than this is not a typing mistake of a name.
    constexpr std::size_t kLongest = 128;
    if (a.size() > kLongest || b.size() > kLongest) return static_cast<int>(kLongest);
    std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = static_cast<int>(i);
    for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = static_cast<int>(j);
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            int replace = cost[i - 1][j - 1] + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
            if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
                Lower(a[i - 2]) == Lower(b[j - 1])) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
    return NearestOf(word, candidates);
}

std::string_view Nearest(std::string_view word, std::span<const std::string> candidates) {
    return NearestOf(word, candidates);
}

}  // namespace stint::base
