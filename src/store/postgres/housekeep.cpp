// What is over: start-by deadlines, keys, sessions, periods of history. And the store's self-check.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {
constexpr int kFoldAtOnce = 100'000;  // small rows, one or a few per settled batch
}

HousekeepReply PostgresStore::Housekeep(const HousekeepRequest& request) {
    HousekeepReply reply;
    db_.Once(db_.sql.begin_period);
    catalog_.ReloadPeriods();
    catalog_.ForgetUnreadable();
    // In the order of the columns. An idle node finds nothing, and says no more than these few
    // words.
    Rows there = db_.Read(db_.sql.housekeep_look);
    const bool stragglers = there.Bool(0, 0), resources = there.Bool(0, 1);
    const bool idle_resources = there.Bool(0, 2), unstarted = there.Bool(0, 3);
    const bool flows = there.Bool(0, 4), results = there.Bool(0, 5), classes = there.Bool(0, 6);
    if (stragglers) ResolveStragglers();
    if (resources) AdoptStragglers();
    int most = idle_resources ? ForgetIdleResources(request.limit) : 0;
    if (unstarted) reply.expired_tasks = ExpireUnstarted(request.limit);
    Params over, ended;
    over.Int4(request.limit).Int(limits::kRetention.count());
    ended.Int4(request.limit).Int(request.session_kept.count());
    Rows forgotten = db_.Once(db_.sql.forget, over);
    reply.expired_keys = static_cast<int>(forgotten.Int(0, 0));
    most = std::max(most, static_cast<int>(forgotten.Int(0, 1)));
    Rows sessions = db_.Once(db_.sql.forget_sessions, ended);
    reply.forgotten_sessions = static_cast<int>(sessions.Int(0, 0));
    reply.more = db_.Once(db_.sql.fold_tally, Params().Int4(kFoldAtOnce)).Int(0, 0) >= kFoldAtOnce;
    if (request.history) {
        reply.dropped_periods = DropPeriods(request.limit);
        if (flows) most = std::max(most, flows_.Tidy(request.limit));
        if (results) reply.more |= results_.Forget(request.limit);
        if (classes) {
            db_.Run([&](Transaction& transaction) { transaction.Query(db_.sql.retire_classes); });
        }
    }
    most = std::max({most, reply.expired_tasks, reply.expired_keys, reply.forgotten_sessions});
    most = std::max(most, static_cast<int>(reply.dropped_periods.size()));
    reply.more |= most >= request.limit;
    return reply;
}

int PostgresStore::ExpireUnstarted(int limit) {
    return db_.Run([&](Transaction& transaction) {
        Rows late = transaction.Query(db_.sql.start_by_passed, Params().Int4(limit));
        std::map<std::int64_t, Time> deadlines;
        std::vector<std::int64_t> ids;
        for (int i = 0; i < late.size(); ++i) {
            deadlines[late.Int(i, 0)] = late.At(i, 1);
            ids.push_back(late.Int(i, 0));
        }
        if (ids.empty()) return 0;
        Changes changes(catalog_);
        std::vector<Facts> taken = TakeWaiting(transaction, ids, {State::kOpen, State::kError});
        for (const Facts& facts : taken) {
            std::string reason =
                "not started by its deadline, " + base::Iso8601(deadlines.at(facts.id.value()));
            changes.AddAudit(
                {facts.id,
                 catalog_.LaneOf(facts.lane).tenant,
                 Event::kExpire,
                 facts.state,
                 State::kDead,
                 facts.attempt,
                 facts.generation,
                 {},
                 "housekeeping",
                 reason}
            );
            changes.AddFinish({facts, State::kDead, std::nullopt, {}, false, facts.error, reason});
        }
        Apply(transaction, changes);
        return static_cast<int>(taken.size());
    });
}

std::vector<std::string> PostgresStore::DropPeriods(int limit) {
    Rows leaves = db_.Read(db_.sql.drop_candidates);
    std::vector<std::string> dropped;
    TransactionOptions options;
    // The table is dropped only if nobody is in the way: whoever waits for the lock stops the rest.
    options.lock_timeout = std::chrono::milliseconds{200};
    for (int i = 0; i < leaves.size() && static_cast<int>(dropped.size()) < limit; ++i) {
        Params params;
        params.Text(leaves.View(i, 0)).Int(leaves.Int(i, 3));
        try {
            bool gone = db_.Run(
                [&](Transaction& transaction) {
                    return transaction.Query(db_.sql.drop_leaf, params).Bool(0, 0);
                },
                options
            );
            if (gone) dropped.push_back(leaves.Text(i, 0));
        } catch (const Unavailable&) {
            // Somebody reads it now; it will go the next time.
        }
    }
    return dropped;
}

