#include "store/postgres/resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/planted_bug.h"
#include "base/text.h"
#include "model/limits.h"
#include "model/placement.h"
#include "store/claimer_offer.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

// What a resource that limits queues or types matches, for LIKE; empty for the others.
std::string MatchesOf(std::string_view name) {
    if (!IsImplicit(name)) return {};
    const bool many = name.ends_with('*');
    std::string pattern;
    for (char c : name.substr(0, name.size() - (many ? 1 : 0))) {
        if (c == '_' || c == '%' || c == '\\') pattern += '\\';
        pattern += c;
    }
    return many ? pattern + '%' : pattern;
}

std::vector<std::string> Distinct(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

// Whether the resource or pattern may set what `name` is.
bool IsFor(std::string_view resource, std::string_view name) {
    if (!resource.ends_with('*')) return resource == name;
    return name.starts_with(resource.substr(0, resource.size() - 1));
}

bool Worked(AttemptEnd end) {
    return OutcomeOf(end) == ResourceBook::Outcome::kWorked;
}

// Those of names that are there or may be made. Whoever reports comes again after a while, as after
// a failure.
std::vector<Changes::Report> Heard(
    Transaction& transaction, const Sql& sql, std::vector<Changes::Report> reports
) {
    if (reports.empty()) return reports;
    std::vector<std::string> names;
    for (const Changes::Report& report : reports) names.push_back(report.resource);
    PgBook known = ReadBook(transaction, sql, Distinct(std::move(names)));
    auto is_new = [&](const Changes::Report& report) {
        return !known.ids.contains(report.resource);
    };
    if (std::ranges::none_of(reports, is_new)) return reports;
    Params params;
    params.Int4(limits::kPatternNames);
    if (transaction.Query(sql.resource_crowd, params).Int(0, 0) >= limits::kPatternNames) {
        std::erase_if(reports, is_new);
    }
    return reports;
}

}  // namespace

PgBook ReadBook(
    Transaction& transaction, const Sql& sql, const std::vector<std::string>& names, bool holders
) {
    Params params;
    if (!names.empty()) AddTexts(params, names);
    params.Bool(holders);
    return BookOf(transaction.Query(names.empty() ? sql.resources_all : sql.resources, params));
}

PgBook BookOf(const Rows& rows) {
    PgBook read;
    for (int i = 0; i < rows.size(); ++i) {
        std::string name = rows.Text(i, 1);
        read.ids[name] = static_cast<int>(rows.Int(i, 0));
        ResourceBook::Entry& entry = read.book.entries[name];
        entry.resource.pattern = rows.Text(i, 2);
        entry.resource.settings = SettingsOf(name, rows.View(i, 3));
        entry.resource.state = StateOf(rows.View(i, 4));
        entry.held = static_cast<int>(rows.Int(i, 5));
        read.read_at = rows.At(i, 8);
        if (rows.Bool(i, 7)) entry.holders[entry.resource.state.trial] = 1;
        if (rows.IsNull(i, 6)) continue;
        for (std::int64_t task : rows.Ints(i, 6)) entry.holders[TaskId(task)] = 1;
    }
    return read;
}

void MakeMissing(
    Transaction& transaction,
    const Sql& sql,
    const PgBook& known,
    const std::vector<std::string>& names,
    bool all
) {
    ArrayOf name(oid::kText), pattern(oid::kText), settings(oid::kText), matches(oid::kText);
    for (const std::string& one : Distinct(names)) {
        if (known.ids.contains(one)) continue;
        std::string of = PatternFor(known.book.entries, one);
        if (of.empty() && !all) continue;
        name.Text(one);
        pattern.Text(of);
        settings.Text(SettingsText({}));
        matches.TextOrNull(MatchesOf(one));
    }
    if (name.size() == 0) return;
    Params params;
    for (ArrayOf* column : {&name, &pattern, &settings, &matches}) column->AddTo(params);
    transaction.Defer(sql.resource_make, std::move(params));
}

std::set<std::string> Lock(
    Transaction& transaction, const Sql& sql, const std::vector<std::string>& names
) {
    Params params;
    AddTexts(params, names);
    Rows rows = transaction.Query(sql.resource_lock, params);
    std::set<std::string> locked;
    for (int i = 0; i < rows.size(); ++i) locked.insert(rows.Text(i, 1));
    return locked;
}

