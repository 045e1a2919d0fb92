#include "store/sqlite/lanes.h"

#include <unordered_set>

#include "base/check.h"
#include "model/placement.h"
#include "store/sqlite/queries.h"

namespace stint::store::lite {

std::string Lanes::Key(
    TenantId tenant, std::string_view queue, std::string_view type, std::string_view placement
) {
    std::string key = tenant.ToString();
    key.reserve(key.size() + queue.size() + type.size() + placement.size() + 3);
    key += '\n';
    key += queue;
    key += '\n';  // in no name
    key += type;
    key += '\n';
    key += placement;
    return key;
}

void Lanes::Load() {
    if (loaded_) return;
    for (sqlite::Rows rows = Sql(db_, "lane_list").Query(); rows.Next();) {
        Add(rows.Int(0), TenantId(rows.Int(1)), rows.Text(2), rows.Text(3), rows.Text(4));
    }
    loaded_ = true;
}

Lane& Lanes::Add(
    std::int64_t id,
    TenantId tenant,
    std::string_view queue,
    std::string_view type,
    std::string_view placement
) {
    Lane& lane = lanes_.emplace_back();
    lane.id = id;
    lane.tenant = tenant;
    lane.queue = queue;
    lane.type = type;
    lane.placement_text = placement;
    lane.placement = model::PlacementOf(placement);
    by_id_[id] = &lane;
    by_key_[Key(tenant, queue, type, placement)] = &lane;
    by_type_[lane.type].push_back(&lane);
    return lane;
}

Lane& Lanes::Of(
    TenantId tenant, std::string_view queue, std::string_view type, const Placement& placement
) {
    Load();
    std::string text = model::PlacementText(placement);
    auto found = by_key_.find(Key(tenant, queue, type, text));
    if (found != by_key_.end()) return *found->second;
    auto id = Sql(db_, "lane_add").Scalar(tenant.value(), queue, type, text);
    CHECK(id.has_value());
    for (const model::Need& need : model::Canonical(placement.needs)) {
        Sql(db_, "lane_need_add").Run(*id, need.resource, need.units);
    }
    return Add(*id, tenant, queue, type, text);
}

Lane& Lanes::At(std::int64_t id) {
    Load();
    auto found = by_id_.find(id);
    CHECK_WHY(found != by_id_.end(), "a task of no lane");
    return *found->second;
}

std::deque<Lane>& Lanes::All() {
    Load();
    return lanes_;
}

std::vector<Lane*> Lanes::OfTypes(const std::vector<std::string>& types) {
    Load();
    std::unordered_set<std::string_view> seen;
    std::vector<Lane*> found;
    for (const std::string& type : types) {
        auto lanes = by_type_.find(type);
        if (lanes == by_type_.end() || !seen.insert(type).second) continue;
        found.insert(found.end(), lanes->second.begin(), lanes->second.end());
    }
    return found;
}

void Lanes::Forget() {
    loaded_ = false;
    lanes_.clear();
    by_id_.clear();
    by_key_.clear();
    by_type_.clear();
}

}  // namespace stint::store::lite
