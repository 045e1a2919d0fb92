// Claiming by a plan: where something that waits needs resources, labels or its tenant's share.
//
// The lines are read, a plan says what they will want, the resources of that are locked and counted
// again, and a second plan says what is taken: no two claims can take the same unit, and claims
// that need different resources do not wait for each other.
//
// Where claims want the same few resources again and again, those of the last one are locked and
// counted together with reading the lines: if the plan wants no others, that is all (`Known`). Then
// claims wait for each other that have resources in common which only one of them takes of.
#include <algorithm>

#include "base/planted_bug.h"
#include "base/test_point.h"
#include "model/limits.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/place.h"
#include "store/postgres/claim_rows.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

constexpr int kTries = 3;
constexpr std::size_t kKnownNames = 16;  // more of them are not locked before they are wanted
constexpr int kKnownPause = 20;          // claims, after one that wanted others
constexpr int kExplainDepth = 1000;      // of a line
constexpr int kLeastDepth = 64;          // likewise, that a claim looks at
constexpr auto kNoteEvery = std::chrono::milliseconds{100};

bool AnyAges(std::span<const QueueOrder> orders) {
    return std::any_of(orders.begin(), orders.end(), [](const QueueOrder& order) {
        return order.aging > Duration::zero();
    });
}
bool AnyAges(const Offer& offer) {
    return std::any_of(offer.orders.begin(), offer.orders.end(), [](const auto& order) {
        return order.second.aging > Duration::zero();
    });
}

// From 1 on, in leases of so many: each group has one to itself, because whoever settles for one of
// it has locked that and no other. They are the last.
int LeasesBefore(const ClaimPlan& plan) {
    auto alone = std::ranges::count(plan.picks, -1, &ClaimPlan::Pick::group);
    return (static_cast<int>(alone) + kTasksPerLease - 1) / kTasksPerLease;
}
std::vector<int> LeaseNumbers(const ClaimPlan& plan) {
    static_assert(limits::kGroupMembers <= kTasksPerLease);
    std::vector<int> next(plan.seats.size());
    for (std::size_t g = 0; g < next.size(); ++g) {
        next[g] = (LeasesBefore(plan) + static_cast<int>(g)) * kTasksPerLease;
    }
    int next_alone = 0;
    std::vector<int> numbers;
    for (const ClaimPlan::Pick& pick : plan.picks) {
        const int group = pick.group;
        numbers.push_back(++(group < 0 ? next_alone : next[static_cast<std::size_t>(group)]));
    }
    return numbers;
}

// By lane and position, and which of them are whose.
void AddPicks(
    Params& params,
    const std::map<std::pair<int, std::int64_t>, std::size_t>& picks,
    std::span<const int> numbers
) {
    ArrayOf lane(oid::kInt4), position(oid::kInt8), number(oid::kInt8);
    ArrayOf lanes(oid::kInt4), low(oid::kInt4), high(oid::kInt4);
    std::optional<int> before;
    int count = 0;
    for (const auto& [place, pick] : picks) {
        lane.Int(place.first);
        position.Int(place.second);
        number.Int(numbers[pick]);
        if (place.first != before) {
            if (before) high.Int(count);
            lanes.Int(place.first);
            low.Int(count + 1);
        }
        before = place.first;
        ++count;
    }
    high.Int(count);
    for (ArrayOf* column : {&lane, &position, &number, &lanes, &low, &high}) column->AddTo(params);
}

void AddGroups(Params& params, const ClaimPlan& plan) {
    ArrayOf lease(oid::kInt8), seats(oid::kInt4);
    for (std::size_t g = 0; g < plan.seats.size(); ++g) {
        lease.Int(LeasesBefore(plan) + static_cast<int>(g));
        seats.Int(plan.seats[g]);
    }
    lease.AddTo(params);
    seats.AddTo(params);
}

bool IsShared(const Offer& offer, const std::string& queue) {
    const QueueOrder* order = model::OrderOf(offer.orders, queue);
    return order != nullptr && order->fair;
}

}  // namespace

struct PostgresStore::Planned {
    bool live = true;
    Time now{};
    std::vector<WaitingLine> lines;
    std::vector<int> lanes;  // of the lines
    std::vector<Needs> own;  // without those of queue and type
    PgBook book;
    Offer offer;
    Places promoted = {};          // by the look itself
    bool ordered = false;          // some queue has an order of its own
    std::set<std::string> locked;  // with the first look
};

