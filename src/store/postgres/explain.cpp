// Why a claim would skip a task: the claim's own conditions, asked of that one.
#include "base/text.h"
#include "store/block.h"
#include "store/postgres/statements.h"
#include "store/postgres/store_impl.h"

namespace stint::store::pg {

namespace {

// A task that is being moved by others may have to be looked for again.
constexpr int kLooks = 20;

// What the condition speaks of; the columns are those of explain.sql.
std::string Detail(Condition condition, const Rows& rows) {
    switch (condition) {
        case Condition::kNotDue:
            return "due at " + base::Iso8601(rows.At(0, 1));
        case Condition::kStartByPassed:
            return "start-by was " + base::Iso8601(rows.At(0, 2));
        case Condition::kQueuePaused:
        case Condition::kQueueNotServed:
            return "queue " + base::Quoted(rows.Text(0, 3));
        case Condition::kTypeNotHandled:
            return "type " + base::Quoted(rows.Text(0, 4));
        case Condition::kBehindInOrder:
            return BehindInOrder(rows.View(0, 5), TaskId(rows.Int(0, 8)));
        default:
            return {};
    }
}

std::vector<Explanation> Reasons(const Rows& rows) {
    std::vector<Explanation> reasons;
    for (std::int64_t number : rows.Ints(0, 0)) {
        auto condition = static_cast<Condition>(number);
        reasons.push_back({condition, Detail(condition, rows)});
    }
    return reasons;
}

}  // namespace

std::vector<Explanation> PostgresStore::Explain(TaskId id, const ClaimRequest& claimer) {
    for (int look = 0; look < kLooks; ++look) {
        std::optional<TaskRecord> task = Get(id);
        if (!task) return {};
        if (task->state != State::kOpen && task->state != State::kError) {
            return {{Condition::kNotWaiting, "it is " + std::string(StateName(task->state))}};
        }
        ClaimRequest asked = claimer;
        // The general question, of no worker in particular: whoever handles its type.
        if (!asked.session.valid() && asked.types.empty()) asked.types = {task->type};
        Params params = ClaimerParams(asked);
        params.Number(id);
        Rows rows = db_.Read(db_.sql.explain, params);
        if (rows.empty()) continue;
        std::vector<Explanation> reasons = Reasons(rows);
        auto lane = static_cast<int>(rows.Int(0, 6));
        for (Explanation& more : PlanReasons(asked, lane, rows.Int(0, 7), reasons.empty())) {
            reasons.push_back(std::move(more));
        }
        if (reasons.empty()) reasons.push_back({Condition::kEligible, {}});
        return reasons;
    }
    throw Unavailable(
        "task " + id.ToString() + " was being moved by others at every look; try again"
    );
}

}  // namespace stint::store::pg
