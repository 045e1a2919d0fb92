// Workflow definitions, ready to be asked what they do about an event. Read-only once made, so that
// any thread may ask.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/match/expression.h"
#include "store/events.h"

namespace stint::services {

class Definitions {
public:
    explicit Definitions(std::vector<store::WorkflowRecord> records);
    Definitions(const Definitions&) = delete;
    Definitions& operator=(const Definitions&) = delete;

    // What an event leads to; nothing of it is held that is beyond the limits.
    struct Wants {
        std::vector<store::Action> actions;
        std::size_t bytes = 0;  // of the texts that they hold
        std::string refusal;    // not empty: too much of it, and there are no actions
    };
    // What the triggers do about it, in the order of workflows and triggers.
    Wants ActionsFor(const model::EventRecord& event) const;
    // What the joins do about a member that is complete.
    Wants ArrivalsOf(const model::TaskRecord& task) const;
    // Not empty: a definition of this tenant cannot be read by this program, and this names it.
    std::string Unreadable(TenantId tenant) const;

    bool has_joins() const { return !joins_.empty(); }

private:
    struct Wanted {
        const store::WorkflowRecord* workflow = nullptr;
        const model::Trigger* trigger = nullptr;
        std::optional<model::match::Expression> match;
    };
    struct Member {
        const store::WorkflowRecord* workflow = nullptr;
        const model::Join* join = nullptr;
        int place = 0;
        model::match::Path key;
    };
    void NoteUnreadable(const store::WorkflowRecord& record, std::string_view why);

    using Key = std::pair<TenantId, std::string>;  // tenant, type of the event or of the task

    const std::vector<store::WorkflowRecord> records_;
    std::map<Key, std::vector<Wanted>> triggers_;
    std::map<Key, std::vector<Member>> joins_;
    std::map<TenantId, std::string> unreadable_;  // the first of each tenant, and why
};

}  // namespace stint::services