namespace {

Params PlanParams(const ClaimRequest& request, int depth, bool ages, const Marks::Snapshot& marks) {
    Params params = ClaimerParams(request);
    params.Int4(depth).Bool(ages);
    AddMarks(params, marks);
    return params;
}

}  // namespace

PostgresStore::Planned PostgresStore::ReadPlan(
    const Rows& rows, std::span<const QueueOrder> orders
) {
    Planned planned;
    planned.live = !rows.empty();
    for (int i = 0; i < rows.size(); ++i) {
        planned.now = rows.At(i, 0);
        if (rows.IsNull(i, 1)) continue;
        Lane lane{
            rows.Text(i, 2),
            rows.Text(i, 3),
            TenantId(rows.Int(i, 4)),
            static_cast<int>(rows.Int(i, 5)),
            rows.Bool(i, 6),
            rows.Text(i, 7)};
        planned.lanes.push_back(static_cast<int>(rows.Int(i, 1)));
        catalog_.Learn(planned.lanes.back(), lane);
        Placement placement = PlacementOf(lane.placement);
        WaitingLine& line = planned.lines.emplace_back();
        line.tenant = lane.tenant;
        line.queue = lane.queue;
        line.type = lane.type;
        line.priority = lane.priority;
        line.labels = placement.labels;
        planned.own.push_back(placement.needs);
        std::vector<std::int64_t> since;
        if (!rows.IsNull(i, 10)) since = rows.Ints(i, 10);
        for (std::int64_t position : rows.Ints(i, 8)) {
            std::size_t at = line.waiting.size();
            Time from = planned.now;
            if (at < since.size()) from = Time(std::chrono::microseconds(since[at]));
            line.waiting.push_back({position, from});
        }
    }
    for (const QueueOrder& order : orders) planned.offer.orders[order.queue] = order;
    return planned;
}

// Only asked where a name is to be made.
bool PostgresStore::IsCrowded(Transaction& transaction, const Planned& planned) {
    bool makes = false;
    for (std::size_t i = 0; i < planned.lines.size() && !makes; ++i) {
        const WaitingLine& line = planned.lines[i];
        const ResourceBook& book = planned.book.book;
        for (const Need& need : book.NeedsOf(planned.own[i], line.queue, line.type)) {
            bool there = planned.book.ids.contains(need.resource);
            makes = makes || (!there && book.Find(need.resource) != nullptr);
        }
    }
    if (!makes) return false;
    Params params;
    params.Int4(limits::kPatternNames);
    return transaction.Query(db_.sql.resource_crowd, params).Int(0, 0) >= limits::kPatternNames;
}

// What they may need, whether it is there or not.
std::vector<std::string> PostgresStore::NamesOf(const Planned& planned) {
    std::set<std::string> names = {""};  // none is not all
    for (std::size_t i = 0; i < planned.lines.size(); ++i) {
        for (const Need& need : planned.own[i]) names.insert(need.resource);
        names.insert(QueueResource(planned.lines[i].queue));
        names.insert(TypeResource(planned.lines[i].type));
    }
    return {names.begin(), names.end()};
}

// What there is for the lines.
void PostgresStore::ReadSupplies(
    Transaction& transaction, const ClaimRequest& request, bool holders, Planned& planned
) {
    planned.book = ReadBook(transaction, db_.sql, NamesOf(planned), holders);
    Supply(transaction, request, planned);
}

void PostgresStore::Supply(
    Transaction& transaction, const ClaimRequest& request, Planned& planned
) {
    // What was read under locks is judged by the time at which it was read.
    planned.now = planned.book.read_at.value_or(planned.now);
    Offer offer = OfferOf(request, planned.now);
    offer.orders = std::move(planned.offer.orders);
    offer.leads = std::move(planned.offer.leads);
    ResourceBook& book = planned.book.book;
    book.crowded = IsCrowded(transaction, planned);
    for (std::size_t i = 0; i < planned.lines.size(); ++i) {
        WaitingLine& line = planned.lines[i];
        line.needs = book.NeedsOf(planned.own[i], line.queue, line.type);
        book.Supplies(line.needs, planned.now, offer.supplies);
    }
    planned.offer = std::move(offer);
}

