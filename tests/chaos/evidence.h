// What is left of a run: the journals of its processes, and everything that the store knows.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "chaos.h"
#include "model/task.h"
#include "store/store.h"

namespace stint::chaos {

class Findings {
public:
    template <class... Args>
    void Add(fmt::format_string<Args...> format, Args&&... args) {
        if (++problems_ > kShown) return;
        fmt::print("VIOLATION {}\n", fmt::format(format, std::forward<Args>(args)...));
    }
    int problems() const { return problems_; }

    // Names and numbers for the last line of the report, in order.
    void Count(std::string_view name, std::int64_t number) {
        counts_ += fmt::format("{} {} ", name, number);
    }
    const std::string& counts() const { return counts_; }

private:
    static constexpr int kShown = 20;
    int problems_ = 0;
    std::string counts_;
};

// What the handlers of one flow wrote.
struct FlowJournal {
    struct Line {
        std::int64_t claim = 0;
        std::string step;
        std::string value;
    };
    std::vector<Line> effects;  // value: the idempotency key
    std::vector<Line> saw;      // value: what the step answered
};

struct Journals {
    std::map<std::string, std::int64_t> accepted;         // key → task or event
    std::map<std::string, std::set<std::int64_t>> ended;  // key → claims that ended
    std::int64_t starts = 0;
    std::set<std::pair<std::string, std::int64_t>> started;   // (key, claim)
    std::set<std::pair<std::string, std::int64_t>> gathered;  // of parents
    std::map<std::string, FlowJournal> flows;
};
Journals ReadJournals(const char* directory, Findings& findings);

struct Evidence {
    using Tasks = std::vector<const model::TaskRecord*>;

    Evidence(store::Store& opened, const char* directory, Findings& findings);

    const model::TaskRecord* Find(std::int64_t task) const;
    const Tasks& OfType(std::string_view type) const;
    const Tasks& ChildrenOf(TaskId task) const;
    const std::vector<model::AuditEntry>& AuditOf(TaskId task) const;
    // Its worker died again and again while it ran alone: then it is given up, and rightly so.
    bool Quarantined(const model::TaskRecord& task) const;
    bool AnyQuarantined(const Tasks& tasks) const;
    // What was accepted, of one kind: (key, number).
    std::vector<std::pair<std::string, std::int64_t>> Accepted(Kind kind) const;

    store::Store& store;
    Journals journals;
    std::map<TaskId, model::TaskRecord> tasks;
    std::vector<model::AuditEntry> log;  // all of it, in order

private:
    void ReadTasks();
    void ReadAudit();

    std::map<std::string, Tasks, std::less<>> by_type_;
    std::map<TaskId, Tasks> children_;
    std::map<TaskId, std::vector<model::AuditEntry>> audit_;
};

// Each looks for one kind of broken promise, and counts what it has seen.
void CheckEveryTask(const Evidence& evidence, Findings& findings);
void CheckPlain(const Evidence& evidence, Findings& findings);
void CheckSchedules(const Evidence& evidence, Findings& findings);
void CheckFamilies(const Evidence& evidence, Findings& findings);
void CheckFlows(const Evidence& evidence, Findings& findings);
void CheckEvents(const Evidence& evidence, Findings& findings);
void CheckResources(const Evidence& evidence, Findings& findings);

// An execution of steps that is complete; the driver waits for one.
bool IsCompleteExecution(const model::TaskRecord& task);

}  // namespace stint::chaos
