#include "services/definitions.h"

#include <fmt/format.h>

#include "base/json.h"

namespace stint::services {

namespace {

using base::Json;
using store::Action;

Action Named(const store::WorkflowRecord& workflow, const std::string& name) {
    Action action;
    action.workflow = workflow.definition.name;
    action.trigger = name;
    action.version = workflow.version;
    action.what = Action::Refusal{};
    return action;
}

struct ToDo {
    const Json& fields;

    decltype(Action::what) operator()(const model::TaskTemplate& task) const {
        auto made = model::MakeTask(task, fields, model::DataOf(fields));
        if (!made) return Action::Refusal{made.error().message};
        return std::move(*made);
    }
    decltype(Action::what) operator()(const model::FinishTemplate& finish) const {
        auto made = model::MakeFinishing(finish, fields);
        if (!made) return Action::Refusal{made.error().message};
        return Action::Finish{std::move(*made)};
    }
};

// What a join knows its members by.
Result<std::string> KeyText(const Json& key, const model::match::Path& path, TaskId task) {
    std::string text = key.is_string() ? key.get<std::string>() : base::JsonText(key);
    bool good = !key.is_null() && !key.is_structured() && text.size() <= model::limits::kKey;
    if (good) return text;
    return Error{
        Code::kInvalid,
        fmt::format(
            "the join's key, {} of task {}, is {}; it must be a text of at most {} bytes, a "
            "number or a boolean",
            path.Print(),
            task.value(),
            key.is_null()         ? "not there"
            : key.is_structured() ? "a list or an object"
                                  : "longer",
            model::limits::kKey
        )};
}

Json FieldsOf(const model::TaskRecord& task) {
    return {
        {"id", task.id.ToString()},
        {"type", task.type},
        {"input", base::ReadJson(task.input)},
        {"output", base::ReadJson(task.output.empty() ? "null" : task.output)}};
}

}  // namespace

Definitions::Definitions(std::vector<store::WorkflowRecord> records)
    : records_(std::move(records)) {
    for (const store::WorkflowRecord& record : records_) {
        const model::WorkflowDefinition& definition = record.definition;
        if (!record.unreadable.empty()) NoteUnreadable(record, record.unreadable);
        for (const model::Trigger& trigger : definition.triggers) {
            Wanted wanted{&record, &trigger, std::nullopt};
            if (!trigger.match.empty()) {
                auto match = model::match::Expression::Parse(trigger.match);
                // Validated when it was put: a newer program's.
                if (!match) {
                    NoteUnreadable(record, match.error().message);
                    continue;
                }
                wanted.match = std::move(*match);
            }
            triggers_[{definition.tenant, trigger.on}].push_back(std::move(wanted));
        }
        for (const model::Join& join : definition.joins) {
            auto key = model::match::Path::Parse(join.key);
            if (!key) {
                NoteUnreadable(record, key.error().message);
                continue;
            }
            for (std::size_t i = 0; i < join.types.size(); ++i) {
                joins_[{definition.tenant, join.types[i]}].push_back(
                    {&record, &join, static_cast<int>(i), *key}
                );
            }
        }
    }
}

void Definitions::NoteUnreadable(const store::WorkflowRecord& record, std::string_view why) {
    unreadable_.emplace(
        record.definition.tenant,
        fmt::format(
            "workflow {}, version {}, cannot be read by this program, so nobody knows here whether "
            "it wants the event: a newer program has to process it, or put the workflow again ({})",
            record.definition.name,
            record.version,
            why
        )
    );
}

std::string Definitions::Unreadable(TenantId tenant) const {
    auto found = unreadable_.find(tenant);
    return found == unreadable_.end() ? std::string() : found->second;
}

namespace {

std::string TooMany(std::size_t count) {
    if (count <= model::limits::kFiringsPerEvent) return {};
    return fmt::format(
        "would fire {} triggers, and the limit is {}: narrow their matches",
        count,
        model::limits::kFiringsPerEvent
    );
}

struct Bytes {
    std::size_t operator()(const model::NewTask& task) const {
        return task.input.size() + task.unique_key.size();
    }
    std::size_t operator()(const Action::Finish& finish) const {
        return finish.what.output.size() + finish.what.message.size();
    }
    std::size_t operator()(const model::JoinArrival& arrival) const {
        return arrival.part.output.size();
    }
    std::size_t operator()(const Action::Refusal& refusal) const { return refusal.message.size(); }
};

// False: that was one too many, and there are none.
bool Add(Definitions::Wants& wants, Action action) {
    wants.bytes += std::visit(Bytes(), action.what);
    if (wants.bytes > model::limits::kFiringBytes) {
        wants.actions.clear();
        wants.refusal = fmt::format(
            "would create tasks with {} or more bytes of input, and the limit is {}: give the "
            "triggers inputs of their own, with what they need",
            wants.bytes,
            model::limits::kFiringBytes
        );
        wants.bytes = 0;
        return false;
    }
    wants.actions.push_back(std::move(action));
    return true;
}

}  // namespace

Definitions::Wants Definitions::ActionsFor(const model::EventRecord& event) const {
    Wants wants;
    auto found = triggers_.find({event.tenant, event.type});
    if (found == triggers_.end()) return wants;
    const Json fields = model::FieldsOf(event);
    std::vector<std::pair<const Wanted*, std::string>> matched;  // and what is wrong with its match
    for (const Wanted& wanted : found->second) {
        auto matches = wanted.match ? wanted.match->Matches(fields) : Result<bool>(true);
        if (!matches) {
            matched.emplace_back(&wanted, "its match " + matches.error().message);
        } else if (*matches) {
            matched.emplace_back(&wanted, std::string());
        }
    }
    wants.refusal = TooMany(matched.size());
    if (!wants.refusal.empty()) return wants;
    for (const auto& [wanted, problem] : matched) {
        Action action = Named(*wanted->workflow, wanted->trigger->name);
        if (problem.empty()) {
            action.what = std::visit(ToDo{fields}, wanted->trigger->action);
        } else {
            action.what = Action::Refusal{problem};
        }
        if (!Add(wants, std::move(action))) return wants;
    }
    return wants;
}

Definitions::Wants Definitions::ArrivalsOf(const model::TaskRecord& task) const {
    Wants wants;
    auto found = joins_.find({task.tenant, task.type});
    if (found == joins_.end()) return wants;
    wants.refusal = TooMany(found->second.size());
    if (!wants.refusal.empty()) return wants;
    const Json fields = FieldsOf(task);
    for (const Member& member : found->second) {
        Action action = Named(*member.workflow, member.join->name);
        auto key = KeyText(member.key.In(fields), member.key, task.id);
        if (!key) {
            action.what = Action::Refusal{key.error().message};
            if (!Add(wants, std::move(action))) return wants;
            continue;
        }
        model::JoinArrival arrival;
        arrival.key = {
            task.tenant, member.workflow->definition.name, member.join->name, std::move(*key)};
        arrival.types = member.join->types;
        arrival.policy = member.join->policy;
        arrival.ttl = member.join->ttl;
        arrival.submit = member.join->submit;
        arrival.part = {
            member.place,
            task.type,
            task.id,
            task.output.empty() ? "null" : task.output,
            task.finished_at.value_or(Time{})};
        action.what = std::move(arrival);
        if (!Add(wants, std::move(action))) return wants;
    }
    return wants;
}

}  // namespace stint::services