void PostgresStore::ReadLeads(Transaction& transaction, Planned& planned) {
    bool shared = std::ranges::any_of(planned.lines, [&](const WaitingLine& line) {
        return IsShared(planned.offer, line.queue);
    });
    if (!shared) return;
    Rows rows = transaction.Query(db_.sql.shares);
    for (int i = 0; i < rows.size(); ++i) {
        planned.offer.leads[rows.Text(i, 0)] = LeadsOf(rows.View(i, 1));
    }
}

// Nobody else takes of what the plan takes until this transaction ends. Of what is not locked
// nothing is taken now, whatever has become free of it meanwhile: another may have it already.
void PostgresStore::LockPlanned(
    Transaction& transaction, const ClaimRequest& request, Planned& planned, const ClaimPlan& plan
) {
    std::set<std::string> names, queues;
    for (const ClaimPlan::Pick& pick : plan.picks) {
        const WaitingLine& line = planned.lines[pick.line];
        for (const Need& need : line.needs) {
            if (planned.book.book.Find(need.resource) != nullptr) names.insert(need.resource);
        }
        if (IsShared(planned.offer, line.queue)) queues.insert(line.queue);
    }
    if (names.empty() && queues.empty()) return;
    if (!names.empty()) {
        std::vector<std::string> locked(names.begin(), names.end());
        MakeMissing(transaction, db_.sql, planned.book, locked, false);
        if (!base::Planted(base::Bug::kClaimOverAdmits)) {
            std::set<std::string> there = Lock(transaction, db_.sql, locked);
            if (there.size() < locked.size()) {
                // One of a pattern was forgotten meanwhile.
                PgBook again = ReadBook(transaction, db_.sql, locked);
                MakeMissing(transaction, db_.sql, again, locked, false);
                there = Lock(transaction, db_.sql, locked);
            }
            names = std::move(there);
        }
    }
    if (!queues.empty()) {
        const std::vector<std::string> shared(queues.begin(), queues.end());
        Params make, lock;
        AddTexts(make, shared);
        AddTexts(lock, shared);
        transaction.Defer(db_.sql.share_make, std::move(make));
        Rows rows = transaction.Query(db_.sql.share_lock, lock);
        for (int i = 0; i < rows.size(); ++i) {
            planned.offer.leads[rows.Text(i, 0)] = LeadsOf(rows.View(i, 1));
        }
    }
    base::TestPoint("store_postgres.resources_locked");
    ReadSupplies(transaction, request, false, planned);
    for (WaitingLine& line : planned.lines) {
        bool ours = std::ranges::all_of(line.needs, [&](const Need& need) {
            bool limited = planned.book.book.Find(need.resource) != nullptr;
            return !limited || names.contains(need.resource);
        });
        line.look_only =
            !ours || (IsShared(planned.offer, line.queue) && !queues.contains(line.queue));
    }
}

// Those that were taken count, in the order of the plan.
void PostgresStore::SaveLeads(
    Transaction& transaction,
    const Planned& planned,
    const ClaimPlan& plan,
    std::span<const Taken> taken
) {
    std::set<std::pair<int, std::int64_t>> places;
    for (const Taken& one : taken) places.emplace(one.lane, one.position);
    std::map<std::string, Leads> changed;
    for (const ClaimPlan::Pick& pick : plan.picks) {
        const WaitingLine& line = planned.lines[pick.line];
        if (!IsShared(planned.offer, line.queue)) continue;
        if (!places.contains({planned.lanes[pick.line], line.waiting[pick.waiter].position})) {
            continue;
        }
        auto [leads, is_new] = changed.try_emplace(line.queue);
        auto before = planned.offer.leads.find(line.queue);
        if (is_new && before != planned.offer.leads.end()) leads->second = before->second;
        model::Give(leads->second, line.tenant, pick.had);
    }
    if (changed.empty()) return;
    ArrayOf queue(oid::kText), text(oid::kText);
    for (const auto& [name, leads] : changed) {
        queue.Text(name);
        text.Text(LeadsText(leads));
    }
    Params params;
    queue.AddTo(params);
    text.AddTo(params);
    transaction.Defer(db_.sql.share_save, std::move(params));
}