// Table by table, so that no statement runs into its time limit however much is kept.
CheckFinding PostgresStore::CheckTallies() {
    CheckFinding finding{.what = "the counts of finished tasks are the numbers of their rows"};
    Rows parts = db_.Read(db_.sql.history_parts);
    for (int i = 0; i < parts.size() && finding.ok; ++i) {
        Params part;
        part.Int4(static_cast<int>(parts.Int(i, 0)));
        Rows wrong = db_.ReadPlanned(db_.sql.check_tally, part);
        if (wrong.empty()) continue;
        finding.ok = false;
        finding.detail = fmt::format(
            "history table {}_{}, lane {}, {}: counted {}, there are {}",
            parts.Int(i, 0) / kClasses,
            parts.Int(i, 0) % kClasses,
            wrong.Int(0, 0),
            StateName(static_cast<State>(wrong.Int(0, 1))),
            wrong.Int(0, 2),
            wrong.Int(0, 3)
        );
    }
    return finding;
}

std::vector<CheckFinding> PostgresStore::Check() {
    std::vector<CheckFinding> findings;
    auto judge = [&](std::string what, const Rows& rows, auto&& say) {
        CheckFinding& finding = findings.emplace_back();
        finding.what = std::move(what);
        finding.ok = rows.empty();
        if (!finding.ok) finding.detail = say(rows);
    };
    auto look = [&](const std::string& what, const postgres::Statement& statement, auto&& say) {
        judge(what, db_.ReadPlanned(statement), say);
    };
    judge(
        "the audit log replays to every task's state (I15)",
        FirstThatDoesNotReplay(),
        [](const Rows& rows) { return fmt::format("task {} {}", rows.Int(0, 0), rows.View(0, 1)); }
    );
    look(
        "every live task is in exactly one place (I5)",
        db_.sql.check_leases,
        [](const Rows& rows) {
            return fmt::format("task {} is in {}", rows.Int(0, 0), rows.Int(0, 1));
        }
    );
    look(
        "each unique key stands for one live task, each lease has a session (I7)",
        db_.sql.check_orphans,
        [](const Rows& rows) { return rows.Text(0, 0); }
    );
    look(
        "what is held of resources is held by running tasks that need it (I6)",
        db_.sql.check_slots,
        [](const Rows& rows) { return fmt::format("task {}: {}", rows.Int(0, 0), rows.Text(0, 1)); }
    );
    look(
        "running tasks count for what they need of resources (I6)",
        db_.sql.check_slots_missing,
        [](const Rows& rows) { return fmt::format("task {}: {}", rows.Int(0, 0), rows.Text(0, 1)); }
    );
    look(
        "no more of a resource is held than its capacity (I6)",
        db_.sql.check_capacity,
        [](const Rows& rows) {
            return fmt::format(
                "{}: capacity {}, {} held", rows.View(0, 0), rows.Int(0, 1), rows.Int(0, 2)
            );
        }
    );
    look("each flow counts its steps and signals", db_.sql.check_flows, [](const Rows& rows) {
        return fmt::format(
            "flow {} counts {} of {} steps, {} of {} bytes, {} of {} signals that wait",
            rows.Int(0, 0),
            rows.Int(0, 1),
            rows.Int(0, 2),
            rows.Int(0, 3),
            rows.Int(0, 4),
            rows.Int(0, 5),
            rows.Int(0, 6)
        );
    });
    look(
        "the first of an order key goes, the others wait",
        db_.sql.check_ordered,
        [](const Rows& rows) { return fmt::format("task {}", rows.Int(0, 0)); }
    );
    look("each wait counts what it waits for (I9)", db_.sql.check_waits, [](const Rows& rows) {
        return rows.Text(0, 0);
    });
    findings.push_back(CheckTallies());
    CheckFinding& policies = findings.emplace_back();
    policies.what = "every retry policy can be read";
    Rows stored = db_.ReadPlanned(db_.sql.check_policies);
    for (int i = 0; i < stored.size(); ++i) {
        auto policy = RetryFromJson(stored.View(i, 1));
        if (policy) continue;
        policies.ok = false;
        policies.detail = fmt::format(
            "policy {}, whose tasks are not recovered: {}", stored.Int(i, 0), policy.error().message
        );
    }
    return findings;
}

}  // namespace stint::store::pg
