// Why a claim may skip a task, each reason in one place: conditions/<name>.sql is true where the
// reason named so applies. The statements of the claim leave out whom a condition of their sieve
// applies to, explain asks them all of one task. So the two cannot disagree.
//
// What a fragment may name: n.t the time; $1 the claimer's session, $2 its queues (empty = all), $3
// its types, $4 whether it takes a suspect; and, from the sieve on where it is known, z the
// session's row, l the lane, q its queue, r the row of ready or later.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/condition.h"

namespace stint::store::pg {

// Where in the claim a condition is asked; also the word for it in the statements.
enum class Sieve {
    kSession,  // of the claimer itself
    kLane,     // of a whole lane
    kAlone,    // of a lane of suspects
    kDue,      // of a row of later, which is how it comes to ready
    kTask,     // of a row of ready
    kOrder,    // only by explain: the claim does not find a row of later that is due at infinity
};
std::string_view SieveName(Sieve sieve);

struct ConditionSql {
    model::Condition condition;
    Sieve sieve;
    std::string_view text;
};
// All but two, which need no question: a task that does not wait is neither in ready nor in later,
// and a cancel takes it out of them.
std::span<const ConditionSql> Conditions();

// The statement with "$passes <sieve>$" replaced by "no condition of that sieve applies", and
// "$applying$" by the numbers of all that do.
std::string WithConditions(std::string_view text);

}  // namespace stint::store::pg