void Save(Transaction& transaction, const Sql& sql, PgBook& known) {
    ArrayOf name(oid::kText), pattern(oid::kText), settings(oid::kText), state(oid::kText);
    std::vector<std::string> gone;
    for (const std::string& one : known.book.dirty) {
        auto entry = known.book.entries.find(one);
        if (entry == known.book.entries.end()) {
            gone.push_back(one);
            continue;
        }
        const Resource& resource = entry->second.resource;
        name.Text(one);
        pattern.Text(resource.pattern);
        settings.Text(SettingsText(resource.settings));
        state.Text(StateText(resource.state));
    }
    known.book.dirty.clear();
    if (name.size() > 0) {
        Params params;
        for (ArrayOf* column : {&name, &pattern, &settings, &state}) column->AddTo(params);
        transaction.Defer(sql.resource_save, std::move(params));
    }
    if (!gone.empty()) {
        Params params;
        AddTexts(params, gone);
        transaction.Defer(sql.resource_remove, std::move(params));
    }
}

void EditPgBook(
    Transaction& transaction,
    const Sql& sql,
    const std::vector<std::string>& names,
    bool all,
    const std::function<void(PgBook&)>& edit
) {
    // One of a pattern may be forgotten between the two looks.
    constexpr int kLooks = 20;  // each one lost to a settlement that came first
    for (int look = 0; look < kLooks; ++look) {
        PgBook before = ReadBook(transaction, sql, names);
        MakeMissing(transaction, sql, before, names, all);
        std::set<std::string> locked = Lock(transaction, sql, names);
        bool whole = std::ranges::all_of(names, [&](const std::string& name) {
            return locked.contains(name) || (!all && before.book.Find(name) == nullptr);
        });
        if (whole) break;
    }
    PgBook book = ReadBook(transaction, sql, names);
    edit(book);
    Save(transaction, sql, book);
}

void EditBook(
    Transaction& transaction,
    const Sql& sql,
    const std::vector<std::string>& names,
    bool all,
    const std::function<void(ResourceBook&)>& edit
) {
    EditPgBook(transaction, sql, names, all, [&](PgBook& book) { edit(book.book); });
}

std::vector<QueueOrder> ReadOrders(const Rows& rows) {
    std::vector<QueueOrder> orders;
    for (int i = 0; i < rows.size(); ++i) {
        orders.push_back(store::OrderOf(rows.View(i, 0), rows.View(i, 1)));
    }
    return orders;
}

// ---- what happens to tasks ---------------------------------------------------------------------

Params PostgresStore::ReleaseParams(
    const std::vector<std::int64_t>& tasks, const std::vector<std::int64_t>& leases, bool if_over
) {
    Params params;
    AddInts(params, tasks);
    params.Bool(if_over).Int4(limits::kFreedQueues);
    AddMarks(params, marks_.ForHints());
    AddInts(params, leases);
    return params;
}

// Nothing is locked yet: of what came of it only those resources are concerned that remember
// something which the end of a task changes.
PostgresStore::Freed PostgresStore::FreedOf(const Rows& rows, const ReleasedTasks& ended) {
    Freed freed;
    for (int i = 0; i < rows.size(); ++i) {
        if (rows.IsNull(i, 0)) {
            freed.opened.push_back(rows.Text(i, 3));
            continue;
        }
        TaskId task(rows.Int(i, 0));
        auto end = ended.find(task);
        if (rows.View(i, 2).empty() || end == ended.end()) continue;
        ResourceState before = StateOf(rows.View(i, 2));
        ResourceState after = before;
        End(after, task, Worked(end->second.end));
        if (!(before == after)) freed.concerned[rows.Text(i, 1)].push_back(task);
    }
    return freed;
}

PostgresStore::Freed PostgresStore::ReleaseSlots(
    Transaction& transaction, const ReleasedTasks& ended
) {
    std::vector<std::int64_t> tasks, leases;
    for (const auto& [task, left] : ended) {
        bool crashed = left.end == AttemptEnd::kCrashed;
        if (crashed && base::Planted(base::Bug::kSlotLeakedOnReclaim)) continue;
        tasks.push_back(task.value());
        leases.push_back(left.lease);
    }
    if (tasks.empty()) return {};
    Params params = ReleaseParams(tasks, leases, false);
    return FreedOf(transaction.Query(db_.sql.slots_release, params), ended);
}

