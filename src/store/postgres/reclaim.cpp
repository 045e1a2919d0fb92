// Recovering: leases of dead sessions, attempts over their time, background work nobody completed.
//
// A session is locked FOR UPDATE and marked as expired in one statement, its leases are read in a
// later one: that sees every claim which committed under the session before the lock was granted.
#include <algorithm>

#include "base/text.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

constexpr std::string_view kSweeper = "sweeper";

struct Tokens {
    std::vector<std::int64_t> tasks, keys, secrets;
};

Params FactsParams(const Tokens& tokens) {
    Params params;
    AddInts(params, Sorted(tokens.keys));
    AddInts(params, tokens.tasks);
    AddInts(params, tokens.keys);
    AddInts(params, tokens.secrets);
    return params;
}

std::vector<Facts> ById(std::vector<Facts> facts) {
    std::sort(facts.begin(), facts.end(), [](const Facts& a, const Facts& b) {
        return a.id < b.id;
    });
    return facts;
}

Facts Counted(const Facts& facts) {
    Facts after = facts;
    ++after.attempt;
    ++after.claim_no;
    return after;
}

Reclaimed ReportOf(const Facts& facts, const Disposition& what, AttemptEnd end) {
    Reclaimed report;
    report.task = facts.id;
    report.from = facts.session;
    report.hostname = facts.hostname;
    report.to = what.to;
    report.end = end;
    report.reason = what.reason;
    return report;
}

}  // namespace

std::vector<Facts> PostgresStore::DoomedBySession(Transaction& transaction, int limit, bool& more) {
    // One lease row holds at least one task, so this many rows are enough; one more tells of
    // others.
    Params params;
    params.Int4(limit + 1);
    AddInts(params, catalog_.Unreadable());
    Rows rows = transaction.Query(db_.sql.leases_of_expired, params);
    Tokens tokens;
    for (int i = 0; i < rows.size(); ++i) {
        std::vector<std::int64_t> ids = rows.Ints(i, 1), secrets = rows.Ints(i, 2);
        for (std::size_t k = 0; k < ids.size(); ++k) {
            if (static_cast<int>(tokens.tasks.size()) >= limit) {
                more = true;
                break;
            }
            tokens.tasks.push_back(ids[k]);
            tokens.keys.push_back(rows.Int(i, 0));
            tokens.secrets.push_back(secrets[k]);
        }
    }
    if (tokens.tasks.empty()) return {};
    return ById(ReadFacts(transaction.Query(db_.sql.lease_facts, FactsParams(tokens))));
}

std::vector<Facts> PostgresStore::DoomedByTime(
    Transaction& transaction, Duration grace, int limit, bool& more
) {
    Params params;
    params.Int(grace.count()).Int4(limit);
    AddInts(params, catalog_.Unreadable());
    Rows rows = transaction.Query(db_.sql.lapsed_leases, params);
    Tokens tokens;
    for (int i = 0; i < rows.size(); ++i) {
        if (i >= limit) {
            more = true;
            break;
        }
        tokens.keys.push_back(rows.Int(i, 0));
        tokens.tasks.push_back(rows.Int(i, 1));
        tokens.secrets.push_back(rows.Int(i, 2));
    }
    if (tokens.tasks.empty()) return {};
    return ById(ReadFacts(transaction.Query(db_.sql.lease_facts, FactsParams(tokens))));
}

std::vector<Facts> PostgresStore::DoomedOutside(
    Transaction& transaction, int limit, bool& more, std::vector<TaskId>& skipped
) {
    Params lapsed;
    lapsed.Int4(limit + 1);
    AddInts(lapsed, catalog_.Unreadable());
    Rows rows = transaction.Query(db_.sql.lapsed_background, lapsed);
    std::vector<std::int64_t> ids;
    for (int i = 0; i < std::min(rows.size(), limit); ++i) {
        // Before it is taken from where it waits: it is to stay there.
        if (catalog_.CanRead(static_cast<int>(rows.Int(i, 1))))
            ids.push_back(rows.Int(i, 0));
        else
            skipped.emplace_back(rows.Int(i, 0));
    }
    more |= rows.size() > limit;
    if (ids.empty()) return {};
    Params params;
    AddInts(params, Sorted(ids));
    return ReadFacts(transaction.Query(db_.sql.take_outside, params));
}

ReclaimReply PostgresStore::Reclaim(const ReclaimRequest& request) {
    int limit = std::clamp(request.limit, 1, limits::kReclaimBatch);
    TransactionOptions options;
    options.lock_timeout = std::chrono::seconds{2};
    ReclaimReply result = db_.Run(
        [&](Transaction& transaction) {
            ReclaimReply reply;
            Changes changes(catalog_);
            Rows expired = transaction.Query(db_.sql.expire_sessions);
            for (int i = 0; i < expired.size(); ++i) {
                reply.expired.push_back(expired.Uuid<SessionId>(i, 0));
            }
            auto left = [&] { return limit - static_cast<int>(reply.tasks.size()); };
            for (const Facts& facts : DoomedBySession(transaction, limit, reply.more)) {
                if (!catalog_.CanRead(facts.policy)) {
                    reply.skipped.push_back(facts.id);
                    continue;
                }
                auto flight = request.flights.find(facts.session);
                bool started = flight == request.flights.end() ||
                               std::find(flight->second.begin(), flight->second.end(), facts.id) !=
                                   flight->second.end();
                reply.tasks.push_back(
                    started ? ReclaimCrashed(facts, changes) : ReclaimUnstarted(facts, changes)
                );
            }
            if (left() > 0) {
                auto late = DoomedByTime(transaction, request.timeout_grace, left(), reply.more);
                for (const Facts& facts : late) {
                    if (catalog_.CanRead(facts.policy))
                        reply.tasks.push_back(ReclaimTimedOut(facts, changes));
                    else
                        reply.skipped.push_back(facts.id);
                }
            }
            if (left() > 0) {
                for (const Facts& facts :
                     DoomedOutside(transaction, left(), reply.more, reply.skipped)) {
                    reply.tasks.push_back(ReclaimBackground(facts, changes));
                }
            }
            reply.more |= left() <= 0;
            Apply(transaction, changes);
            return reply;
        },
        options
    );
    CancelWhatIsDue();  // of processes that did not get to it as well
    return result;
}

