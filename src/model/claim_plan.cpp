#include "model/claim_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/planted_bug.h"
#include "base/result.h"
#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"

namespace stint::model {

using base::Bug;
using base::MakeError;
using base::Planted;
using base::Quoted;

namespace {
constexpr std::size_t kHoldersNamed = 5;
}

Result<void> Validate(const QueueOrder& order) {
    if (order.queue != "*") {
        if (order.queue.empty() || order.queue.size() > limits::kQueueName) {
            return MakeError(
                Code::kInvalid,
                "queue is {}; give the name of a queue, or * for all that have no order of their "
                "own",
                Quoted(order.queue)
            );
        }
    }
    if (order.weights.size() > limits::kWeights) {
        return MakeError(
            Code::kLimit,
            "weights names {} tenants; the limit is {}",
            order.weights.size(),
            limits::kWeights
        );
    }
    for (const auto& [tenant, weight] : order.weights) {
        if (!tenant.valid()) {
            return MakeError(
                Code::kInvalid,
                "weights names tenant {}; tenants are numbered from 1",
                tenant.value()
            );
        }
        if (weight >= 1 && weight <= limits::kWeight) continue;
        return MakeError(
            Code::kInvalid,
            "the weight of tenant {} is {}; it must be between 1 and {}",
            tenant.value(),
            weight,
            limits::kWeight
        );
    }
    bool none = order.aging == Duration::zero();
    if (!none && (order.aging < limits::kAgingMin || order.aging > limits::kAgingMax)) {
        return MakeError(
            Code::kInvalid,
            "aging is {}; it must be between {} and {}, or zero for none",
            base::DurationText(order.aging),
            base::DurationText(limits::kAgingMin),
            base::DurationText(limits::kAgingMax)
        );
    }
    return {};
}

const QueueOrder* OrderOf(
    const std::map<std::string, QueueOrder>& orders, const std::string& queue
) {
    if (orders.empty()) return nullptr;
    auto own = orders.find(queue);
    if (own == orders.end()) own = orders.find("*");
    return own == orders.end() ? nullptr : &own->second;
}

int LookAt(const std::map<std::string, QueueOrder>& orders, const std::string& queue, int wanted) {
    const QueueOrder* order = OrderOf(orders, queue);
    bool ages = order != nullptr && order->aging > Duration::zero();
    return ages ? std::max(wanted, limits::kAgingDepth) : wanted;
}

int WeightOf(const QueueOrder& order, TenantId tenant) {
    auto weight = order.weights.find(tenant);
    return weight == order.weights.end() ? 1 : weight->second;
}

int AgedPriority(int priority, Duration aging, Time since, Time now) {
    if (aging <= Duration::zero() || now <= since) return priority;
    std::int64_t steps = std::chrono::floor<Duration>(now - since) / aging;
    std::int64_t most = limits::kPriorityMax - priority;
    return priority + static_cast<int>(std::min(steps, most));
}

std::vector<Obstacle> Obstacles(const WaitingLine& line, const Offer& offer) {
    std::vector<Obstacle> found;
    for (const std::string& label : line.labels) {
        if (!offer.labels.contains(label) && !Planted(Bug::kLabelsIgnored))
            found.push_back({Condition::kLabelMissing, label});
    }
    auto room = [&](const std::map<std::string, int>& rooms, const std::string& name) {
        auto named = rooms.find(name);
        if (named != rooms.end() && named->second <= 0) {
            found.push_back({Condition::kNoRoom, name});
        }
    };
    room(offer.queue_room, line.queue);
    room(offer.type_room, line.type);
    for (const Need& need : line.needs) {
        if (RoomOf(offer.resource_room, need.resource).value_or(1) <= 0) {
            found.push_back({Condition::kNoRoom, need.resource, need.units});
        }
        if (offer.withheld.contains(need.resource)) {
            found.push_back({Condition::kResourceWithheld, need.resource, need.units});
        }
        auto supply = offer.supplies.find(need.resource);
        if (supply == offer.supplies.end()) continue;
        const Supply& there = supply->second;
        bool closed = there.closed;
        if (there.starts && *there.starts <= 0 && !closed) {
            found.push_back({there.starts_limit, need.resource, need.units});
        }
        if (closed) found.push_back({Condition::kResourceClosed, need.resource, need.units});
        if (there.units && *there.units < need.units) {
            found.push_back({Condition::kResourceFull, need.resource, need.units, there.kept});
        }
    }
    return found;
}

namespace {

std::string FullDetail(const Supply& there, const Obstacle& obstacle) {
    std::string text;
    if (!there.capacity && there.units) {
        return fmt::format(
            ": {} names of patterns are in use, which is the limit; those that nobody uses are "
            "forgotten by housekeeping",
            limits::kPatternNames
        );
    }
    if (there.capacity) text += fmt::format(", capacity {}", *there.capacity);
    if (there.capacity && *there.capacity < obstacle.units) {
        return text +
               fmt::format(
                   ", it needs {0}: never, until its capacity is raised to {0}", obstacle.units
               );
    }
    for (std::size_t i = 0; i < there.holders.size() && i < kHoldersNamed; ++i) {
        text += fmt::format("{} {}", i == 0 ? ", held by" : ",", there.holders[i].value());
    }
    if (there.holders.size() > kHoldersNamed) {
        text += fmt::format(" and {} more", there.holders.size() - kHoldersNamed);
    }
    if (obstacle.kept) text += ", kept for a task that has waited longer";
    return text;
}

}  // namespace

std::string Detail(const Obstacle& obstacle, const Offer& offer) {
    if (obstacle.condition == Condition::kLabelMissing) return "label " + Quoted(obstacle.about);
    if (obstacle.condition == Condition::kNoRoom) {
        if (obstacle.units > 0) return "resource " + Quoted(obstacle.about);
        bool queue = offer.queue_room.contains(obstacle.about);
        return (queue ? "queue " : "type ") + Quoted(obstacle.about);
    }
    std::string text = "resource " + Quoted(obstacle.about);
    auto supply = offer.supplies.find(obstacle.about);
    if (supply == offer.supplies.end()) return text;
    const Supply& there = supply->second;
    if (obstacle.condition == Condition::kResourceFull) {
        text += FullDetail(there, obstacle);
    } else if (there.until) {
        text += " until " + base::Iso8601(*there.until);
    } else if (obstacle.condition == Condition::kResourceClosed) {
        text += ", one task tries it";
    }
    return text;
}

std::optional<Time> Until(const Obstacle& obstacle, const Offer& offer) {
    bool by_itself = obstacle.condition == Condition::kResourceClosed ||
                     obstacle.condition == Condition::kRateLimited;
    auto supply = offer.supplies.find(obstacle.about);
    if (!by_itself || supply == offer.supplies.end()) return std::nullopt;
    return supply->second.until;
}

std::size_t ClaimPlan::Taken(std::size_t line) const {
    return static_cast<std::size_t>(std::count_if(picks.begin(), picks.end(), [&](const Pick& p) {
        return p.line == line;
    }));
}

namespace {

// A plan being made.
class Planner {
public:
    Planner(std::span<const WaitingLine> lines, Offer offer)
        : lines_(lines), offer_(std::move(offer)), next_(lines.size(), 0), ranks_(lines.size()) {
        plan_.left.resize(lines.size());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (!lines[i].waiting.empty()) open_.push_back(i);
            const QueueOrder* order = OrderOf(offer_.orders, lines[i].queue);
            if (order != nullptr && order->aging > Duration::zero()) RankByAge(i);
        }
        if (offer_.at_once > 0) FindGroups();
    }

