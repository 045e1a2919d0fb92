#include "cli/bench_arm.h"

#include <fmt/format.h>

namespace stint::cli {

namespace {

std::vector<Cell> Row(const BenchArm& arm, std::size_t round) {
    const BenchFacts& facts = arm.rounds[round];
    return {
        {arm.name},
        {std::to_string(round + 1)},
        {std::to_string(facts.tasks)},
        {fmt::format("{:.3f}", facts.seconds)},
        {fmt::format("{:.0f}", facts.rate())},
    };
}

base::OrderedJson AsJson(BenchRig& rig, const BenchArm& arm) {
    base::OrderedJson json = {
        {"arm", arm.name},
        {"tasks", arm.sum.tasks},
        {"seconds", arm.sum.seconds},
        {"tasks_per_s", arm.sum.rate()},
        {"rounds", base::OrderedJson::array()}};
    for (const BenchFacts& round : arm.rounds) {
        json["rounds"].push_back(
            {{"tasks", round.tasks}, {"seconds", round.seconds}, {"tasks_per_s", round.rate()}}
        );
    }
    AddFacts(json, arm.sum, rig.meter());
    return json;
}

}  // namespace

void PrintArms(
    BenchRig& rig,
    base::OrderedJson& result,
    const std::vector<const BenchArm*>& arms,
    const BenchFacts& about
) {
    rig.Conclude(result, about);
    Listing listing;
    listing.headers = {"ARM", "ROUND", "TASKS", "SECONDS", "TASKS/S"};
    result["arms"] = base::OrderedJson::array();
    for (const BenchArm* arm : arms) {
        for (std::size_t i = 0; i < arm->rounds.size(); ++i) listing.rows.push_back(Row(*arm, i));
        result["arms"].push_back(AsJson(rig, *arm));
    }
    rig.Print(result, &listing);
}

}  // namespace stint::cli
