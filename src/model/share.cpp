#include "model/share.h"

#include <algorithm>

#include "model/limits.h"

namespace stint::model {

namespace {
constexpr double kAlmost = 1e-9;
}

double LeadOf(const Leads& leads, TenantId tenant) {
    auto lead = leads.find(tenant);
    return lead == leads.end() ? 0 : lead->second;
}

void Serve(Leads& leads, TenantId tenant, int weight) {
    // The queue has come as far as the one whose turn it is. Who was behind it had nothing that
    // could start: for that there is no credit.
    const double turn = LeadOf(leads, tenant);
    for (auto& [other, lead] : leads) lead -= turn;
    std::erase_if(leads, [](const auto& one) { return one.second <= kAlmost; });
    leads[tenant] = 1.0 / std::max(weight, 1);
    if (leads.size() <= limits::kLeads) return;
    auto least = std::ranges::min_element(leads, {}, [](const auto& one) { return one.second; });
    leads.erase(least);
}

}  // namespace stint::model
