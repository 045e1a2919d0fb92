#include "model/share.h"

#include <algorithm>

#include "model/limits.h"

namespace stint::model {

namespace {

constexpr double kAlmost = 1e-9;

double Lead(const Leads::value_type& one) {
    return one.second;
}

}  // namespace

void Contest::Enter(TenantId tenant, int weight) {
    auto lead = leads_->find(tenant);
    if (lead == leads_->end()) return;
    const double before = lead->second - 1.0 / std::max(weight, 1);
    reached_ = std::max(reached_.value_or(before), before);
}

double Contest::Own(TenantId tenant) const {
    auto lead = leads_->find(tenant);
    if (lead != leads_->end()) return lead->second;
    if (reached_) return *reached_;
    // Among strangers only: where the queue is, so that those who come next find them there.
    return leads_->empty() ? 0 : std::ranges::max_element(*leads_, {}, &Lead)->second;
}

double Contest::Had(TenantId tenant) const {
    const double own = Own(tenant);
    return std::max(own, reached_.value_or(own));
}

bool Contest::Before(TenantId a, TenantId b) const {
    const double difference = Had(a) - Had(b);
    if (difference < -kAlmost || difference > kAlmost) return difference < 0;
    // What was not counted still says who has waited longer for a turn.
    return Own(a) < Own(b) - kAlmost;
}

void Give(Leads& leads, TenantId tenant, double had_then) {
    auto [lead, is_new] = leads.try_emplace(tenant, had_then);
    if (!is_new) lead->second = std::max(lead->second, had_then);
    if (leads.size() <= limits::kLeads) return;
    leads.erase(std::ranges::min_element(leads, {}, &Lead));
}

}  // namespace stint::model