    ClaimPlan Make(int limit) {
        if (offer_.at_once > 0) {
            const int each = (limit + offer_.at_once - 1) / offer_.at_once;
            members_per_seat_ = std::clamp(each, 1, limits::kGroupMembers);
        }
        while (static_cast<int>(plan_.picks.size()) < limit) {
            std::optional<Turn> best = Best();
            if (!best) break;
            std::vector<Obstacle> obstacles = Obstacles(lines_[best->line], offer_);
            if (GoesBehind(best->line, obstacles)) {
                TakeBehind(*best);
                continue;
            }
            if (obstacles.empty()) {
                Take(*best);
                continue;
            }
            // What there is only becomes less: it stays out for the rest of the plan.
            KeepFor(best->line, obstacles);
            NoteWanted(obstacles);
            plan_.left[best->line] = std::move(obstacles);
            Close(best->line);
        }
        DivideGroups();
        return std::move(plan_);
    }

private:
    struct Turn {
        std::size_t line = 0;
        double had = 0;  // by its tenant then
    };
    using Contests = std::map<std::string_view, Contest>;
    // Those that need the very same, of something that is counted.
    struct Group {
        int seats = 0;
        int members = 0;
    };

    void RankByAge(std::size_t line) {
        const std::vector<Waiter>& waiting = lines_[line].waiting;
        ranks_[line].resize(waiting.size());
        std::iota(ranks_[line].begin(), ranks_[line].end(), std::size_t{0});
        std::ranges::stable_sort(ranks_[line], {}, [&](std::size_t i) { return waiting[i].since; });
    }
    std::size_t HeadAt(std::size_t line) const {
        return ranks_[line].empty() ? next_[line] : ranks_[line][next_[line]];
    }
    const Waiter& Head(std::size_t line) const { return lines_[line].waiting[HeadAt(line)]; }

