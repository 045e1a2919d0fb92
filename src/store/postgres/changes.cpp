#include "store/postgres/changes.h"

#include <algorithm>

#include "base/check.h"
#include "store/postgres/pieces.h"

namespace stint::store::pg {

namespace {

// Arrays of one batch, filled side by side and added in the order of the statement's parameters.
struct Column {
    ArrayOf array;
    explicit Column(unsigned type) : array(type) {}
    void Maybe(const std::optional<Time>& at) { at ? array.At(*at) : array.Null(); }
    void Maybe(const std::optional<int>& value) { value ? array.Int(*value) : array.Null(); }
    void Maybe(NodeId node) { node.valid() ? array.Int(node.value()) : array.Null(); }
    void Maybe(SessionId session) { session.valid() ? array.Uuid(session) : array.Null(); }
};

template <class... Columns>
Params Together(Columns&... columns) {
    Params params;
    (columns.array.AddTo(params), ...);
    return params;
}

}  // namespace

std::vector<Facts> ReadFacts(const Rows& rows) {
    std::vector<Facts> all;
    all.reserve(static_cast<std::size_t>(rows.size()));
    for (int i = 0; i < rows.size(); ++i) {
        Facts facts;
        facts.id = TaskId(rows.Int(i, 0));
        facts.lane = static_cast<int>(rows.Int(i, 1));
        facts.policy = static_cast<int>(rows.Int(i, 2));
        facts.flags = static_cast<int>(rows.Int(i, 3));
        facts.attempt = static_cast<int>(rows.Int(i, 4));
        facts.claim_no = static_cast<int>(rows.Int(i, 5));
        facts.generation = static_cast<int>(rows.Int(i, 6));
        facts.crash_count = static_cast<int>(rows.Int(i, 7));
        facts.crash_from = rows.MaybeAt(i, 8);
        facts.state = static_cast<State>(rows.Int(i, 9));
        facts.error = rows.Text(i, 10);
        if (!rows.IsNull(i, 11)) facts.token = TokenOf(rows.Int(i, 11), rows.Int(i, 12));
        facts.session = rows.Uuid<SessionId>(i, 13);
        facts.node = NodeId(rows.Int(i, 14));
        facts.claimed_at = rows.MaybeAt(i, 15);
        facts.now = rows.At(i, 16);
        if (!rows.IsNull(i, 17)) facts.timeout = Duration(rows.Int(i, 17));
        facts.due_at = rows.At(i, 18);
        facts.pos = rows.Int(i, 19);
        facts.created_at = rows.At(i, 20);
        facts.explicit_mask = static_cast<int>(rows.Int(i, 21));
        facts.hostname = rows.Text(i, 22);
        facts.cancel_reason = rows.Text(i, 23);
        all.push_back(std::move(facts));
    }
    return all;
}

void Changes::LeaveLease(const Facts& facts) {
    leaving_.emplace_back(KeyOf(facts.token), facts.id);
    if ((facts.flags & kHoldsSlots) != 0) {
        released_.emplace(facts.id, Released{AttemptEnd::kLost, KeyOf(facts.token)});
    }
}

void Changes::AddAttempt(const Facts& facts, const Evidence& evidence, State to) {
    if ((facts.flags & kHoldsSlots) != 0) {
        released_[facts.id] = {evidence.end, KeyOf(facts.token)};
    }
    attempts_.push_back({facts, evidence, to});
}
void Changes::AddWaiting(const Waiting& waiting) {
    waiting_.push_back(waiting);
}
void Changes::AddFinish(const Finish& finish) {
    CHECK(IsTerminal(finish.state));
    bool held = finish.evidence && (finish.after.flags & kHoldsSlots) != 0;
    if (held) released_[finish.after.id] = {finish.evidence->end, KeyOf(finish.after.token)};
    finished_.push_back(finish);
}
void Changes::AddOutside(const Outside& outside) {
    outside_.push_back(outside);
}

void Changes::AddAudit(Entry entry) {
    // The one place where the transition table is asked for all but the hot statements.
    CHECK_WHY(Next(entry.from, entry.event) == entry.to, "a transition that the table refuses");
    audit_.push_back(std::move(entry));
}

void Changes::Defer(Transaction& transaction, const Sql& sql) const {
    if (!leaving_.empty()) {
        std::vector<std::int64_t> keys, tasks;
        for (const auto& [key, task] : leaving_) {
            keys.push_back(key);
            tasks.push_back(task.value());
        }
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        Params params;
        AddInts(params, keys);
        AddInts(params, tasks);
        transaction.Defer(sql.leave_lease, std::move(params));
    }
    if (!attempts_.empty()) transaction.Defer(sql.write_attempts, AttemptParams());
    if (!waiting_.empty()) transaction.Defer(sql.wait, WaitingParams());
    auto bytes_of = [](const Finish& finish) { return finish.output.size() + finish.error.size(); };
    for (const Piece& piece : Pieces(finished_, bytes_of)) {
        std::span<const Finish> part(finished_.data() + piece.from, piece.count);
        transaction.Defer(sql.finish, FinishParams(part));
    }
    if (!outside_.empty()) transaction.Defer(sql.go_outside, OutsideParams());
    if (!audit_.empty()) transaction.Defer(sql.write_audit, AuditParams());
}

Params Changes::AttemptParams() const {
    Column period(oid::kInt4), task(oid::kInt8), claim_no(oid::kInt4), attempt(oid::kInt4),
        generation(oid::kInt4), ending(oid::kInt2), alone(oid::kBool), started(oid::kTimestamptz),
        finished(oid::kTimestamptz), key(oid::kInt8), secret(oid::kInt8), session(oid::kUuid),
        node(oid::kInt8), code(oid::kInt4), signal(oid::kInt4), error(oid::kText), tail(oid::kText),
        to(oid::kInt2);
    for (const AttemptRow& row : attempts_) {
        period.array.Int(catalog_.PeriodOf(row.facts.id));
        task.array.Int(row.facts.id.value());
        claim_no.array.Int(row.facts.claim_no + 1);
        attempt.array.Int(row.facts.attempt + 1);
        generation.array.Int(row.facts.generation);
        ending.array.Int(static_cast<int>(row.evidence.end));
        alone.array.Bool(row.facts.alone());
        started.array.At(row.facts.claimed_at.value_or(row.facts.now));
        finished.array.At(row.facts.now);
        bool accepted = row.evidence.accepted;
        accepted ? key.array.Int(KeyOf(row.facts.token)) : key.array.Null();
        accepted ? secret.array.Int(SecretOf(row.facts.token)) : secret.array.Null();
        accepted ? to.array.Int(static_cast<int>(row.to)) : to.array.Null();
        session.array.Uuid(row.facts.session);
        node.Maybe(row.facts.node);
        code.Maybe(row.evidence.exit_code);
        signal.Maybe(row.evidence.exit_signal);
        error.array.TextOrNull(row.evidence.error);
        tail.array.TextOrNull(row.evidence.stderr_tail);
    }
    return Together(
        period,
        task,
        claim_no,
        attempt,
        generation,
        ending,
        alone,
        started,
        finished,
        key,
        secret,
        session,
        node,
        code,
        signal,
        error,
        tail,
        to
    );
}

Params Changes::WaitingParams() const {
    Column task(oid::kInt8), lane(oid::kInt4), flags(oid::kInt2), due(oid::kTimestamptz),
        ready(oid::kBool), pos(oid::kInt8), state(oid::kInt2), attempt(oid::kInt4),
        claim_no(oid::kInt4), generation(oid::kInt4), crashes(oid::kInt4),
        crash_from(oid::kTimestamptz), node(oid::kInt8), claimed(oid::kTimestamptz),
        error(oid::kText);
    for (const Waiting& row : waiting_) {
        const Facts& after = row.after;
        CHECK(after.state == State::kOpen || after.state == State::kError);
        task.array.Int(after.id.value());
        lane.array.Int(after.lane);
        flags.array.Int(
            (after.flags & ~(kCancelAsked | kAlone | kHoldsSlots | kBehind)) | kHasPast
        );
        due.array.At(row.due);
        ready.array.Bool(row.ready());
        pos.array.Int(after.pos);
        state.array.Int(static_cast<int>(after.state));
        attempt.array.Int(after.attempt);
        claim_no.array.Int(after.claim_no);
        generation.array.Int(after.generation);
        crashes.array.Int(after.crash_count);
        crash_from.Maybe(after.crash_from);
        node.Maybe(after.node);
        claimed.Maybe(after.claimed_at);
        error.array.TextOrNull(after.error);
    }
    return Together(
        task,
        lane,
        flags,
        due,
        ready,
        pos,
        state,
        attempt,
        claim_no,
        generation,
        crashes,
        crash_from,
        node,
        claimed,
        error
    );
}

Params Changes::FinishParams(std::span<const Finish> finished) const {
    Column task(oid::kInt8), period(oid::kInt4), state(oid::kInt2), ending(oid::kInt2),
        attempt(oid::kInt4), claim_no(oid::kInt4), generation(oid::kInt4), crashes(oid::kInt4),
        key(oid::kInt8), secret(oid::kInt8), session(oid::kUuid), node(oid::kInt8),
        claimed(oid::kTimestamptz), warning(oid::kBool), flags(oid::kInt2), code(oid::kInt4),
        signal(oid::kInt4), output(oid::kText), error(oid::kText), reason(oid::kText),
        tail(oid::kText);
    for (const Finish& row : finished) {
        const Facts& after = row.after;
        task.array.Int(after.id.value());
        period.array.Int(catalog_.PeriodOf(after.id));
        state.array.Int(static_cast<int>(row.state));
        row.evidence ? ending.array.Int(static_cast<int>(row.evidence->end)) : ending.array.Null();
        attempt.array.Int(after.attempt);
        claim_no.array.Int(after.claim_no);
        generation.array.Int(after.generation);
        crashes.array.Int(after.crash_count);
        bool accepted = row.evidence && row.evidence->accepted;
        accepted ? key.array.Int(KeyOf(after.token)) : key.array.Null();
        accepted ? secret.array.Int(SecretOf(after.token)) : secret.array.Null();
        session.Maybe(row.evidence ? after.session : SessionId());
        node.Maybe(after.node);
        claimed.Maybe(after.claimed_at);
        warning.array.Bool(row.warning);
        flags.array.Int(after.flags);
        code.Maybe(row.evidence ? row.evidence->exit_code : std::nullopt);
        signal.Maybe(row.evidence ? row.evidence->exit_signal : std::nullopt);
        output.array.TextOrNull(row.output);
        error.array.TextOrNull(row.error);
        reason.array.TextOrNull(row.reason);
        tail.array.TextOrNull(row.evidence ? row.evidence->stderr_tail : std::string());
    }
    return Together(
        task,
        period,
        state,
        ending,
        attempt,
        claim_no,
        generation,
        crashes,
        key,
        secret,
        session,
        node,
        claimed,
        warning,
        flags,
        code,
        signal,
        output,
        error,
        reason,
        tail
    );
}

Params Changes::OutsideParams() const {
    Column task(oid::kInt8), state(oid::kInt2), key(oid::kInt8), secret(oid::kInt8),
        session(oid::kUuid), expires(oid::kTimestamptz), reason(oid::kText), attempt(oid::kInt4),
        claim_no(oid::kInt4), generation(oid::kInt4), crashes(oid::kInt4),
        crash_from(oid::kTimestamptz), node(oid::kInt8), claimed(oid::kTimestamptz),
        error(oid::kText);
    for (const Outside& row : outside_) {
        const Facts& after = row.after;
        task.array.Int(after.id.value());
        state.array.Int(static_cast<int>(row.state));
        key.array.Int(KeyOf(after.token));
        secret.array.Int(SecretOf(after.token));
        session.array.Uuid(after.session);
        expires.Maybe(row.expires_at);
        reason.array.Text(row.reason);
        attempt.array.Int(after.attempt);
        claim_no.array.Int(after.claim_no);
        generation.array.Int(after.generation);
        crashes.array.Int(after.crash_count);
        crash_from.Maybe(after.crash_from);
        node.Maybe(after.node);
        claimed.Maybe(after.claimed_at);
        error.array.TextOrNull(after.error);
    }
    return Together(
        task,
        state,
        key,
        secret,
        session,
        expires,
        reason,
        attempt,
        claim_no,
        generation,
        crashes,
        crash_from,
        node,
        claimed,
        error
    );
}

Params Changes::AuditParams() const {
    Column task(oid::kInt8), tenant(oid::kInt8), event(oid::kInt2), from(oid::kInt2),
        to(oid::kInt2), attempt(oid::kInt4), generation(oid::kInt4), session(oid::kUuid),
        actor(oid::kText), reason(oid::kText);
    for (const Entry& row : audit_) {
        task.array.Int(row.task.value());
        tenant.array.Int(row.tenant.value());
        event.array.Int(static_cast<int>(row.event));
        row.from ? from.array.Int(static_cast<int>(*row.from)) : from.array.Null();
        to.array.Int(static_cast<int>(row.to));
        attempt.array.Int(row.attempt);
        generation.array.Int(row.generation);
        session.Maybe(row.session);
        actor.array.TextOrNull(row.actor);
        reason.array.TextOrNull(row.reason);
    }
    return Together(task, tenant, event, from, to, attempt, generation, session, actor, reason);
}

}  // namespace stint::store::pg
