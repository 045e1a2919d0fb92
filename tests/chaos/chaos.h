// What the three roles of a chaos run agree on: the kinds of work, their names, and the journal.
//
// Every kind of work leaves enough behind to be judged afterwards: outputs say under which claim
// they were made, and handlers write a journal line before they do or after they saw something.
#pragma once

#include <stint/stint.h>

#include <array>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace stint::chaos {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

// ---- kinds of work -----------------------------------------------------------------------------

// What a submitter may ask for. A key is KIND-PREFIX-NUMBER.
enum class Kind : std::uint8_t {
    kWork,    // a plain task
    kPress,   // one that needs units of a scarce resource, said at submit
    kInk,     // one that finds out while it runs that it needs another
    kParent,  // one that makes subtasks, several rounds of them
    kFlow,    // a function with recorded steps
    kEvent,   // an event: triggers, and a join of what they submit
};
Kind KindOf(int number);
std::string_view KindName(Kind kind);

struct Work {
    std::string key;
    int milliseconds = 0;
};
struct Done {
    std::string key;
    std::int64_t fencing = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Work, key, milliseconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Done, key, fencing)

inline constexpr Retry kPatient{.max_attempts = 0, .on = Retry::On::kAll, .first_delay = 50ms};
inline constexpr TaskDefaults kDefaults{.queue = "chaos", .retry = kPatient};

inline constexpr Task<Work, Done> kWork{"chaos.work", kDefaults};

// ---- resources ---------------------------------------------------------------------------------

inline constexpr Task<Work, Done> kPress{"chaos.press", kDefaults};
inline constexpr Task<Work, Done> kInk{"chaos.ink", kDefaults};
inline constexpr const char* kPressName = "press";
inline constexpr int kPressUnits = 3;
inline constexpr const char* kInkName = "ink";
inline constexpr int kInkUnits = 2;
// Of the press: some take two of its three units.
int PressUnits(std::string_view key);

// ---- subtasks ----------------------------------------------------------------------------------

struct Family {
    std::string key;
    int children = 0;
    int rounds = 0;
    bool black_sheep = false;  // the first child of every round ends dead
};
struct Child {
    std::string key;  // of the family
    int round = 0;
    int index = 0;
    int milliseconds = 0;
    bool dies = false;
};
struct ChildDone {
    int round = 0;
    int index = 0;
    std::int64_t fencing = 0;
};
struct FamilyDone {
    std::string key;
    std::int64_t fencing = 0;
    std::vector<std::vector<ChildDone>> rounds;  // what each round's children said
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Family, key, children, rounds, black_sheep)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Child, key, round, index, milliseconds, dies)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ChildDone, round, index, fencing)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FamilyDone, key, fencing, rounds)

inline constexpr Task<Family, FamilyDone> kParent{"chaos.parent", kDefaults};
inline constexpr Task<Child, ChildDone> kChild{"chaos.child", kDefaults};
Family FamilyOf(const std::string& key);

// ---- flows -------------------------------------------------------------------------------------

struct Journey {
    std::string key;
    int number = 0;
};
struct Journeyed {
    std::string key;
    std::string id;     // of the step "id"
    std::string stamp;  // of the last local effect
    int sum = 0;
    int signal = 0;
};
struct Postcard {
    std::int64_t flow = 0;
    int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Journey, key, number)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Journeyed, key, id, stamp, sum, signal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Postcard, flow, number)

// JSON as it is: its handler plays the flow itself, because the journal wants the claim's number.
inline constexpr Task<Json, Json> kFlow{"chaos.flow", kDefaults};
inline constexpr Task<int, int> kDouble{"chaos.double", kDefaults};
inline constexpr Task<Postcard, void> kPost{"chaos.post", kDefaults};  // signals the flow
inline constexpr std::array kFlowSteps = {
    "first", "call", "post", "left", "right", "rest", "word", "id", "last"};
// The task that sends the signal may be given up: then the flow goes on without.
inline constexpr auto kPatience = 30s;
constexpr int FlowSum(int number) {
    return 2 * (2 * number) + 2 * (2 * number + 1);
}

// ---- events ------------------------------------------------------------------------------------

struct Happening {
    std::string key;   // of the event
    std::string pair;  // what its tasks are joined by; two events may share one
    int number = 0;
    bool wanted = false;  // by the third trigger
};
struct Joined {
    std::string key;
    int generation = 0;
    nlohmann::json outputs;
    nlohmann::json tasks;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Happening, key, pair, number, wanted)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Joined, key, generation, outputs, tasks)

inline constexpr const char* kHappened = "chaos.happened";
inline constexpr const char* kSource = "chaos";
inline constexpr const char* kWorkflow = "chaos";
inline constexpr const char* kJoin = "pair";
inline constexpr Task<Happening, Done> kLeft{"chaos.left", kDefaults};
inline constexpr Task<Happening, Done> kRight{"chaos.right", kDefaults};
inline constexpr Task<Happening, Done> kMore{"chaos.more", kDefaults};
inline constexpr Task<Joined, Done> kPair{"chaos.pair", kDefaults};
Happening HappeningOf(const std::string& key, int number);
Workflow TheWorkflow();

// ---- schedules ---------------------------------------------------------------------------------

struct Tick {
    std::string at;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Tick, at)
inline constexpr Task<Tick, void> kTick{"chaos.tick", {.queue = "ticks", .retry = kPatient}};
inline constexpr const char* kTicks = "ticks";
inline constexpr auto kTickEvery = 1s;
// Two steps of so many tasks, executed again and again.
inline constexpr Task<int, void> kPart{"chaos.part", {.queue = "parts", .retry = kPatient}};
inline constexpr const char* kStepped = "stepped";
inline constexpr int kParts = 3;

// ---- what all roles use ------------------------------------------------------------------------

// A line is written with one write() before the next thing happens, so it survives a kill.
class Journal {
public:
    explicit Journal(const char* path);
    ~Journal();
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    void Write(const std::string& line);

private:
    int file_;
};

// Short leases: a killed worker's tasks come back within a few seconds.
Options ChaosOptions(std::string store);
// A server that is just being restarted is waited for.
Engine OpenEngine(const Options& options);

void PauseUntil(base::Instant until);

// Always the same for the same text, in every process.
std::uint64_t HashOf(std::string_view text);

// The roles, see main.cpp. Arguments as on the command line, after the role.
int RunWorker(char** arguments);
int RunSubmit(char** arguments);
int RunCheck(char** arguments);
int RunCount(char** arguments);
int RunCalm(char** arguments);

}  // namespace stint::chaos