    int Priority(std::size_t line) const {
        const WaitingLine& of = lines_[line];
        const QueueOrder* order = OrderOf(offer_.orders, of.queue);
        if (order == nullptr) return of.priority;
        return AgedPriority(of.priority, order->aging, Head(line).since, offer_.now);
    }

    const QueueOrder* SharedBy(std::size_t line) const {
        const QueueOrder* order = OrderOf(offer_.orders, lines_[line].queue);
        return order != nullptr && order->fair ? order : nullptr;
    }

    // Of each queue the line whose turn it is; of those the one whose head came first.
    std::optional<Turn> Best() const {
        // Most plans are of one line, and it has every turn.
        if (open_.size() == 1 && SharedBy(open_.front()) == nullptr) return Turn{open_.front(), 0};
        const std::vector<std::size_t> first = FirstByPriority();
        const Contests contests = ContestsOf(first);
        std::map<std::string_view, std::size_t> turns;
        for (std::size_t line : first) {
            auto [turn, is_new] = turns.emplace(lines_[line].queue, line);
            if (!is_new && Before(contests, line, turn->second)) turn->second = line;
        }
        std::optional<std::size_t> best;
        for (const auto& [queue, line] : turns) {
            if (!best || Head(line).position < Head(*best).position) best = line;
        }
        if (!best) return std::nullopt;
        return Turn{*best, HadAfter(contests, *best)};
    }

    std::vector<std::size_t> FirstByPriority() const {
        std::vector<std::size_t> first;
        int priority = -1;
        for (std::size_t line : open_) {
            int own = Priority(line);
            if (own < priority) continue;
            if (own > priority) first.clear();
            priority = own;
            first.push_back(line);
        }
        return first;
    }

    Contests ContestsOf(std::span<const std::size_t> lines) const {
        static const Leads none;
        Contests contests;
        for (std::size_t line : lines) {
            const QueueOrder* order = SharedBy(line);
            if (order == nullptr) continue;
            const WaitingLine& of = lines_[line];
            auto leads = offer_.leads.find(of.queue);
            auto contest = contests.try_emplace(
                of.queue, Contest(leads == offer_.leads.end() ? none : leads->second)
            );
            contest.first->second.Enter(of.tenant, WeightOf(*order, of.tenant));
        }
        return contests;
    }

    // Of one queue.
    bool Before(const Contests& contests, std::size_t a, std::size_t b) const {
        if (auto contest = contests.find(lines_[a].queue); contest != contests.end()) {
            if (contest->second.Before(lines_[a].tenant, lines_[b].tenant)) return true;
            if (contest->second.Before(lines_[b].tenant, lines_[a].tenant)) return false;
        }
        return Head(a).position < Head(b).position;
    }

