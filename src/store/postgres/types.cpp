// The registry of task types, and tasks that were accepted before theirs was known.
#include <algorithm>
#include <set>

#include "model/placement.h"
#include "store/postgres/store_impl.h"
#include "store/postgres/submit.h"

namespace stint::store::pg {

namespace {

constexpr int kAtOnce = 1000;

Params PublishParams(std::span<const TypeDefaults> types) {
    // The last one of a name counts.
    std::map<std::string, const TypeDefaults*> by_name;
    for (const TypeDefaults& type : types) by_name[type.type] = &type;
    ArrayOf name(oid::kText), queue(oid::kText), priority(oid::kInt2), retry(oid::kText),
        timeout(oid::kInt8), isolated(oid::kBool), placement(oid::kText);
    for (const auto& [key, type] : by_name) {
        name.Text(type->type);
        queue.Text(type->queue);
        priority.Int(type->priority);
        retry.Text(RetryToJson(type->retry));
        timeout.Int(type->timeout.count());
        isolated.Bool(type->isolated);
        placement.Text(PlacementText({.needs = type->needs, .labels = type->labels}));
    }
    Params params;
    for (ArrayOf* column : {&name, &queue, &priority, &retry, &timeout, &isolated, &placement})
        column->AddTo(params);
    return params;
}

}  // namespace

Params EditParams(std::span<const LiveEdit> edits) {
    ArrayOf id(oid::kInt8), policy(oid::kInt4), flags(oid::kInt2), mask(oid::kInt2),
        timeout(oid::kInt8), set_start_by(oid::kBool), start_by(oid::kTimestamptz),
        set_tags(oid::kBool), tags(oid::kText), input(oid::kText);
    for (const LiveEdit& edit : edits) {
        id.Int(edit.id.value());
        edit.policy ? policy.Int(*edit.policy) : policy.Null();
        flags.Int(edit.flags & ~(kHasPast | kCancelAsked | kAlone));
        mask.Int(edit.explicit_mask);
        timeout.Int(edit.timeout.count());
        set_start_by.Bool(edit.set_start_by);
        edit.start_by ? start_by.At(*edit.start_by) : start_by.Null();
        set_tags.Bool(edit.set_tags);
        tags.Text(TagsJson(edit.tags));
        edit.input ? input.Text(*edit.input) : input.Null();
    }
    Params params;
    for (ArrayOf* column :
         {&id,
          &policy,
          &flags,
          &mask,
          &timeout,
          &set_start_by,
          &start_by,
          &set_tags,
          &tags,
          &input}) {
        column->AddTo(params);
    }
    return params;
}

void PostgresStore::PublishTypes(std::span<const TypeDefaults> types) {
    if (types.empty()) return;
    std::map<std::string, TypeDefaults> by_name;
    for (const TypeDefaults& type : types) by_name[type.type] = type;
    std::vector<std::string> names;
    for (const auto& [name, type] : by_name) names.push_back(name);
    Params lock;
    AddTexts(lock, names);
    std::set<std::string> queues;
    for (const auto& [name, type] : by_name) queues.insert(type.queue);
    db_.Run([&](Transaction& transaction) {
        // Submits that found the type unknown are either over, and seen below, or wait for us.
        transaction.Defer(db_.sql.types_lock, lock);
        for (const std::string& queue : queues)
            transaction.Defer(db_.sql.queue_make, Params().Text(queue));
        transaction.Query(db_.sql.types_publish, PublishParams(types));
    });
    catalog_.ReloadTypes();
    ApplyDefaults(by_name, false);
}

// Tasks that were accepted before their type was known, and that its registration did not see:
// their transaction was still open. What had run by then goes on as it began.
void PostgresStore::ResolveStragglers() {
    std::map<std::string, TypeDefaults> by_name;
    for (const TypeRecord& type : Types()) by_name[type.defaults.type] = type.defaults;
    ApplyDefaults(by_name, true);
}

// In pieces: a backlog of a million must not keep its rows locked, nor be lost by a timeout.
void PostgresStore::ApplyDefaults(
    const std::map<std::string, TypeDefaults>& types, bool untouched
) {
    std::vector<std::string> names;
    for (const auto& [name, type] : types) names.push_back(name);
    for (std::int64_t after = 0;;) {
        Params params;
        AddTexts(params, names);
        params.Int4(kAtOnce).Int(after).Bool(untouched);
        std::vector<std::int64_t> ids;
        db_.Run([&](Transaction& transaction) {
            Rows unknown = transaction.Query(db_.sql.unknown_of_types, params);
            ids.clear();
            for (int i = 0; i < unknown.size(); ++i) ids.push_back(unknown.Int(i, 0));
            if (!ids.empty()) ApplyDefaultsTo(transaction, ids, types);
        });
        if (ids.empty()) return;
        after = ids.back();
    }
}

// What was not given explicitly comes from the type now. Tasks that run are left alone.
void PostgresStore::ApplyDefaultsTo(
    Transaction& transaction,
    const std::vector<std::int64_t>& ids,
    const std::map<std::string, TypeDefaults>& types
) {
    std::vector<LiveEdit> edits;
    Changes changes(catalog_);
    for (Facts facts : TakeWaiting(transaction, ids, {State::kOpen, State::kError})) {
        Lane lane = catalog_.LaneOf(facts.lane);
        const TypeDefaults& defaults = types.at(lane.type);
        auto given = [&](ExplicitBits bit) { return (facts.explicit_mask & bit) != 0; };
        if (!given(kExplicitQueue)) lane.queue = defaults.queue;
        if (!given(kExplicitPriority)) lane.priority = defaults.priority;
        Placement placement = PlacementOf(lane.placement);
        if (placement.needs.empty()) placement.needs = defaults.needs;
        if (placement.labels.empty()) placement.labels = defaults.labels;
        lane.placement = PlacementText(placement);
        LiveEdit& edit = edits.emplace_back();
        edit.id = facts.id;
        edit.explicit_mask = facts.explicit_mask;
        edit.timeout = facts.timeout.value_or(Duration::zero());
        if (!given(kExplicitTimeout)) edit.timeout = defaults.timeout;
        if (!given(kExplicitRetry)) edit.policy = catalog_.PolicyId(defaults.retry);
        facts.flags &= ~(kTypeUnknown | kHasTimeout);
        if (edit.timeout > Duration::zero()) facts.flags |= kHasTimeout;
        edit.flags = facts.flags;
        facts.lane = catalog_.LaneId(lane);
        changes.AddWaiting({facts, facts.due_at});
    }
    if (!edits.empty()) transaction.Defer(db_.sql.edit_live, EditParams(edits));
    Apply(transaction, changes);
}

std::vector<TypeRecord> PostgresStore::Types() {
    Rows rows = db_.Read(db_.sql.types);
    std::vector<TypeRecord> types;
    for (int i = 0; i < rows.size(); ++i) types.push_back(ReadType(rows, i));
    return types;
}

}  // namespace stint::store::pg
