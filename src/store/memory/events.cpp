// Events: published once per id, taken for a while, fired once per trigger.
#include <fmt/format.h>

#include <algorithm>

#include "base/planted_bug.h"
#include "base/result.h"
#include "base/text.h"
#include "store/event_words.h"
#include "store/memory/event_ops.h"

namespace stint::store::memory {

namespace {

using Kind = PublishReply::Kind;

class Tables final : public FiringTables {
public:
    Tables(EventOps& events, Ops& ops, EventData& data, Time now)
        : events_(events), ops_(ops), data_(data), now_(now) {}

    PublishReply Publish(const NewEvent& event) override { return events_.Publish(event); }
    std::map<EventNo, Locked> Lock(std::span<const EventOutcome> outcomes) override {
        std::map<EventNo, Locked> locked;
        for (const EventOutcome& outcome : outcomes) {
            auto found = data_.events.find(outcome.event);
            if (found == data_.events.end()) continue;
            const EventRecord& record = found->second.record;
            Locked& one = locked[outcome.event];
            one.event = record.no;
            one.tenant = record.tenant;
            one.pending = record.state == EventState::kPending;
            one.depth = record.depth;
            for (const auto& [key, firing] : data_.firings) {
                if (std::get<0>(key) == record.no) {
                    one.fired.emplace(firing.record.workflow, firing.record.trigger);
                }
            }
        }
        return locked;
    }
    std::map<JoinKey, JoinInstance> Rounds(const std::set<JoinKey>& keys) override {
        std::map<JoinKey, JoinInstance> newest;
        if (data_.forgotten_generation > 0) {
            for (const JoinKey& key : keys) {
                newest[key] = ForgottenRound(key, data_.forgotten_generation);
            }
        }
        for (const auto& [key, generation] : data_.once) {
            if (keys.contains(key)) newest[key] = FiredOnce(key, generation);
        }
        for (const auto& [key, round] : data_.rounds) {
            if (keys.contains(key.first)) newest[key.first] = round;  // by generation
        }
        return newest;
    }
    std::vector<SubmitReply> Submit(std::span<const NewTask> tasks) override {
        return ops_.Submit(tasks);
    }
    Result<State> Finish(const BackgroundFinish& finish) override {
        return ops_.FinishBackground(finish);
    }
    bool IsTerminal(TaskId task) override {
        auto record = ops_.Get(task);
        return record && model::IsTerminal(record->state);
    }
    Time Now() override { return now_; }
    void Save(
        std::span<const Ending> endings,
        std::span<const Firing> firings,
        std::span<const JoinInstance> rounds
    ) override {
        for (const Ending& ending : endings) {
            Happening& event = data_.events.at(ending.event);
            event.record.state = ending.state;
            event.record.reason = ending.reason;
            event.due_at = now_ + ending.later;
            if (ending.state != EventState::kPending) event.record.processed_at = now_;
        }
        for (const Firing& firing : firings) {
            const FiringRecord& record = firing.record;
            data_.firings.emplace(
                std::tuple{record.event, record.workflow, record.trigger}, firing
            );
        }
        for (const JoinInstance& round : rounds) {
            JoinInstance& stored = data_.rounds[{round.key, round.generation}];
            std::int64_t no = stored.no > 0 ? stored.no : data_.next_round++;
            stored = round;
            stored.no = no;
            if (IsOver(round) && round.once) data_.once[round.key] = round.generation;
        }
    }

private:
    EventOps& events_;
    Ops& ops_;
    EventData& data_;
    const Time now_;
};

template <class T>
bool AnyOf(const std::vector<T>& wanted, const T& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

}  // namespace

PublishReply EventOps::Publish(const NewEvent& event) {
    if (auto valid = Validate(event); !valid) {
        return {.kind = Kind::kInvalid, .no = {}, .message = valid.error().message};
    }
    auto known = data_.by_id.find({event.tenant, event.source, event.id});
    bool fresh = known == data_.by_id.end() || base::Planted(base::Bug::kEventIdIgnored);
    if (event.id.empty() || fresh) return Add(event);
    const EventRecord& before = data_.events.at(known->second).record;
    if (SaysTheSame(event, before.type, before.data)) {
        return {.kind = Kind::kExisting, .no = before.no, .message = {}};
    }
    return {.kind = Kind::kConflict, .no = before.no, .message = SaidBefore(event, before.no)};
}

PublishReply EventOps::Add(const NewEvent& event) {
    EventNo no(data_.next_event++);
    Happening& added = data_.events[no];
    EventRecord& record = added.record;
    record.no = no;
    record.tenant = event.tenant;
    record.source = event.source;
    record.id = event.id;
    record.type = event.type;
    record.data = event.data;
    record.time = event.time.value_or(now_);
    record.cause = event.cause;
    record.depth = OriginOf(event.cause).depth;
    record.published_at = now_;
    record.reason = TooDeep(record.depth);
    added.due_at = now_;
    if (!event.id.empty()) data_.by_id[{event.tenant, event.source, event.id}] = no;
    if (record.reason.empty()) return {.kind = Kind::kAccepted, .no = no, .message = {}};
    record.state = EventState::kRefused;
    record.processed_at = now_;
    return {.kind = Kind::kAccepted, .no = no, .message = record.reason, .refused = true};
}

// One more than the event that led to the cause, or to what the cause is part of.
EventOps::Origin EventOps::OriginOf(TaskId cause) const {
    Origin origin;
    int up = 0;
    for (; cause.valid() && up < limits::kEventAncestors; ++up) {
        for (const auto& [key, firing] : data_.firings) {
            if (firing.record.task != cause || firing.depth < origin.depth) continue;
            origin = {firing.record.event, firing.depth + 1};
        }
        auto task = ops_.Get(cause);
        cause = task ? task->parent : TaskId();
    }
    if (cause.valid()) origin.depth = limits::kEventDepth + 1;
    return origin;
}

void EventOps::Follow(TaskId cause, TaskId task, TenantId tenant) {
    Origin origin = OriginOf(cause);
    if (origin.depth == 0) return;
    // Its record goes with an event; of one below too many tasks nobody knows which.
    if (!origin.event.valid() && !data_.events.empty()) origin.event = data_.events.rbegin()->first;
    if (!origin.event.valid()) return;
    FiringTables::Firing firing = FollowedBy(origin.event, origin.depth - 1, task, tenant, now_);
    data_.firings.emplace(std::tuple{origin.event, std::string(), firing.record.trigger}, firing);
}

void EventOps::TaskComplete(const TaskRecord& task) {
    bool wanted = std::any_of(data_.workflows.begin(), data_.workflows.end(), [&](const auto& one) {
        const WorkflowDefinition& definition = one.second.definition;
        return definition.tenant == task.tenant &&
               std::any_of(definition.joins.begin(), definition.joins.end(), [&](const Join& join) {
                   return std::find(join.types.begin(), join.types.end(), task.type) !=
                          join.types.end();
               });
    });
    if (!wanted) return;
    Add(CompletionOf(task.id, task.tenant));
}

// ---- definitions ----

Result<WorkflowRecord> EventOps::PutWorkflow(
    const WorkflowDefinition& definition, std::string_view actor
) {
    if (auto valid = Validate(definition); !valid) return valid.error();
    auto found = data_.workflows.find({definition.tenant, definition.name});
    if (found == data_.workflows.end() && data_.workflows.size() >= limits::kWorkflows) {
        return TooManyWorkflows();
    }
    WorkflowRecord& record = data_.workflows[{definition.tenant, definition.name}];
    if (record.version > 0 && record.definition == definition) return record;
    record.definition = definition;
    ++record.version;
    record.updated_at = now_;
    record.updated_by = actor;
    ForgetOnce(definition.tenant, definition.name, definition.joins);
    ++data_.revision;
    return record;
}

bool EventOps::RemoveWorkflow(TenantId tenant, std::string_view name) {
    if (data_.workflows.erase({tenant, std::string(name)}) == 0) return false;
    ForgetOnce(tenant, name, {});
    ++data_.revision;
    return true;
}

void EventOps::ForgetOnce(
    TenantId tenant, std::string_view workflow, const std::vector<Join>& joins
) {
    std::vector<std::string> kept = OnceJoins(joins);
    std::erase_if(data_.once, [&](const auto& one) {
        const JoinKey& key = one.first;
        return key.tenant == tenant && key.workflow == workflow &&
               std::find(kept.begin(), kept.end(), key.join) == kept.end();
    });
}

std::vector<WorkflowRecord> EventOps::Workflows() const {
    std::vector<WorkflowRecord> records;
    for (const auto& [key, record] : data_.workflows) records.push_back(record);
    return records;
}

// ---- processing ----

NextEventsReply EventOps::NextEvents(const NextEventsRequest& request) {
    NextEventsReply reply;
    reply.revision = data_.revision;
    reply.now = now_;
    std::size_t bytes = 0;
    for (auto& [no, event] : data_.events) {
        if (static_cast<int>(reply.events.size()) >= request.limit) break;
        if (bytes >= limits::kEventBytes) break;
        if (event.record.state != EventState::kPending || event.due_at > now_) continue;
        event.due_at = now_ + request.taken;
        ++event.record.tries;
        bytes += event.record.data.size();
        reply.events.push_back(event.record);
    }
    return reply;
}

std::vector<FireReply> EventOps::Fire(std::span<const EventOutcome> outcomes) {
    Tables tables(*this, ops_, data_, now_);
    return FireAll(tables, outcomes);
}

// ---- seeing ----

std::optional<EventRecord> EventOps::GetEvent(EventNo event) const {
    auto found = data_.events.find(event);
    if (found == data_.events.end()) return std::nullopt;
    return found->second.record;
}

std::vector<EventRecord> EventOps::ListEvents(const EventFilter& filter) const {
    std::vector<EventRecord> records;
    for (auto event = data_.events.rbegin(); event != data_.events.rend(); ++event) {
        const EventRecord& record = event->second.record;
        if (static_cast<int>(records.size()) >= filter.limit) break;
        bool wanted = (!filter.tenant || record.tenant == *filter.tenant) &&
                      AnyOf(filter.types, record.type) && AnyOf(filter.states, record.state) &&
                      (!filter.before || record.no < *filter.before);
        if (wanted) records.push_back(record);
    }
    return records;
}

std::map<EventCountKey, std::int64_t> EventOps::CountEvents() const {
    std::map<EventCountKey, std::int64_t> counts;
    for (const auto& [no, event] : data_.events) ++counts[{event.record.type, event.record.state}];
    return counts;
}

std::vector<FiringRecord> EventOps::Firings(const FiringFilter& filter) const {
    std::vector<FiringRecord> records;
    for (auto firing = data_.firings.rbegin(); firing != data_.firings.rend(); ++firing) {
        const FiringRecord& record = firing->second.record;
        if (static_cast<int>(records.size()) >= filter.limit) break;
        bool wanted = (!filter.event.valid() || record.event == filter.event) &&
                      (!filter.task.valid() || record.task == filter.task) &&
                      (filter.workflow.empty() ||
                       (record.workflow == filter.workflow && record.tenant == filter.tenant));
        if (wanted) records.push_back(record);
    }
    return records;
}

std::vector<JoinInstance> EventOps::Joins(const JoinFilter& filter) const {
    std::vector<JoinInstance> rounds;
    for (auto one = data_.rounds.rbegin(); one != data_.rounds.rend(); ++one) {
        const JoinInstance& round = one->second;
        bool wanted = (!filter.tenant || round.key.tenant == *filter.tenant) &&
                      (filter.workflow.empty() || round.key.workflow == filter.workflow) &&
                      AnyOf(filter.states, round.state) &&
                      (!filter.before || round.no < *filter.before);
        if (wanted) rounds.push_back(round);
    }
    std::sort(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) {
        return a.no > b.no;
    });
    if (static_cast<int>(rounds.size()) > filter.limit) {
        rounds.resize(static_cast<std::size_t>(filter.limit));
    }
    return rounds;
}

TidyReply EventOps::Tidy(const TidyRequest& request) {
    TidyReply reply;
    for (auto& [key, round] : data_.rounds) {
        if (static_cast<int>(reply.expired.size()) >= request.limit) break;
        if (round.state != JoinState::kOpen || round.expires_at > now_) continue;
        Expire(round, now_);
        reply.expired.push_back(round);
    }
    for (auto event = data_.events.begin();
         event != data_.events.end() && reply.forgotten_events < request.limit;) {
        const EventRecord& record = event->second.record;
        if (!record.processed_at || *record.processed_at + request.kept > now_) {
            ++event;
            continue;
        }
        std::erase_if(data_.firings, [&](const auto& firing) {
            return std::get<0>(firing.first) == record.no;
        });
        data_.by_id.erase({record.tenant, record.source, record.id});
        event = data_.events.erase(event);
        ++reply.forgotten_events;
    }
    for (auto round = data_.rounds.begin();
         round != data_.rounds.end() && reply.forgotten_joins < request.limit;) {
        const JoinInstance& one = round->second;
        bool over = one.ended_at && *one.ended_at + request.kept <= now_;
        reply.forgotten_joins += over ? 1 : 0;
        if (over) {
            data_.forgotten_generation = std::max(data_.forgotten_generation, one.generation);
        }
        round = over ? data_.rounds.erase(round) : std::next(round);
    }
    reply.more = static_cast<int>(reply.expired.size()) >= request.limit ||
                 reply.forgotten_events >= request.limit || reply.forgotten_joins >= request.limit;
    return reply;
}

}  // namespace stint::store::memory
