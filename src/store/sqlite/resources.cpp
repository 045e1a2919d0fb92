// Resources, the plan of a claim that has to look at them, and tasks that go one after the other.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/planted_bug.h"
#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"
#include "store/block.h"
#include "store/claimer_offer.h"
#include "store/place.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

using base::Bug;
using base::Planted;

namespace {

constexpr int kExplainDepth = 1000;  // of a line

TaskFacts FactsOf(const sqlite::Rows& rows) {
    auto flags = static_cast<int>(rows.Int(6));
    return {
        .state = static_cast<State>(rows.Int(3)),
        .due_at = FromMicros(rows.Int(4)),
        .start_by = OptionalTime(rows, 5),
        .cancel_requested = (flags & kCancelRequested) != 0,
        .suspect = (flags & kSuspect) != 0,
    };
}

// How far to look into a line: no further than what it needs can reach, and one more.
int DepthOf(const WaitingLine& line, const Offer& offer, int depth) {
    if (!offer.orders.empty()) return LookAt(offer.orders, line.queue, depth);
    for (const Need& need : line.needs) {
        auto found = offer.supplies.find(need.resource);
        if (found == offer.supplies.end()) continue;
        const Supply& supply = found->second;
        const bool shared = offer.at_once > 0 && supply.plain;
        if (supply.units && !shared) {
            depth = std::min(depth, *supply.units / std::max(need.units, 1) + 1);
        }
        if (supply.starts) depth = std::min(depth, *supply.starts + 1);
    }
    return std::max(depth, 1);
}

}  // namespace

// ---- the book ----

ResourceBook& Ops::Book() {
    if (book_) return *book_;
    ResourceBook& book = book_.emplace();
    for (sqlite::Rows rows = Sql("resource_list").Query(); rows.Next();) {
        Resource& resource = book.entries[rows.String(0)].resource;
        resource.pattern = rows.String(1);
        resource.settings = store::SettingsOf(rows.Text(0), rows.Text(2));
        resource.state = store::StateOf(rows.Text(3));
    }
    for (sqlite::Rows rows = Sql("slot_list").Query(); rows.Next();) {
        TaskId task(rows.Int(0));
        auto units = static_cast<int>(rows.Int(2));
        book.held[task].push_back({rows.String(1), units});
        auto entry = book.entries.find(rows.String(1));
        if (entry == book.entries.end()) continue;
        entry->second.holders[task] += units;
        entry->second.held += units;
    }
    for (sqlite::Rows rows = Sql("seat_list").Query(); rows.Next();) {
        book.Join(TaskId(rows.Int(0)), rows.Int(1));
    }
    for (sqlite::Rows rows = Sql("order_list").Query(); rows.Next();) {
        book.orders[rows.String(0)] = store::OrderOf(rows.Text(0), rows.Text(1));
    }
    for (sqlite::Rows rows = Sql("share_list").Query(); rows.Next();) {
        book.leads[rows.String(0)] = store::LeadsOf(rows.Text(1));
    }
    return book;
}

void Ops::SaveBook() {
    if (!book_) return;
    for (const std::string& queue : book_->dirty_leads) {
        Sql("share_set").Run(queue, LeadsText(book_->leads[queue]));
    }
    book_->dirty_leads.clear();
    // Those of a pattern show what it says.
    const bool pattern = std::ranges::any_of(book_->dirty, [](const std::string& name) {
        return name.ends_with('*');
    });
    for (const auto& [name, entry] : book_->entries) {
        if (pattern && !HasOwnSettings(entry.resource.settings)) book_->dirty.insert(name);
    }
    for (const std::string& name : book_->dirty) {
        auto entry = book_->entries.find(name);
        if (entry == book_->entries.end()) {
            Sql("resource_remove").Run(name);
            Sql("slot_forget").Run(name);
            continue;
        }
        const Resource& resource = entry->second.resource;
        Sql("resource_set")
            .Run(
                name,
                book_->PatternOf(entry->second),
                book_->SettingsOf(entry->second).capacity,
                SettingsText(resource.settings),
                StateText(resource.state)
            );
    }
    book_->dirty.clear();
}