// ---- what was set after tasks had started ------------------------------------------------------

// For one that is behind others those count. What they held may have been removed with its
// resource: then each counts for itself.
std::map<TaskId, RunningTask> PostgresStore::ReadRunning(
    Transaction& transaction, const std::function<bool(const RunningTask&)>& wanted
) {
    Rows rows = transaction.Query(db_.sql.running_lines);
    std::map<TaskId, RunningTask> found;
    for (int i = 0; i < rows.size(); ++i) {
        RunningTask task{TaskId(rows.Int(i, 0)), PlacementOf(rows.View(i, 3)).needs, {}};
        task.needs.push_back({QueueResource(rows.View(i, 1)), 1});
        task.needs.push_back({TypeResource(rows.View(i, 2)), 1});
        for (std::string& name : rows.Texts(i, 4)) task.holds.insert(std::move(name));
        const bool behind = rows.Bool(i, 5) && !task.holds.empty();
        if (!behind && wanted(task)) found.emplace(task.id, std::move(task));
    }
    return found;
}

// Leases before resources: so does whoever settles. Until they are locked one that was behind
// others may come to hold what they held: then it is another that is wanted.
std::vector<RunningTask> PostgresStore::HoldRunning(
    Transaction& transaction, const std::function<bool(const RunningTask&)>& wanted
) {
    constexpr int kLooks = 3;
    std::set<TaskId> held;
    std::map<TaskId, RunningTask> found = ReadRunning(transaction, wanted);
    for (int look = 0; look < kLooks; ++look) {
        std::vector<std::int64_t> ids;
        for (const auto& [id, task] : found) {
            if (!held.contains(id)) ids.push_back(id.value());
        }
        if (ids.empty()) break;
        Params params;
        AddInts(params, ids);
        Rows rows = transaction.Query(db_.sql.running_hold, params);
        for (int i = 0; i < rows.size(); ++i) held.emplace(rows.Int(i, 0));
        found = ReadRunning(transaction, wanted);
    }
    std::vector<RunningTask> running;
    for (auto& [id, task] : found) {
        if (held.contains(id)) running.push_back(std::move(task));
    }
    return running;
}

void PostgresStore::AdoptRunning(
    Transaction& transaction, const std::vector<RunningTask>& running
) {
    std::set<std::string> names;
    for (const RunningTask& task : running) {
        for (const Need& need : task.needs) names.insert(need.resource);
    }
    if (names.empty()) return;
    EditPgBook(transaction, db_.sql, {names.begin(), names.end()}, false, [&](PgBook& known) {
        ArrayOf task(oid::kInt8), resource(oid::kInt4), units(oid::kInt4);
        for (const RunningTask& one : running) {
            Needs missing;
            for (const Need& need : one.needs) {
                bool counts =
                    known.ids.contains(need.resource) && !one.holds.contains(need.resource);
                if (counts) missing.push_back(need);
            }
            for (const Need& need : known.book.Adopt(one.id, missing)) {
                task.Int(one.id.value());
                resource.Int(known.ids.at(need.resource));
                units.Int(need.units);
            }
        }
        if (task.size() == 0) return;
        Params params;
        for (ArrayOf* column : {&task, &resource, &units}) column->AddTo(params);
        transaction.Defer(db_.sql.slots_adopt, std::move(params));
    });
}

// Of claims of older programs, which nobody waits for, that were on their way when a resource was
// set.
void PostgresStore::AdoptStragglers() {
    db_.Run([&](Transaction& transaction) {
        PgBook known = ReadBook(transaction, db_.sql, {});
        if (known.ids.empty()) return;
        AdoptRunning(transaction, HoldRunning(transaction, [&](const RunningTask& task) {
                         return std::ranges::any_of(task.needs, [&](const Need& need) {
                             return known.book.Find(need.resource) != nullptr &&
                                    !task.holds.contains(need.resource);
                         });
                     }));
    });
}

