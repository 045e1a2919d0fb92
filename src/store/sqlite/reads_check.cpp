// The store looks at itself: what must always hold, and whether it does.
#include <fmt/format.h>

#include <algorithm>

#include "store/sqlite/queries.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/reads_view.h"

namespace stint::store::lite {

namespace {

CheckFinding FirstColumn(std::string_view what, sqlite::Rows rows) {
    CheckFinding finding{.what = std::string(what), .detail = {}, .ok = true};
    while (rows.Next()) {
        finding.ok = false;
        finding.detail += (finding.detail.empty() ? "" : ", ") + rows.String(0);
    }
    return finding;
}

}  // namespace

CheckFinding Reads::NoRows(std::string_view what, std::string_view query) {
    return FirstColumn(what, Sql(query).Query());
}

CheckFinding Reads::NoRows(std::string_view what, std::string_view query, std::int64_t period) {
    return FirstColumn(fmt::format("{} (period {})", what, period), Sql(query, period).Query());
}

std::vector<CheckFinding> Reads::Check() {
    View view(*this);
    std::vector<CheckFinding> findings;
    std::string integrity = db_.PragmaText("integrity_check");
    findings.push_back({.what = "the file is sound", .detail = integrity, .ok = integrity == "ok"});
    findings.push_back(NoRows("a running task has a session and a token (I5)", "check_held"));
    findings.push_back(NoRows("exactly the waiting tasks can be claimed (L1)", "check_waiting"));
    findings.push_back(NoRows("a unique key belongs to one live task (I7)", "check_unique"));
    findings.push_back(NoRows("each wait counts what it waits for (I9)", "check_wait"));
    findings.push_back(
        NoRows("what is held of resources is held by running tasks (I6)", "check_slots")
    );
    findings.push_back(
        NoRows("what is held of resources is what its holders need (I6)", "check_slots_derived")
    );
    findings.push_back(
        NoRows("running tasks count for what they need of resources (I6)", "check_slots_missing")
    );
    findings.push_back(
        NoRows("no more of a resource is held than its capacity (I6)", "check_capacity")
    );
    findings.push_back(NoRows("each flow counts its steps and signals", "check_flows"));
    findings.push_back(NoRows("the first of an order key goes, the others wait", "check_ordered"));
    findings.push_back(NoRows("the tallies agree with the tasks", "check_tally"));
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        findings.push_back(
            NoRows("the tallies agree with history", "check_tally_history", period.id)
        );
        findings.push_back(NoRows("no task is both live and finished (I2)", "check_both", period.id)
        );
    }
    findings.push_back(CheckPolicies());
    findings.push_back(CheckAudit());
    return findings;
}

CheckFinding Reads::CheckPolicies() {
    CheckFinding finding{.what = "every retry policy can be read", .detail = {}, .ok = true};
    for (sqlite::Rows rows = Sql("check_policies").Query(); rows.Next() && finding.ok;) {
        auto policy = RetryFromJson(rows.Text(1));
        if (policy) continue;
        finding.ok = false;
        finding.detail =
            fmt::format("task {}, which is not recovered: {}", rows.Int(0), policy.error().message);
    }
    return finding;
}

CheckFinding Reads::CheckAudit() {
    CheckFinding finding{
        .what = "the audit log replays to each task's state (I15)", .detail = {}, .ok = true};
    int tasks = 0;
    auto replay = [&](sqlite::Rows rows) {
        std::string why;
        for (; rows.Next() && finding.ok; ++tasks) {
            if (!ReplayAudit(rows.Int(0), static_cast<State>(rows.Int(1)), why)) {
                finding.ok = false;
                finding.detail = fmt::format("task {}: {}", rows.Int(0), why);
            }
        }
    };
    replay(Sql("check_live_states").Query());
    for (const Period& period : periods_.Of(PeriodKind::kHistory)) {
        replay(Sql("check_history_states", period.id).Query());
    }
    if (finding.ok) finding.detail = fmt::format("{} tasks", tasks);
    return finding;
}

bool Reads::ReplayAudit(std::int64_t task, State state, std::string& why) {
    struct Step {
        std::int64_t seq;
        std::optional<State> from;
        State to;
        Event event;
    };
    std::vector<Step> steps;
    for (const Period& period : periods_.Of(PeriodKind::kAudit)) {
        sqlite::Rows rows = Sql("audit_of_task", period.id).Query(task, 0, INT32_MAX);
        while (rows.Next()) {
            steps.push_back(
                {rows.Int(0),
                 rows.IsNull(3) ? std::nullopt : std::optional(static_cast<State>(rows.Int(3))),
                 static_cast<State>(rows.Int(4)),
                 static_cast<Event>(rows.Int(5))}
            );
        }
    }
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
        return a.seq < b.seq;
    });
    if (steps.empty()) {
        why = "no entry at all";
        return false;
    }
    // The oldest entries of a task that waited for years may have been dropped with their period.
    std::optional<State> at = steps.front().from;
    for (const Step& step : steps) {
        if (step.from != at || Next(at, step.event) != step.to) {
            why = fmt::format("entry {} ({}) does not follow", step.seq, EventName(step.event));
            return false;
        }
        at = step.to;
    }
    if (at != state)
        why = fmt::format("ends at {}, the task is {}", StateName(*at), StateName(state));
    return at == state;
}

}  // namespace stint::store::lite