// What was taken: the heads, and their leases, by priority and place.
void Ops::TakeSlots(
    std::span<const Head> heads, std::span<const int> seats, std::vector<Lease>& leases
) {
    if (Book().entries.empty()) return;
    ResourceBook& book = *book_;
    std::vector<std::size_t> turns(heads.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    std::ranges::sort(turns, {}, [&](std::size_t i) { return heads[i].turn; });
    std::vector<int> groups;
    for (std::size_t i : turns) groups.push_back(heads[i].group);
    const std::vector<bool> holds = Holders(groups, seats);
    for (std::size_t k = 0; k < turns.size(); ++k) {
        Lease& lease = leases[turns[k]];
        if (holds[k]) {
            Needs needs = book.NeedsOf(lease.placement.needs, lease.queue, lease.type);
            for (const Need& need : book.Take(lease.task, needs, now_)) {
                slots_.push_back(
                    {.task = lease.task, .resource = need.resource, .units = need.units}
                );
            }
        }
        if (groups[k] < 0) continue;
        book.Join(lease.task, lease.group);
        lease.seats = seats[static_cast<std::size_t>(groups[k])];
    }
    WriteSlots();
}

void Ops::WriteSlots() {
    auto fill = [](sqlite::Statement& add, int& index, const Slot& slot) {
        add.Fill(index, slot.task.value(), slot.resource, slot.units);
    };
    InsertRows("slot_add", std::span<const Slot>(slots_), fill);
    slots_.clear();
}

void Ops::ReleaseSlots(TaskId task, AttemptEnd end) {
    if (Planted(Bug::kSlotLeakedOnReclaim) && end == AttemptEnd::kCrashed) return;
    auto found = Book().held.find(task);
    const Needs held = found == book_->held.end() ? Needs{} : found->second;
    const std::optional<TaskId> heir = book_->Release(task, OutcomeOf(end));
    if (heir) {
        Sql("slot_inherit").Run(heir->value(), task.value());
    } else if (!held.empty()) {
        for (const Need& need : held) freed_.insert(need.resource);
        releasing_.push_back(task);
    }
}

void Ops::OpenForFreed() {
    if (freed_.empty()) return;
    std::set<std::string> queues;
    for (const Lane& lane : lanes_.All()) {
        if (static_cast<int>(queues.size()) >= limits::kFreedQueues) break;
        if (!lane.may_be_ready && !lane.may_have_suspects) continue;
        Needs needs = Book().NeedsOf(lane.placement.needs, lane.queue, lane.type);
        bool wants = std::ranges::any_of(needs, [&](const Need& need) {
            return freed_.contains(need.resource);
        });
        // The hints of a lane may say so of one in which nothing waits any more.
        bool waits = wants && (Sql("ready_urgency").Scalar(lane.id, -1) ||
                               Sql("suspect_urgency").Scalar(lane.id, -1));
        if (waits) queues.insert(lane.queue);
    }
    opened_.insert(opened_.end(), queues.begin(), queues.end());
    freed_.clear();
}

void Ops::AdoptRunning() {
    std::vector<std::pair<TaskId, std::int64_t>> running;
    for (sqlite::Rows rows = Sql("running_lanes").Query(); rows.Next();) {
        running.emplace_back(TaskId(rows.Int(0)), rows.Int(1));
    }
    for (const auto& [task, id] : running) {
        const Lane& lane = lanes_.At(id);
        Needs needs = Book().NeedsOf(lane.placement.needs, lane.queue, lane.type);
        for (const Need& need : book_->Adopt(task, needs)) {
            Sql("slot_add").Run(task.value(), need.resource, need.units);
        }
    }
}

int Ops::ForgetIdleResources(int limit) {
    std::set<std::string> none;
    if (Book().Idle(none, now_, 1).empty()) return 0;
    std::set<std::string> wanted;
    for (const Lane& lane : lanes_.All()) {
        bool waits = false;
        for (State state : {State::kOpen, State::kError}) {
            auto tally = Sql("tally_one").Scalar(0, lane.id, static_cast<int>(state));
            waits = waits || tally.value_or(0) > 0;
        }
        if (!waits) continue;
        for (const Need& need : Book().NeedsOf(lane.placement.needs, lane.queue, lane.type)) {
            wanted.insert(need.resource);
        }
    }
    std::vector<std::string> idle = book_->Idle(wanted, now_, limit);
    for (const std::string& name : idle) book_->Forget(name);
    return static_cast<int>(idle.size());
}

std::int64_t Ops::WaitingFor(const std::string& resource) {
    std::int64_t waiting = 0;
    for (const Lane& lane : lanes_.All()) {
        Needs needs = Book().NeedsOf(lane.placement.needs, lane.queue, lane.type);
        bool wants = std::any_of(needs.begin(), needs.end(), [&](const Need& need) {
            return need.resource == resource;
        });
        for (State state : {State::kOpen, State::kError}) {
            if (!wants) break;
            waiting += Sql("tally_one").Scalar(0, lane.id, static_cast<int>(state)).value_or(0);
        }
    }
    return waiting;
}

bool Ops::SetOrder(const QueueOrder& order) {
    Book().orders[order.queue] = order;
    Sql("order_set").Run(order.queue, OrderText(order));
    return true;
}

bool Ops::RemoveOrder(std::string_view queue) {
    // The book first: it is read from the file when it is first asked for.
    bool there = Book().orders.erase(std::string(queue)) > 0;
    Sql("order_remove").Run(queue);
    return there;
}

// ---- the plan ----

// Most claims have nothing to plan: by priority and place, lane by lane.
bool Ops::NeedsPlan(std::span<Lane* const> lanes, const ClaimRequest& request) {
    ResourceBook& book = Book();
    if (HasRoomLimits(request) || !book.orders.empty()) return true;
    return std::any_of(lanes.begin(), lanes.end(), [&](const Lane* lane) {
        bool wanted = request.suspect ? lane->may_have_suspects : lane->may_be_ready;
        if (!wanted) return false;
        if (!lane->placement_text.empty()) return true;
        return !book.entries.empty() && !book.NeedsOf({}, lane->queue, lane->type).empty();
    });
}

WaitingLine Ops::LineOf(const Lane& lane, int priority) {
    WaitingLine line;
    line.tenant = lane.tenant;
    line.queue = lane.queue;
    line.type = lane.type;
    line.priority = priority;
    line.needs = Book().NeedsOf(lane.placement.needs, lane.queue, lane.type);
    line.labels = lane.placement.labels;
    return line;
}

Offer Ops::OfferTo(const ClaimRequest& request, std::span<Lane* const> lanes) {
    Offer offer = OfferOf(request, now_);
    ResourceBook& book = Book();
    offer.orders = book.orders;
    for (const Lane* lane : lanes) {
        book.Supplies(
            book.NeedsOf(lane->placement.needs, lane->queue, lane->type), now_, offer.supplies
        );
    }
    offer.leads = book.leads;
    return offer;
}

void Ops::ReadLine(
    const Lane& lane,
    int urgency,
    const Claimer& claimer,
    int depth,
    WaitingLine& line,
    std::vector<Head>& heads
) {
    Situation situation{.claimer = claimer, .now = now_};
    std::vector<std::int64_t> passed;
    std::int64_t position = -1;
    for (bool more = true; more && static_cast<int>(heads.size()) < depth;) {
        int read = 0;
        sqlite::Rows rows = Sql(claimer.suspects ? "suspect_line" : "ready_line")
                                .Query(lane.id, urgency, position, depth);
        for (; rows.Next(); ++read) {
            position = rows.Int(2);
            situation.task = lite::FactsOf(rows);
            if (!Skips(Sieve::kTask, situation)) {
                heads.push_back({rows.Int(0), urgency, position});
                Time since = std::max(FromMicros(rows.Int(7)), situation.task.due_at);
                line.waiting.push_back({position, since});
            } else if (Applies(Condition::kStartByPassed, situation)) {
                passed.push_back(rows.Int(0));
            }
        }
        more = read == depth;
    }
    for (std::int64_t id : passed) {
        Sql("task_set_wait").Run(static_cast<int>(Wait::kStartByPassed), id);
    }
}

// The lines of the lanes, one for each priority; of those that nothing can be taken from only that
// something waits in them.
Ops::Lines Ops::LinesOf(
    std::span<Lane* const> lanes, const Claimer& claimer, Offer& offer, int depth
) {
    Lines lines;
    for (Lane* lane : lanes) {
        bool& hint = claimer.suspects ? lane->may_have_suspects : lane->may_be_ready;
        if (!hint) continue;
        bool any = false;
        for (int urgency = -1;;) {
            auto next = Sql(claimer.suspects ? "suspect_urgency" : "ready_urgency")
                            .Scalar(lane->id, urgency);
            if (!next) break;
            any = true;
            urgency = static_cast<int>(*next);
            WaitingLine line = LineOf(*lane, limits::kPriorityMax - urgency);
            std::vector<Head> heads;
            int wanted = Obstacles(line, offer).empty() ? DepthOf(line, offer, depth) : 1;
            ReadLine(*lane, urgency, claimer, wanted, line, heads);
            if (heads.empty()) continue;
            lines.lines.push_back(std::move(line));
            lines.heads.push_back(std::move(heads));
            lines.lanes.push_back(lane);
        }
        if (!any) hint = false;
    }
    return lines;
}

std::vector<Ops::Head> Ops::PlannedHeads(
    std::span<Lane* const> lanes,
    const Claimer& claimer,
    const ClaimRequest& request,
    int limit,
    std::vector<int>& seats,
    ClaimReply& reply
) {
    Offer offer = OfferTo(request, lanes);
    Lines lines = LinesOf(lanes, claimer, offer, std::max(limit, 1));
    ClaimPlan plan = PlanClaim(lines.lines, offer, limit);
    std::vector<Head> heads;
    for (const ClaimPlan::Pick& pick : plan.picks) {
        heads.push_back(lines.heads[pick.line][pick.waiter]);
        heads.back().group = pick.group;
        heads.back().turn = heads.size();
        Book().Give(lines.lines[pick.line].queue, lines.lines[pick.line].tenant, pick.had);
    }
    seats = std::move(plan.seats);
    std::stable_sort(heads.begin(), heads.end(), [](const Head& a, const Head& b) {
        return std::tie(a.urgency, a.position) < std::tie(b.urgency, b.position);
    });
    for (const std::vector<Obstacle>& left : plan.left) {
        for (const Obstacle& obstacle : left) {
            auto until = Until(obstacle, offer);
            if (!until) continue;
            auto wait = std::max(Duration{1}, std::chrono::ceil<Duration>(*until - now_));
            if (!reply.next_due || wait < *reply.next_due) reply.next_due = wait;
        }
    }
    return heads;
}

std::vector<Explanation> Ops::PlanReasons(TaskId task, const ClaimRequest& request) {
    TaskRow row;
    std::vector<Explanation> reasons;
    if (!Load(task, row) || (row.state != State::kOpen && row.state != State::kError)) return {};
    auto add = [&](const std::vector<Obstacle>& obstacles, const Offer& offer) {
        for (const Obstacle& obstacle : obstacles) {
            reasons.push_back({obstacle.condition, model::Detail(obstacle, offer)});
        }
    };
    Lane* own = &lanes_.At(row.lane);
    Offer alone = OfferTo(request, {&own, 1});
    add(Obstacles(LineOf(*own, row.priority), alone), alone);
    if (!reasons.empty()) return reasons;
    SessionFacts* session = FindSession(request.session);
    Claimer claimer(request, session != nullptr && IsLive(*session));
    std::vector<Lane*> lanes;
    for (Lane& lane : lanes_.All()) {
        if (!Skips(Sieve::kLane, {.claimer = claimer, .now = now_, .lane = FactsOf(lane)})) {
            lanes.push_back(&lane);
        }
    }
    PromoteDue(lanes);
    Load(task, row);  // it may have become due just now
    Offer offer = OfferTo(request, lanes);
    Lines lines = LinesOf(lanes, claimer, offer, kExplainDepth);
    std::size_t all = 0;
    for (const auto& heads : lines.heads) all += heads.size();
    ClaimPlan plan = PlanClaim(lines.lines, offer, static_cast<int>(all));
    bool taken = std::ranges::any_of(plan.picks, [&](const ClaimPlan::Pick& pick) {
        return lines.heads[pick.line][pick.waiter].id == task.value();
    });
    bool ages = std::ranges::any_of(offer.orders, [](const auto& order) {
        return order.second.aging > Duration::zero();
    });
    auto count = [&](std::size_t line, std::int64_t after, std::int64_t before) {
        const int urgency = limits::kPriorityMax - lines.lines[line].priority;
        std::optional<std::int64_t> rest;
        if (ages || claimer.suspects) return rest;
        return Sql("ready_between").Scalar(lines.lanes[line]->id, urgency, after, before);
    };
    for (std::size_t i = 0; i < lines.lines.size(); ++i) {
        bool here = lines.lanes[i] == own && lines.lines[i].priority == row.priority;
        if (!here || (row.wait != Wait::kReady && row.wait != Wait::kReadySuspect)) continue;
        if (!taken) add(plan.left[i], offer);
        if (!reasons.empty()) continue;
        PlaceAsked asked{.line = i, .position = row.position, .depth = kExplainDepth};
        reasons.push_back(StandsAt(lines.lines, plan, asked, count));
    }
    return reasons;
}

// ---- one after the other ----

void Ops::Place(TaskRow& row, const Placement& placement) {
    const std::int64_t tenant = lanes_.At(row.lane).tenant.value();
    if (placement.order_key.empty()) return;
    row.Set(kOrdered, true);
    Sql("ordered_add")
        .Run(
            row.id.value(),
            tenant,
            placement.order_key,
            NextSeq(),
            static_cast<int>(placement.on_failed_head)
        );
}

void Ops::ReadOrder(TaskId task, Placement& placement) {
    sqlite::Rows rows = Sql("ordered_get").Query(task.value());
    if (!rows.Next()) return;
    placement.order_key = rows.String(1);
    placement.on_failed_head = static_cast<OnFailedHead>(rows.Int(3));
}

// One that is dead and blocks those behind it has kept its turn.
void Ops::JoinOrderAgain(const TaskRow& row) {
    Placement placement;
    bool has_turn = false;
    {
        sqlite::Rows rows = Sql("ordered_get").Query(row.id.value());
        has_turn = rows.Next() && !rows.IsNull(2);
    }
    if (has_turn) return;
    ReadOrder(row.id, placement);
    if (placement.order_key.empty()) return;
    Sql("ordered_add")
        .Run(
            row.id.value(),
            lanes_.At(row.lane).tenant.value(),
            placement.order_key,
            NextSeq(),
            static_cast<int>(placement.on_failed_head)
        );
}

bool Ops::IsFirst(const TaskRow& row) {
    Placement placement;
    ReadOrder(row.id, placement);
    auto first =
        Sql("ordered_first").Scalar(lanes_.At(row.lane).tenant.value(), placement.order_key);
    return !first || *first == row.id.value();
}

void Ops::NextInOrder(std::int64_t tenant, std::string_view key) {
    auto first = Sql("ordered_first").Scalar(tenant, key);
    TaskRow next;
    if (!first || !Load(TaskId(*first), next) || next.wait != Wait::kBehind) return;
    ToWaiting(next, next.due_at);
    Persist(next);
    opened_.push_back(lanes_.At(next.lane).queue);
}

// It is over, and was kept in the way of those behind it.
bool Ops::GiveUpTurn(TaskId task) {
    std::int64_t tenant = 0;
    std::string key;
    {
        sqlite::Rows rows = Sql("ordered_get").Query(task.value());
        if (!rows.Next() || rows.IsNull(2)) return false;
        tenant = rows.Int(0);
        key = rows.String(1);
    }
    Sql("ordered_over").Run(task.value(), Micros(now_));
    NextInOrder(tenant, key);
    return true;
}

void Ops::EndOrder(const TaskRow& row) {
    std::int64_t tenant = 0;
    std::int64_t turn = 0;
    std::string key;
    auto policy = OnFailedHead::kBlock;
    {
        sqlite::Rows rows = Sql("ordered_get").Query(row.id.value());
        if (!rows.Next() || rows.IsNull(2)) return;
        tenant = rows.Int(0);
        key = rows.String(1);
        turn = rows.Int(2);
        policy = static_cast<OnFailedHead>(rows.Int(3));
    }
    const bool dead = row.state == State::kDead && !dead_letters_;
    if (dead && policy == OnFailedHead::kBlock) return;
    const TaskId id = row.id;
    if (dead && policy == OnFailedHead::kDeadLetter) {
        std::vector<std::int64_t> behind;
        {
            sqlite::Rows rows = Sql("ordered_behind").Query(tenant, key, turn);
            while (rows.Next()) behind.push_back(rows.Int(0));
        }
        std::string reason = fmt::format(
            "task {} before it, of order key {}, is dead", id.value(), base::Quoted(key)
        );
        dead_letters_ = true;
        for (std::int64_t other : behind) {
            TaskRow next;
            if (!Load(TaskId(other), next)) continue;
            if (next.state != State::kOpen && next.state != State::kError) continue;
            Move(next, Event::kExpire, {.actor = "store", .reason = reason, .session = {}});
            next.reason = reason;
            next.wait = Wait::kNowhere;
            Persist(next);
        }
        dead_letters_ = false;
    }
    Sql("ordered_over").Run(id.value(), Micros(now_));
    if (!dead_letters_) NextInOrder(tenant, key);
}

}  // namespace stint::store::lite
