// Summary of measured times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stint::cli {

struct Percentiles {
    double p50 = 0, p95 = 0, p99 = 0, max = 0;
};

// Nearest rank: each is one of the samples. All zero without samples.
inline Percentiles Summarise(std::vector<double> samples) {
    if (samples.empty()) return {};
    std::sort(samples.begin(), samples.end());
    auto rank = [&](std::size_t percent) {
        std::size_t index = (samples.size() * percent + 99) / 100;
        return samples[std::max<std::size_t>(index, 1) - 1];
    };
    return {rank(50), rank(95), rank(99), samples.back()};
}

}  // namespace stint::cli