void PostgresStore::TakePlanned(
    Transaction& transaction,
    const ClaimRequest& request,
    Planned& planned,
    const ClaimPlan& plan,
    bool alone,
    std::vector<Taken>& taken
) {
    if (plan.picks.empty()) return;
    std::map<std::pair<int, std::int64_t>, std::size_t> pick_at;
    const std::vector<int> numbers = LeaseNumbers(plan);
    for (std::size_t i = 0; i < plan.picks.size(); ++i) {
        const ClaimPlan::Pick& pick = plan.picks[i];
        std::int64_t at = planned.lines[pick.line].waiting[pick.waiter].position;
        pick_at[{planned.lanes[pick.line], at}] = i;
    }
    const int last = *std::ranges::max_element(numbers);
    const LeaseTokens tokens(last, random_);
    Params params = ClaimParams(request, last, tokens);
    AddPicks(params, pick_at, numbers);
    AddGroups(params, plan);
    AddHolds(params, planned, plan);
    Rows rows = alone ? transaction.QueryAndCommit(db_.sql.claim_picked, params)
                      : transaction.Query(db_.sql.claim_picked, params);
    LearnNames(rows, request.suspect, catalog_);
    std::vector<const Taken*> by_pick(plan.picks.size());
    taken.reserve(taken.size() + plan.picks.size());
    LastPlacement placement;
    for (int i = 1; i < rows.size(); ++i) {
        Taken& one = taken.emplace_back(ReadLease(rows, i, tokens, catalog_, placement));
        const std::size_t pick = pick_at.at({one.lane, one.position});
        by_pick[pick] = &one;
        const int group = plan.picks[pick].group;
        if (group < 0) continue;
        one.lease.group = KeyOf(one.lease.token);
        one.lease.seats = plan.seats[static_cast<std::size_t>(group)];
    }
    if (alone) return;
    for (std::size_t i = 0; i < by_pick.size(); ++i) {
        // What a group holds has nothing to remember but that it was taken.
        if (by_pick[i] == nullptr) continue;
        const Needs& needs = planned.lines[plan.picks[i].line].needs;
        planned.book.book.Take(by_pick[i]->lease.task, needs, planned.now);
    }
    Save(transaction, db_.sql, planned.book);
    SaveLeads(transaction, planned, plan, taken);
}

// What each that holds something of a line has.
void PostgresStore::AddHolds(Params& params, const Planned& planned, const ClaimPlan& plan) {
    std::set<std::size_t> lines;
    for (const ClaimPlan::Pick& pick : plan.picks) lines.insert(pick.line);
    ArrayOf lane(oid::kInt4), resource(oid::kInt4), units(oid::kInt4);
    for (std::size_t line : lines) {
        for (const Need& need : planned.lines[line].needs) {
            auto id = planned.book.ids.find(need.resource);
            if (id == planned.book.ids.end()) continue;
            lane.Int(planned.lanes[line]);
            resource.Int(id->second);
            units.Int(need.units);
        }
    }
    for (ArrayOf* column : {&lane, &resource, &units}) column->AddTo(params);
}

// Whether nothing remembers that these were taken but what they hold: then the claim is committed
// with the statement that takes them.
bool PostgresStore::IsRemembered(const Planned& planned, const ClaimPlan& plan) {
    return std::ranges::any_of(plan.picks, [&](const ClaimPlan::Pick& pick) {
        const WaitingLine& line = planned.lines[pick.line];
        return IsShared(planned.offer, line.queue) ||
               std::ranges::any_of(line.needs, [&](const Need& need) {
                   const ResourceBook::Entry* entry = planned.book.book.Find(need.resource);
                   if (entry == nullptr) return false;
                   return !planned.book.ids.contains(need.resource) ||
                          !planned.offer.supplies.at(need.resource).plain ||
                          entry->resource.state.over != 0;
               });
    });
}

// When it is worth to look again, and whether a suspect waits.
void PostgresStore::NoteNext(
    Transaction& transaction,
    const ClaimRequest& request,
    const Planned& planned,
    const ClaimPlan& plan,
    const Marks::Snapshot& marks,
    ClaimReply& reply
) {
    reply.next_due.reset();
    auto note = [&](Time until) {
        auto wait = std::max(Duration{1}, std::chrono::ceil<Duration>(until - planned.now));
        reply.next_due = std::min(reply.next_due.value_or(wait), wait);
    };
    Rows idle = transaction.QueryAndCommit(
        db_.sql.claim_idle, IdleParams(request, marks, Duration::zero())
    );
    if (!idle.IsNull(0, 3)) note(idle.At(0, 3));
    reply.suspects_waiting = idle.Bool(0, 4);
    for (const std::vector<Obstacle>& left : plan.left) {
        for (const Obstacle& obstacle : left) {
            if (auto until = Until(obstacle, planned.offer)) note(*until);
        }
    }
}