int PostgresStore::ForgetIdleResources(int limit) {
    return db_.Run([&](Transaction& transaction) {
        Rows rows = transaction.Query(db_.sql.resource_idle, Params().Int4(limit));
        std::vector<std::string> names;
        for (int i = 0; i < rows.size(); ++i) names.push_back(rows.Text(i, 0));
        if (names.empty()) return 0;
        Time now = transaction.Query(db_.sql.now).At(0, 0);
        PgBook known = ReadBook(transaction, db_.sql, names);
        std::set<std::string> wanted;
        Rows lanes = transaction.Query(db_.sql.lanes_waiting);
        for (int i = 0; i < lanes.size(); ++i) {
            Needs own = PlacementOf(lanes.View(i, 2)).needs;
            for (const Need& need : known.book.NeedsOf(own, lanes.View(i, 0), lanes.View(i, 1))) {
                wanted.insert(need.resource);
            }
        }
        std::vector<std::string> idle = known.book.Idle(wanted, now, limit);
        for (const std::string& name : idle) known.book.Forget(name);
        Save(transaction, db_.sql, known);
        return static_cast<int>(idle.size());
    });
}

// Every way out of a lease comes by here, in its own transaction. All resources that are concerned
// are locked at once, in the order in which everybody locks them.
PostgresStore::Opened PostgresStore::LetGo(
    Transaction& transaction,
    const ReleasedTasks& ended,
    const std::vector<Changes::Report>& reports
) {
    return LetGo(transaction, ReleaseSlots(transaction, ended), ended, reports);
}

PostgresStore::Opened PostgresStore::LetGo(
    Transaction& transaction,
    Freed freed,
    const ReleasedTasks& ended,
    const std::vector<Changes::Report>& said
) {
    const auto& concerned = freed.concerned;
    const std::vector<Changes::Report> reports = Heard(transaction, db_.sql, said);
    if (concerned.empty() && reports.empty()) return std::move(freed.opened);
    std::vector<std::string> names;
    for (const Changes::Report& report : reports) names.push_back(report.resource);
    for (const auto& [name, tasks] : concerned) names.push_back(name);
    // Those that are concerned are there; what is reported of may have to be made.
    const bool make = !reports.empty();
    EditBook(transaction, db_.sql, Distinct(std::move(names)), make, [&](ResourceBook& book) {
        for (const Changes::Report& report : reports) {
            book.Report(report.resource, report.evidence, report.closed_for);
        }
        for (const auto& [name, tasks] : concerned) {
            auto entry = book.entries.find(name);
            if (entry == book.entries.end()) continue;
            ResourceState& state = entry->second.resource.state;
            for (TaskId task : tasks) End(state, task, Worked(ended.at(task).end));
            book.dirty.insert(name);
        }
    });
    return std::move(freed.opened);
}

int PostgresStore::LaneNeeding(int id, const Needs& needs) {
    Lane lane = catalog_.LaneOf(id);
    Placement placement = PlacementOf(lane.placement);
    placement.needs = Together(placement.needs, needs);
    lane.placement = PlacementText(placement);
    return catalog_.LaneId(lane);
}

// ---- for operators -----------------------------------------------------------------------------

