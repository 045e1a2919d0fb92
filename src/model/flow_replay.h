// Finds for each step that the code asks for what was recorded of it, and notices when the code
// and the record do not belong together. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/flow.h"

namespace stint::model {

struct StepAsked {
    std::string name;
    StepKind kind = StepKind::kRun;
    std::string about;
    std::string hash;
};

class FlowReplay {
public:
    explicit FlowReplay(std::vector<FlowStep> steps);

    struct Found {
        int occurrence = 1;
        const FlowStep* step = nullptr;  // null: not recorded
    };
    // An error is a divergence: what is recorded, what is asked for, and what to do about it.
    Result<Found> Ask(const StepAsked& asked);
    // A step that this attempt has recorded or ended.
    const FlowStep& Add(const FlowStep& step);
    const FlowStep* Find(std::string_view name, int occurrence) const;
    // The code has no such step any more, on purpose.
    void Retire(std::string_view name) { retired_.emplace(name); }

    // Recorded, not asked for so far, and the code may still come to it: null when there is none.
    const FlowStep* NextUnreached() const;
    // The function has returned. An error: without a step that has had an effect.
    Result<void> AtEnd() const;

private:
    using Key = std::pair<std::string, int>;

    Result<Found> AskNew(const StepAsked& asked, int occurrence) const;
    bool MayCome(const FlowStep& step) const;
    const FlowStep* NextEffect() const;
    const FlowStep* PassedBy(int no);
    static Error Missed(const FlowStep& step, const std::string& where);

    std::map<Key, FlowStep> steps_;
    std::map<int, Key> by_no_;
    std::set<int> reached_;
    std::map<std::string, int> asked_;
    std::set<std::string, std::less<>> retired_;
    int last_ = 0;            // the highest number reached, of those that were recorded in turn
    mutable int looked_ = 0;  // below it nothing is that the code may come to
    int passed_ = 0;          // below it nothing was passed by
};

// "call of shop.charge", "sleep", …
std::string StepText(StepKind kind, std::string_view about);

}  // namespace stint::model