// The lines, and where there is something known of earlier claims its resources, locked and then
// counted: all in one trip.
PostgresStore::Planned PostgresStore::LookAtLines(
    Transaction& transaction,
    const ClaimRequest& request,
    int depth,
    const Marks::Snapshot& marks,
    const Known& known
) {
    Params promote = PromoteParams(request, depth), none, lock, read;
    Params plan = PlanParams(request, depth, known.ages, marks);
    AddTexts(lock, known.names);
    AddTexts(read, known.names);
    read.Bool(false);
    std::vector<postgres::Command> commands = {
        {&db_.sql.promote, &promote}, {&db_.sql.queue_orders, &none}, {&db_.sql.plan_lanes, &plan}};
    if (!known.names.empty()) {
        commands.push_back({&db_.sql.resource_lock, &lock});
        commands.push_back({&db_.sql.resources, &read});
    }
    if (marks.asks()) commands.push_back({&db_.sql.tick, &none});
    std::vector<Rows> rows = transaction.Batch(commands, false);
    if (marks.asks()) NoteUnderWay(marks, rows.back());
    std::vector<QueueOrder> orders = ReadOrders(rows[1]);
    if (AnyAges(orders) && !known.ages) {
        const int deeper = std::max(depth, limits::kAgingDepth);
        rows[2] = transaction.Query(db_.sql.plan_lanes, PlanParams(request, deeper, true, marks));
    }
    Planned planned = ReadPlan(rows[2], orders);
    planned.promoted = PlacesOf(rows[0]);
    planned.ordered = !orders.empty();
    if (!known.names.empty()) {
        for (int i = 0; i < rows[3].size(); ++i) planned.locked.insert(rows[3].Text(i, 1));
        planned.book = BookOf(rows[4]);
    }
    return planned;
}

// Whether what was locked and counted with the first look is all that the plan wants.
bool PostgresStore::IsEnough(const Planned& planned, const ClaimPlan& plan) {
    // Whose turn it is among tenants was not read.
    bool shared = std::ranges::any_of(planned.lines, [&](const WaitingLine& line) {
        return IsShared(planned.offer, line.queue);
    });
    if (shared) return false;
    return std::ranges::all_of(plan.picks, [&](const ClaimPlan::Pick& pick) {
        const WaitingLine& line = planned.lines[pick.line];
        return std::ranges::all_of(line.needs, [&](const Need& need) {
            bool limited = planned.book.book.Find(need.resource) != nullptr;
            return !limited || planned.locked.contains(need.resource);
        });
    });
}

// Whether all of a line that was looked at is taken, so that what was not looked at may come before
// what the plan takes of other lines.
bool PostgresStore::IsCut(const Planned& planned, const ClaimPlan& plan, int depth, int limit) {
    if (depth >= limit) return false;
    std::vector<int> picked(planned.lines.size());
    for (const ClaimPlan::Pick& pick : plan.picks) ++picked[pick.line];
    return std::ranges::any_of(picked, [&](int count) { return count >= depth; });
}

// Where age counts, what came later may go first: of each lane the first that stays behind.
std::map<int, std::int64_t> PostgresStore::PassedOver(
    const Planned& planned, const ClaimPlan& plan
) {
    std::map<int, std::int64_t> passed;
    if (!AnyAges(planned.offer)) return passed;
    std::set<std::pair<std::size_t, std::size_t>> picked;
    for (const ClaimPlan::Pick& pick : plan.picks) picked.emplace(pick.line, pick.waiter);
    for (std::size_t i = 0; i < planned.lines.size(); ++i) {
        const std::vector<model::Waiter>& waiting = planned.lines[i].waiting;
        for (std::size_t k = 0; k < waiting.size(); ++k) {
            if (picked.contains({i, k})) continue;
            passed.emplace(planned.lanes[i], waiting[k].position);
            break;
        }
    }
    return passed;
}

