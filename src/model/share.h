// Turns of tenants that share a queue: whoever was given a task waits until the others have had as
// much, each by its weight. What counts is how often a tenant's tasks were started, not how many
// run: so a share is kept by one worker with one slot as by a thousand.
#pragma once

#include <stint/ids.h>

#include <map>

namespace stint::model {

// How far tenants are ahead of the queue, in turns divided by their weights. Who is not named is
// not ahead: so is one that comes new, or had nothing to do for a while.
using Leads = std::map<TenantId, double>;

double LeadOf(const Leads& leads, TenantId tenant);
// A task of the tenant starts.
void Serve(Leads& leads, TenantId tenant, int weight);

}  // namespace stint::model
