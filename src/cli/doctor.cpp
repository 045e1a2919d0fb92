// stint doctor
#include "node/doctor.h"

#include <algorithm>

#include "base/clock.h"
#include "cli/program.h"

namespace stint::cli {

namespace {

using node::Diagnosis;
using Verdict = Diagnosis::Verdict;

struct NoOptions {};

Cell VerdictCell(Verdict verdict) {
    switch (verdict) {
        case Verdict::kOk:
            return {"ok", Tint::kGood};
        case Verdict::kLook:
            return {"LOOK", Tint::kWarn};
        case Verdict::kBroken:
            return {"BROKEN", Tint::kBad};
    }
    return {"BROKEN", Tint::kBad};
}

void Print(const Invocation& invocation, const std::vector<Diagnosis>& found, bool good) {
    Listing listing;
    listing.name = "checks";
    listing.headers = {"", "PART", "CHECKED", "FOUND"};
    for (const Diagnosis& one : found) {
        listing.rows.push_back(
            {VerdictCell(one.verdict), {one.part, Tint::kFaint}, {one.what}, {one.detail}}
        );
        // On a line of its own, where the eye falls.
        if (!one.cure.empty()) listing.rows.push_back({{}, {}, {}, {"-> " + one.cure}});
        listing.objects.push_back(node::ToJson(one));
        listing.ids.push_back(one.what);
    }
    listing.extra["ok"] = good;
    invocation.out().Print(listing);
}

void Conclude(const Invocation& invocation, const std::vector<Diagnosis>& found) {
    auto count = [&](Verdict verdict) {
        return std::ranges::count(found, verdict, &Diagnosis::verdict);
    };
    if (auto broken = count(Verdict::kBroken); broken > 0) {
        invocation.Say("BROKEN: {} of {} checks; begin with the first", broken, found.size());
    } else if (auto look = count(Verdict::kLook); look > 0) {
        invocation.Say(
            "nothing is broken; of {} checks {} ask somebody to look", found.size(), look
        );
    } else {
        invocation.Say("all is well: {} checks", found.size());
    }
}

int Examine(Invocation& invocation, const NoOptions&) {
    std::vector<Diagnosis> found = node::ExamineConfig(invocation.config());
    int status = kOk;
    auto add = [&](std::vector<Diagnosis> more) {
        std::ranges::move(more, std::back_inserter(found));
    };
    try {
        node::Client client = invocation.LookAtStore();
        add(node::ExamineStore(client, base::SystemClock().WallTime()));
        add(node::ExamineWork(client));
    } catch (const node::StoreError& error) {
        // What was found until then is told all the same.
        found.push_back(
            {.part = "store",
             .what = "it can be opened and asked",
             .verdict = Verdict::kBroken,
             .detail = error.what(),
             .cure = {}}
        );
        status = ExitOf(error.code());
    }
    bool good = std::ranges::find(found, Verdict::kBroken, &Diagnosis::verdict) == found.end();
    Print(invocation, found, good);
    Conclude(invocation, found);
    return status != kOk ? status : good ? kOk : kFailed;
}

}  // namespace

void AddDoctor(Program& program) {
    program.Command<NoOptions>(
        program.root(),
        "doctor",
        "Checks configuration, store and workers: what is wrong, and what to do.",
        "stint doctor\nstint doctor -o json",
        [](Syntax&, NoOptions&) {},
        Examine
    );
}

}  // namespace stint::cli