// The lease is over without its holder's word; `after` has the counters as they are from now on.
void PostgresStore::EndHeld(
    const Facts& facts,
    Facts after,
    const Evidence& evidence,
    const Disposition& what,
    Changes& changes
) {
    changes.LeaveLease(facts);
    changes.AddAudit(
        {facts.id,
         catalog_.LaneOf(facts.lane).tenant,
         what.event,
         State::kInProgress,
         what.to,
         facts.attempt + 1,
         facts.generation,
         facts.session,
         std::string(kSweeper),
         what.reason}
    );
    if (IsTerminal(what.to)) {
        std::string error = after.error;
        changes.AddFinish({after, what.to, evidence, {}, false, error, what.reason});
        return;
    }
    changes.AddAttempt(facts, evidence, what.to);
    after.state = what.to;
    changes.AddWaiting({after, facts.now + what.delay});
}

// It had started in a process that is gone: the attempt counts, and it is a suspect from now on.
// Only a crash while alone is its own.
Reclaimed PostgresStore::ReclaimCrashed(const Facts& facts, Changes& changes) {
    Facts after = Counted(facts);
    if (facts.alone()) CountCrash(after);
    Disposition what = DecideCrash(
        {.attempt = after.attempt,
         .max_attempts = catalog_.PolicyOf(facts.policy).max_attempts,
         .alone = facts.alone(),
         .crashes_alone = after.crash_count,
         .cancel_requested = facts.cancel_asked()}
    );
    if (what.event == Event::kCancel) what.reason = facts.cancel_reason;
    Evidence evidence;
    evidence.end = AttemptEnd::kCrashed;
    evidence.accepted = false;
    evidence.error = WriteError(TaskError{
        .message = "its process on " + base::Quoted(facts.hostname) + " ended without an outcome",
        .klass = "crash",
        .stack = {},
        .retryable = true,
    });
    after.error = evidence.error;
    if (what.to == State::kOpen) after.lane = LaneWith(facts.lane, true);
    EndHeld(facts, after, evidence, what, changes);
    Reclaimed report = ReportOf(facts, what, AttemptEnd::kCrashed);
    report.suspect = what.to == State::kOpen;
    return report;
}

// It was handed to a process that died before it ran it: back as it was, the attempt refunded.
Reclaimed PostgresStore::ReclaimUnstarted(const Facts& facts, Changes& changes) {
    Facts after = Counted(facts);
    Disposition what{Event::kReclaim, State::kOpen, Duration::zero(), "not started by its process"};
    if (facts.cancel_asked()) {
        what = {Event::kCancel, State::kCancelled, Duration::zero(), facts.cancel_reason};
    } else {
        --after.attempt;
    }
    Evidence evidence;
    evidence.end = AttemptEnd::kReleased;
    evidence.accepted = false;
    EndHeld(facts, after, evidence, what, changes);
    Reclaimed report = ReportOf(facts, what, AttemptEnd::kReleased);
    report.suspect = what.to == State::kOpen && catalog_.LaneOf(facts.lane).suspect;
    return report;
}

Reclaimed PostgresStore::ReclaimTimedOut(const Facts& facts, Changes& changes) {
    Facts after = Counted(facts);
    TaskError error{
        .message = "not finished within its timeout of " +
                   base::DurationText(facts.timeout.value_or(Duration::zero())),
        .klass = "timeout",
        .stack = {},
        .retryable = true,
    };
    Disposition what = DecideFailure(catalog_.PolicyOf(facts.policy), after.attempt, error, 0.5);
    if (facts.cancel_asked()) {
        what = {Event::kCancel, State::kCancelled, Duration::zero(), facts.cancel_reason};
    }
    Evidence evidence;
    evidence.end = AttemptEnd::kTimedOut;
    evidence.accepted = false;
    evidence.error = WriteError(error);
    after.error = evidence.error;
    EndHeld(facts, after, evidence, what, changes);
    Reclaimed report = ReportOf(facts, what, AttemptEnd::kTimedOut);
    report.suspect = !IsTerminal(what.to) && catalog_.LaneOf(facts.lane).suspect;
    return report;
}

Reclaimed PostgresStore::ReclaimBackground(const Facts& facts, Changes& changes) {
    bool again = AttemptsLeft(catalog_.PolicyOf(facts.policy), facts.attempt);
    Disposition what{
        again ? Event::kBackgroundTimeout : Event::kFailFinal,
        again ? State::kOpen : State::kDead,
        Duration::zero(),
        again ? "not completed from outside in time"
              : "not completed from outside in time; attempts exhausted"};
    changes.AddAudit(
        {facts.id,
         catalog_.LaneOf(facts.lane).tenant,
         what.event,
         State::kBackground,
         what.to,
         facts.attempt,
         facts.generation,
         {},
         std::string(kSweeper),
         what.reason}
    );
    Facts after = facts;
    if (again) {
        after.state = State::kOpen;
        changes.AddWaiting({after, facts.now});
    } else {
        changes.AddFinish({after, what.to, std::nullopt, {}, false, after.error, what.reason});
    }
    Reclaimed report = ReportOf(facts, what, AttemptEnd::kBackground);
    report.from = {};
    return report;
}

}  // namespace stint::store::pg
