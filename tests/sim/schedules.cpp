// Schedules, fired by every node, and a clerk who looks after them: pauses, changes, runs now,
// fills in ranges that overlap with what was fired.
#include "sim/schedules.h"

#include <fmt/format.h>

#include <functional>

#include "base/check.h"
#include "base/text.h"
#include "model/schedule_plan.h"
#include "model/time_text.h"
#include "services/schedule_desk.h"
#include "sim/clock.h"
#include "sim/faulty_store.h"
#include "sim/workload.h"

namespace stint::sim {

namespace {

using model::Schedule;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kSteady = seconds{10};
constexpr const char* kNames[] = {"steady", "folded", "busy"};

std::string Big(std::uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<char>(number >> shift));
    }
    return bytes;
}

// One kind of time and nothing else: the rule at the end says it all.
std::string ZoneBlock() {
    std::string header = "TZif2" + std::string(15, '\0');
    for (std::uint32_t count : {0, 0, 0, 0, 1, 4}) header += Big(count);
    return header + Big(0) + std::string(2, '\0') + std::string("AAA\0", 4);
}

class Scheduling final : public Workload {
public:
    explicit Scheduling(Setting& setting)
        : setting_(setting),
          world_(setting.world),
          store_(world_, setting.faults, setting.oracle, setting.store),
          wake_(setting.post),
          desk_(store_, wake_, SimZones()) {}

    void Setup() override {
        Process& process = world_.NewProcess("clerk");
        world_.Spawn(process, "schedules", [this] { Clerk(); });
    }
    void Finish() override { finishing_ = true; }
    bool Finished() const override { return done_; }
    void Check() override {
        CheckNoneIsMissing();
        CheckTheFold();
    }

private:
    static model::ScheduleSpec Spec(const std::string& name);
    void Clerk();
    void Act();
    void Fill();
    // Again and again until it is known to have happened.
    void Surely(const std::function<bool()>& act);
    void CheckNoneIsMissing();
    void CheckTheFold();
    Schedule Look(const std::string& name) {
        return setting_.store.Schedules().Get(kDefaultTenant, name).value();
    }

    Setting& setting_;
    World& world_;
    FaultyStore store_;
    SimWake wake_;
    services::ScheduleDesk desk_;
    bool made_ = false;
    bool finishing_ = false;
    bool done_ = false;
};

model::ScheduleSpec Scheduling::Spec(const std::string& name) {
    model::ScheduleSpec spec;
    spec.name = name;
    spec.task.type = kWork;
    spec.task.input = "{}";
    spec.instant_field = "at";
    spec.misfire = {.kind = model::MisfirePolicy::Kind::kAll, .limit = 1'000};
    if (name == "folded") {
        // Not every hour: so it promises local times, each once.
        spec.timing.cron = "*/10 * 0-22 * * *";
        spec.zone = kFoldZone;
    } else {
        spec.timing.kind = model::TimingSpec::Kind::kEvery;
        spec.timing.every = kSteady;
    }
    if (name == "busy") {
        spec.timing.every = seconds{7};
        spec.overlap = model::OverlapPolicy::kSkip;
    }
    return spec;
}

void Scheduling::Surely(const std::function<bool()>& act) {
    for (;;) {
        try {
            if (act()) return;
        } catch (const Crash&) {
            throw;
        } catch (const std::exception&) {
        }
        world_.Sleep(world_.Between(milliseconds{50}, seconds{1}));
    }
}

void Scheduling::Clerk() {
    for (const char* name : kNames) {
        Surely([&] { return desk_.Put(Spec(name), {}, "clerk").has_value(); });
    }
    made_ = true;
    while (!finishing_) {
        world_.Sleep(world_.Between(milliseconds{500}, seconds{6}));
        try {
            Act();
        } catch (const Crash&) {
            throw;
        } catch (const std::exception&) {
            // Whether or not it happened: the next round does something else.
        }
    }
    for (const char* name : kNames) {
        Surely([&] { return desk_.SetPaused(kDefaultTenant, name, true, "clerk").has_value(); });
    }
    done_ = true;
}

void Scheduling::Act() {
    switch (world_.random().Below(6)) {
        case 0:
            (void)desk_.RunNow(kDefaultTenant, "busy");
            break;
        case 1:
            (void)desk_.SetPaused(kDefaultTenant, "busy", world_.random().Below(2) == 0, "clerk");
            break;
        case 2: {
            model::ScheduleSpec spec = Spec("busy");
            spec.timing.every = seconds{5 + static_cast<int>(world_.random().Below(4))};
            spec.jitter = milliseconds{static_cast<int>(world_.random().Below(3)) * 500};
            (void)desk_.Put(spec, {}, "clerk");
            break;
        }
        default:
            Fill();
    }
}

void Scheduling::Fill() {
    const char* name = kNames[world_.random().Below(3)];
    Time now = store_.Now();
    services::BackfillRequest request{
        .name = name, .from = now - seconds{60}, .to = now - seconds{1}};
    (void)desk_.Backfill(kDefaultTenant, request);
}

// Whatever crashed and whoever looked late: its policy leaves nothing out.
void Scheduling::CheckNoneIsMissing() {
    Schedule steady = Look("steady");
    const auto& runs = setting_.oracle.runs();
    for (Time at = steady.created_at + kSteady; at <= steady.considered_at; at += kSteady) {
        if (runs.contains({"schedule:steady", base::Iso8601(at)})) continue;
        return setting_.oracle.Violate("I11", {}, "no task for " + base::Iso8601(at));
    }
}

void Scheduling::CheckTheFold() {
    std::map<model::Local, std::string> seen;
    const model::Zone zone = FoldZone();
    for (const auto& [run, task] : setting_.oracle.runs()) {
        if (run.first != "schedule:folded") continue;
        auto at = model::ParseTime(run.second, {});
        CHECK(at.has_value());
        auto instant = std::chrono::floor<seconds>(*at);
        auto [first, fresh] = seen.emplace(zone.At(instant).ToLocal(instant), run.second);
        if (fresh) continue;
        setting_.oracle.Violate(
            "I11", task, fmt::format("one local time fired at {} and {}", first->second, run.second)
        );
    }
}

}  // namespace

model::Zone FoldZone() {
    // 22:15:00 becomes 22:14:00 on 14 November: from then on it is UTC.
    std::string file = ZoneBlock() + ZoneBlock() + "\nAAA0BBB-0:01,J1/0,J318/22:15\n";
    auto zone = model::Zone::Parse(kFoldZone, file);
    CHECK_WHY(zone.has_value(), zone ? "" : zone.error().message);
    return *zone;
}

services::ZoneSource SimZones() {
    return [](const std::string& name) -> Result<model::Zone> {
        if (name == "UTC") return model::Zone();
        if (name == kFoldZone) return FoldZone();
        return Error{Code::kInvalid, "no such zone in this world"};
    };
}

std::unique_ptr<Workload> ScheduledWork(Setting& setting) {
    return std::make_unique<Scheduling>(setting);
}

}  // namespace stint::sim