    double HadAfter(const Contests& contests, std::size_t line) const {
        auto contest = contests.find(lines_[line].queue);
        if (contest == contests.end()) return 0;
        const TenantId tenant = lines_[line].tenant;
        return contest->second.Had(tenant) + 1.0 / std::max(WeightOf(*SharedBy(line), tenant), 1);
    }

    // What it lacks is kept for it when it has waited long enough, if only that keeps it. Only for
    // the first: what others behind it would keep beside that nobody could use.
    void KeepFor(std::size_t line, const std::vector<Obstacle>& obstacles) {
        const auto waited = std::chrono::floor<Duration>(offer_.now - Head(line).since);
        if (waited < limits::kKeepAfter) return;
        for (const Obstacle& obstacle : obstacles) {
            if (obstacle.condition != Condition::kResourceFull) return;
            const Supply& supply = offer_.supplies.at(obstacle.about);
            if (supply.kept || supply.capacity.value_or(obstacle.units) < obstacle.units) return;
        }
        for (const Need& need : lines_[line].needs) {
            auto supply = offer_.supplies.find(need.resource);
            if (supply == offer_.supplies.end() || !supply->second.units) continue;
            int& units = *supply->second.units;
            if (units >= need.units && waited < limits::kKeepAllAfter) continue;
            supply->second.kept |= units > 0;
            units -= std::min(units, need.units);
        }
    }

    // ---- seats ----

    void FindGroups() {
        // Of one queue and type: what is set for these later is then needed by all of a group.
        std::map<std::tuple<Needs, std::string, std::string>, int> known;
        group_of_.assign(lines_.size(), -1);
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            bool counted = false;
            bool plain = true;
            for (const Need& need : lines_[i].needs) {
                auto supply = offer_.supplies.find(need.resource);
                if (supply == offer_.supplies.end()) continue;
                counted = counted || supply->second.units.has_value();
                plain = plain && supply->second.plain;
            }
            if (!counted || !plain || lines_[i].look_only) continue;
            auto [group, is_new] = known.emplace(
                std::tuple(lines_[i].needs, lines_[i].queue, lines_[i].type),
                static_cast<int>(groups_.size())
            );
            if (is_new) groups_.emplace_back();
            group_of_[i] = group->second;
        }
    }

    Group* GroupOf(std::size_t line) {
        if (group_of_.empty() || group_of_[line] < 0) return nullptr;
        return &groups_[static_cast<std::size_t>(group_of_[line])];
    }

    // Its group has a seat that carries one more, and nothing but a unit or a seat is missing.
    bool GoesBehind(std::size_t line, const std::vector<Obstacle>& obstacles) {
        const Group* group = GroupOf(line);
        if (group == nullptr || group->seats == 0) return false;
        if (group->members >= group->seats * members_per_seat_) return false;
        if (obstacles.empty() && offer_.at_once > 0) return false;
        bool only_units = std::ranges::all_of(obstacles, [](const Obstacle& obstacle) {
            return obstacle.condition == Condition::kResourceFull;
        });
        return only_units && std::ranges::none_of(lines_[line].needs, [&](const Need& need) {
                   auto supply = offer_.supplies.find(need.resource);
                   bool kept = supply != offer_.supplies.end() && supply->second.kept;
                   return kept || wanted_.contains(need.resource);
               });
    }

    // One that lacks nothing but units gets them as soon as somebody lets go: so nobody goes behind
    // for those any more.
    void NoteWanted(const std::vector<Obstacle>& obstacles) {
        for (const Obstacle& obstacle : obstacles) {
            if (obstacle.condition != Condition::kResourceFull) return;
            const Supply& supply = offer_.supplies.at(obstacle.about);
            if (supply.capacity.value_or(obstacle.units) < obstacle.units) return;
        }
        for (const Obstacle& obstacle : obstacles) wanted_.insert(obstacle.about);
    }