// One transaction.
PostgresStore::PlannedClaim PostgresStore::ClaimPlannedIn(
    Transaction& transaction,
    const ClaimRequest& request,
    int limit,
    const Marks::Snapshot& marks,
    Known& known,
    ClaimReply& reply,
    std::vector<Taken>& taken
) {
    int depth = known.depth > 0 ? std::min(known.depth, limit) : limit;
    if (known.ages) depth = std::max(depth, limits::kAgingDepth);
    Planned planned = LookAtLines(transaction, request, std::max(depth, 1), marks, known);
    const base::Instant looked = base::SystemClock().Now();
    reply.session_live = planned.live;
    PlannedClaim claim{.looked = looked, .promoted = planned.promoted};
    if (!planned.live) return claim;
    const std::vector<std::string> names = NamesOf(planned);
    const bool knew = !known.names.empty();
    claim.knew_too_little = knew && !std::ranges::includes(known.names, names);
    if (claim.knew_too_little) return claim;
    if (knew) {
        Supply(transaction, request, planned);
    } else {
        ReadLeads(transaction, planned);
        ReadSupplies(transaction, request, false, planned);
    }
    bool plain =
        !planned.ordered &&
        std::all_of(planned.lines.begin(), planned.lines.end(), [](const WaitingLine& line) {
            return line.needs.empty() && line.labels.empty();
        });
    special_ = !plain;
    ClaimPlan plan = PlanClaim(planned.lines, planned.offer, limit);
    claim.knew_too_little = knew && !IsEnough(planned, plan);
    if (claim.knew_too_little) return claim;
    if (!plain && !knew) {
        LockPlanned(transaction, request, planned, plan);
        plan = PlanClaim(planned.lines, planned.offer, limit);
    }
    claim.cut = IsCut(planned, plan, depth, limit);
    if (claim.cut) return claim;
    // Between two bursts nothing waits, and what the last one needed is what the next one will.
    if (!planned.lines.empty()) known.names = names;
    known.ages = AnyAges(planned.offer);
    base::TestPoint("store_postgres.planned");
    // Who got something comes back soon anyway.
    const bool notes = plan.picks.empty() || looked - known.noted >= kNoteEvery;
    const bool alone = !notes && !IsRemembered(planned, plan);
    TakePlanned(transaction, request, planned, plan, alone, taken);
    if (!alone && (notes || taken.empty())) {
        NoteNext(transaction, request, planned, plan, marks, reply);
        known.noted = looked;
    }
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < planned.lines.size(); ++i) {
        waiting += planned.lines[i].waiting.size();
        claim.heads.emplace_back(planned.lanes[i], planned.lines[i].waiting.front().position);
    }
    claim.passed = PassedOver(planned, plan);
    // Where little of what is looked at can be taken, less is looked at.
    const int enough = std::max(kLeastDepth, 2 * static_cast<int>(plan.picks.size()));
    known.depth = static_cast<std::size_t>(enough) < waiting ? enough : 0;
    claim.wanted = plan.picks.size() + (plan.passed_over ? 1 : 0);
    claim.all = waiting == plan.picks.size();
    return claim;
}

// What earlier claims wanted, if it is worth to be locked at once.
PostgresStore::Known PostgresStore::KnownNow() {
    std::lock_guard guard(known_mutex_);
    bool use = known_.pause == 0 && known_.names.size() <= kKnownNames &&
               !base::Planted(base::Bug::kClaimOverAdmits);
    if (known_.pause > 0) --known_.pause;
    return use ? known_ : Known{.ages = known_.ages};
}

void PostgresStore::Learn(Known known, bool was_too_little) {
    std::lock_guard guard(known_mutex_);
    known.pause = was_too_little ? kKnownPause : known_.pause;
    known_ = std::move(known);
}