namespace {

constexpr std::chrono::milliseconds kClaimsPatience{2'000};

// A claim that is under way has looked at what was set before, and what it takes is not to be seen
// yet: nobody would count it. So claims wait while a limit is set, and setting one waits for those
// that have begun. Neither for long, whoever else has stopped in the middle.
template <class Work>
auto BetweenClaims(Db& db, const std::string& name, Work&& work) {
    TransactionOptions options;
    options.lock_timeout = kClaimsPatience;
    options.idle_timeout = kClaimsPatience;
    try {
        return db.Run(
            [&](Transaction& transaction) {
                transaction.Defer(db.sql.claims_stop);
                return work(transaction);
            },
            options
        );
    } catch (const LockHeld&) {
        throw LockHeld(fmt::format(
            "resource {} was not changed: a claim or the end of a task has been under way for {} "
            "seconds, and what it takes must be counted first; try again",
            base::Quoted(name),
            kClaimsPatience.count() / 1'000
        ));
    }
}

}  // namespace

Result<ResourceSettings> PostgresResources::Change(
    const ResourceChange& change, std::string_view actor
) {
    if (auto valid = Changed({}, change); !valid) return valid;
    Time now = store_.Now();
    const std::string name = ResourceName(change.name);
    return BetweenClaims(store_.db(), name, [&](Transaction& transaction) {
        auto running = store_.HoldRunning(transaction, [&](const RunningTask& task) {
            return std::ranges::any_of(task.needs, [&](const Need& need) {
                return IsFor(name, need.resource) && !task.holds.contains(need.resource);
            });
        });
        std::vector<std::string> names = {name};
        Rows of = transaction.Query(store_.db().sql.resource_of_pattern, Params().Text(name));
        for (int i = 0; i < of.size(); ++i) names.push_back(of.Text(i, 0));
        Result<ResourceSettings> settings = ResourceSettings{};
        EditBook(transaction, store_.db().sql, Distinct(names), true, [&](ResourceBook& book) {
            settings = book.Change(change, actor, now);
        });
        store_.AdoptRunning(transaction, running);
        return settings;
    });
}

// Those that had its settings have another pattern's from then on, or none: they find out by
// themselves.
bool PostgresResources::Remove(std::string_view name, std::string_view) {
    const std::string key = ResourceName(name);
    return BetweenClaims(store_.db(), key, [&](Transaction& transaction) {
        auto running = store_.HoldRunning(transaction, [&](const RunningTask& task) {
            return std::ranges::any_of(task.needs, [&](const Need& need) {
                return IsFor(key, need.resource);
            });
        });
        Params params;
        AddTexts(params, {&key, 1});
        if (transaction.Query(store_.db().sql.resource_remove, params).empty()) return false;
        // What was held of it is gone with it; a pattern may be for it.
        for (RunningTask& task : running) task.holds.erase(key);
        store_.AdoptRunning(transaction, running);
        return true;
    });
}

std::vector<ResourceRecord> PostgresResources::List() {
    Time now = store_.Now();
    return store_.db().Run([&](Transaction& transaction) {
        PgBook book = ReadBook(transaction, store_.db().sql, {}, true);
        std::vector<ResourceRecord> records = book.book.Records(now);
        std::map<std::string, std::int64_t> waiting;
        Rows rows = transaction.Query(store_.db().sql.resource_waiting);
        for (int i = 0; i < rows.size(); ++i) {
            Needs own = PlacementOf(rows.View(i, 2)).needs;
            for (const Need& need : book.book.NeedsOf(own, rows.View(i, 0), rows.View(i, 1))) {
                waiting[need.resource] += rows.Int(i, 3);
            }
        }
        for (ResourceRecord& record : records) record.waiting = waiting[record.settings.name];
        return records;
    });
}

std::optional<ResourceRecord> PostgresResources::Find(std::string_view name) {
    for (ResourceRecord& record : List()) {
        if (record.settings.name == ResourceName(name)) return std::move(record);
    }
    return std::nullopt;
}

bool PostgresResources::Reopen(std::string_view name, std::string_view) {
    return store_.db().Run([&](Transaction& transaction) {
        bool there = false;
        std::vector<std::string> names = {ResourceName(name)};
        EditBook(transaction, store_.db().sql, names, false, [&](ResourceBook& book) {
            there = book.Reopen(name);
        });
        return there;
    });
}

bool PostgresResources::Close(
    std::string_view name, Duration length, std::string_view reason, std::string_view actor
) {
    Time now = store_.Now();
    return store_.db().Run([&](Transaction& transaction) {
        bool there = false;
        std::vector<std::string> names = {ResourceName(name)};
        EditBook(transaction, store_.db().sql, names, false, [&](ResourceBook& book) {
            there = book.Close(name, length, OperatorEvidence(reason, actor, now));
        });
        return there;
    });
}

Result<void> PostgresResources::SetOrder(const QueueOrder& order, std::string_view) {
    if (auto valid = Validate(order); !valid) return valid;
    store_.db().Run([&](Transaction& transaction) {
        Params params;
        params.Text(order.queue).Text(OrderText(order));
        transaction.Query(store_.db().sql.order_set, params);
    });
    return {};
}

bool PostgresResources::RemoveOrder(std::string_view queue, std::string_view) {
    return store_.db().Run([&](Transaction& transaction) {
        return !transaction.Query(store_.db().sql.order_remove, Params().Text(queue)).empty();
    });
}

std::vector<QueueOrder> PostgresResources::Orders() {
    return ReadOrders(store_.db().Read(store_.db().sql.queue_orders));
}

}  // namespace stint::store::pg
