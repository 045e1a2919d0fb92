// Turns of tenants that share a queue: whoever was given a task waits until the others have had as
// much, each by its weight. What counts is how often a tenant's tasks were started, not how many
// run: so a share is kept by one worker with one slot as by a thousand.
#pragma once

#include <stint/ids.h>

#include <map>
#include <optional>

namespace stint::model {

// How much each tenant was given of the queue, in turns divided by its weight. Only differences
// mean something. Who is not named is new, or was forgotten.
using Leads = std::map<TenantId, double>;

// Those that want the next turn: they have something waiting that the claimer could take, at the
// same priority. What others had, or what these had elsewhere, does not change the order among
// them: a tenant that a worker cannot serve, or whose tasks go first anyway, costs nobody a turn.
class Contest {
public:
    explicit Contest(const Leads& leads) : leads_(&leads) {}
    void Enter(TenantId tenant, int weight);

    // What it counts as having had: what it was given, but no less than whoever was given most had
    // before its last turn. So who had nothing to do for a while has saved nothing up.
    double Had(TenantId tenant) const;
    // Whether it is the turn of `a` rather than of `b`. Neither: they are equal.
    bool Before(TenantId a, TenantId b) const;

private:
    double Own(TenantId tenant) const;

    const Leads* leads_;
    std::optional<double> reached_;  // by those that are known
};

// A tenant has been given a turn that counts so much.
void Give(Leads& leads, TenantId tenant, double had_then);

}  // namespace stint::model