void PostgresStore::ClaimPlanned(
    const ClaimRequest& request, int limit, ClaimReply& reply, std::vector<Taken>& taken
) {
    base::Clock& clock = base::SystemClock();
    Marks::Snapshot marks = marks_.Current(clock.Now());
    Known known = KnownNow();
    for (int tries = 1; tries <= kTries; ++tries) {
        std::vector<Taken> found;
        base::Instant begun = clock.Now();
        Known learned;
        PlannedClaim claim;
        try {
            claim = db_.RunVital([&](Transaction& transaction) {
                found.clear();
                learned = known;
                return ClaimPlannedIn(transaction, request, limit, marks, learned, reply, found);
            });
        } catch (const CommitUnknown&) {
            throw;
        } catch (const std::exception&) {
            if (taken.empty()) throw;
            return;  // nothing came of this one, but the one before is committed
        }
        base::TestPoint("store_postgres.claimed");
        if (claim.knew_too_little) {
            marks_.Lower(claim.promoted);
            known.names.clear();
            Learn(known, true);
            if (!marks.everywhere()) marks = marks_.Current(clock.Now());
            --tries;
            continue;
        }
        if (claim.cut) {
            marks_.Lower(claim.promoted);
            known.depth = 0;
            if (!marks.everywhere()) marks = marks_.Current(clock.Now());
            --tries;
            continue;
        }
        Learn(std::move(learned), false);
        const bool deep = marks.depth != Marks::Depth::kMarks;
        if (deep && reply.session_live) {
            // Of what waits, whether it could be taken or not, nothing is passed over.
            marks_.Looked(marks, begun, claim.looked, false);
            marks_.SetHeads(claim.heads);
        }
        for (Taken& one : found) {
            auto passed = claim.passed.find(one.lane);
            bool behind_others = passed != claim.passed.end() && passed->second < one.position;
            if (!behind_others) marks_.Advance(one.lane, one.position);
            taken.push_back(std::move(one));
        }
        marks_.LowerAgain(marks);
        marks_.Lower(claim.promoted);  // last: it may lie below what was taken
        if (!found.empty() && !deep && static_cast<int>(found.size()) < limit) marks_.Owe();
        if (!found.empty() || !reply.session_live) return;
        if (claim.wanted > 0) continue;  // others came first
        if (!claim.promoted.empty() && !marks.everywhere()) {
            marks = marks_.Current(clock.Now());
            continue;
        }
        // Nothing can be taken behind the marks: look before them.
        auto deeper = claim.all ? marks_.Deeper(clock.Now(), marks.depth)
                                : marks_.DeeperUnlessJustDone(clock.Now(), marks.depth);
        if (!deeper) return;
        marks = std::move(*deeper);
    }
}

std::vector<Explanation> PostgresStore::PlanReasons(
    const ClaimRequest& request, int lane, std::int64_t position, bool goes_otherwise
) {
    return db_.Run([&](Transaction& transaction) {
        std::vector<Explanation> reasons;
        auto add = [&](const std::vector<Obstacle>& obstacles, const Offer& offer) {
            for (const Obstacle& obstacle : obstacles) {
                reasons.push_back({obstacle.condition, model::Detail(obstacle, offer)});
            }
        };
        Lane of = catalog_.LaneOf(lane);
        Placement placement = PlacementOf(of.placement);
        Planned alone;
        WaitingLine& own = alone.lines.emplace_back();
        own.queue = of.queue;
        own.type = of.type;
        own.labels = placement.labels;
        alone.own.push_back(placement.needs);
        alone.now = transaction.Query(db_.sql.now).At(0, 0);
        ReadSupplies(transaction, request, true, alone);
        add(Obstacles(alone.lines.front(), alone.offer), alone.offer);
        if (!reasons.empty() || !goes_otherwise) return reasons;
        Planned planned = LookAtLines(transaction, request, kExplainDepth, {}, {});
        transaction.OnCommit([this, places = planned.promoted] { marks_.Lower(places); });
        ReadLeads(transaction, planned);
        ReadSupplies(transaction, request, true, planned);
        std::size_t all = 0;
        for (const WaitingLine& line : planned.lines) all += line.waiting.size();
        ClaimPlan plan = PlanClaim(planned.lines, planned.offer, static_cast<int>(all));
        bool taken = std::ranges::any_of(plan.picks, [&](const ClaimPlan::Pick& pick) {
            return planned.lanes[pick.line] == lane &&
                   planned.lines[pick.line].waiting[pick.waiter].position == position;
        });
        auto count = [&](std::size_t line, std::int64_t after, std::int64_t before) {
            std::optional<std::int64_t> rest;
            if (AnyAges(planned.offer)) return rest;
            Params params;
            params.Int4(planned.lanes[line]).Int(after).Int(before);
            rest = transaction.Query(db_.sql.ready_between, params).Int(0, 0);
            return rest;
        };
        for (std::size_t i = 0; i < planned.lines.size(); ++i) {
            if (planned.lanes[i] != lane) continue;
            if (!taken) add(plan.left[i], planned.offer);
            if (!reasons.empty()) continue;
            PlaceAsked asked{.line = i, .position = position, .depth = kExplainDepth};
            reasons.push_back(StandsAt(planned.lines, plan, asked, count));
        }
        return reasons;
    });
}

}  // namespace stint::store::pg
