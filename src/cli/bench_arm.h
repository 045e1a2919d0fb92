// Things that are measured against each other in one run.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_rig.h"

namespace stint::cli {

struct BenchArm {
    std::string name;
    std::vector<BenchFacts> rounds = {};
    BenchFacts sum = {};

    void Add(const BenchFacts& facts) {
        rounds.push_back(facts);
        sum += facts;
    }
};

// Concludes with the facts of the one that the benchmark is about, and prints all: each round as a
// row, and in "arms" of the object.
void PrintArms(
    BenchRig& rig,
    base::OrderedJson& result,
    const std::vector<const BenchArm*>& arms,
    const BenchFacts& about
);

}  // namespace stint::cli