    // A group is of so many at the most: a larger one becomes several, each with its share of the
    // seats.
    void DivideGroups() {
        std::vector<std::vector<std::size_t>> members(groups_.size());
        for (std::size_t i = 0; i < plan_.picks.size(); ++i) {
            if (GroupOf(plan_.picks[i].line) == nullptr) continue;
            members[static_cast<std::size_t>(group_of_[plan_.picks[i].line])].push_back(i);
        }
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const int count = groups_[g].members;
            const int seats = groups_[g].seats;
            if (seats >= count) continue;
            const int parts = (count + limits::kGroupMembers - 1) / limits::kGroupMembers;
            const auto first = static_cast<int>(plan_.seats.size());
            for (int part = 0; part < parts; ++part) {
                plan_.seats.push_back(seats / parts + (part < seats % parts ? 1 : 0));
            }
            for (int i = 0; i < count; ++i) {
                plan_.picks[members[g][static_cast<std::size_t>(i)]].group =
                    first + static_cast<int>(std::int64_t{i} * parts / count);
            }
        }
    }

    void Pick(const Turn& turn) {
        const std::size_t line = turn.line;
        const WaitingLine& of = lines_[line];
        if (of.look_only) {
            plan_.passed_over = true;
        } else {
            plan_.picks.push_back({line, HeadAt(line), turn.had});
        }
        if (SharedBy(line) != nullptr) Give(offer_.leads[of.queue], of.tenant, turn.had);
        if (++next_[line] == of.waiting.size() || of.look_only) Close(line);
    }

    void TakeBehind(const Turn& turn) {
        ++GroupOf(turn.line)->members;
        Pick(turn);
    }

    void Take(const Turn& turn) {
        const std::size_t line = turn.line;
        const WaitingLine& of = lines_[line];
        if (Group* group = GroupOf(line)) {
            ++group->seats;
            ++group->members;
            offer_.at_once = std::max(0, offer_.at_once - 1);
        }
        auto less = [](std::map<std::string, int>& rooms, const std::string& name) {
            auto room = rooms.find(name);
            if (room != rooms.end()) --room->second;
        };
        less(offer_.queue_room, of.queue);
        less(offer_.type_room, of.type);
        for (const Need& need : of.needs) {
            TakeRoom(offer_.resource_room, need.resource);
            auto supply = offer_.supplies.find(need.resource);
            if (supply == offer_.supplies.end()) continue;
            if (supply->second.units && !Planted(Bug::kClaimOverAdmits)) {
                *supply->second.units -= need.units;
            }
            bool trial = supply->second.starts_limit == Condition::kResourceClosed;
            if (supply->second.starts && !(trial && Planted(Bug::kHalfOpenLetsAllThrough))) {
                --*supply->second.starts;
            }
        }
        Pick(turn);
    }

    void Close(std::size_t line) { std::erase(open_, line); }

    std::span<const WaitingLine> lines_;
    Offer offer_;
    std::vector<std::size_t> next_;  // per line: how many of it were taken
    // Per line: in which order, where that is not their place.
    std::vector<std::vector<std::size_t>> ranks_;
    std::vector<std::size_t> open_;
    std::vector<int> group_of_;  // per line; -1 = none; empty: nobody goes behind
    std::vector<Group> groups_;
    std::set<std::string> wanted_;  // resources of which somebody lacks units
    int members_per_seat_ = 1;
    ClaimPlan plan_;
};

}  // namespace

ClaimPlan PlanClaim(std::span<const WaitingLine> lines, Offer offer, int limit) {
    return Planner(lines, std::move(offer)).Make(limit);
}

std::vector<bool> Holders(std::span<const int> groups, std::span<const int> seats) {
    std::vector<bool> holds(groups.size(), true);
    std::vector<int> left(seats.begin(), seats.end());
    for (std::size_t i = groups.size(); i-- > 0;) {
        if (groups[i] >= 0) holds[i] = left[static_cast<std::size_t>(groups[i])]-- > 0;
    }
    return holds;
}

}  // namespace stint::model
