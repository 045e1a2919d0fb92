// What the doors may ask about items and deletions. Throws StoreError, see client.h.
#pragma once

#include <vector>

#include "base/json.h"
#include "services/deletions.h"
#include "store/results.h"

namespace stint::node {

// The words of the store that the doors share.
using services::DeletionWish;
using store::DeletionsRequest;
using store::ItemsRequest;

class ResultClient {
public:
    ResultClient(store::Store& store, wake::Wake& wake);

    std::vector<model::ItemRecord> Items(const ItemsRequest& request);
    model::ResultSummary Summary(TaskId task);

    Result<model::Deletion> Mark(const DeletionWish& wish);
    Result<model::Deletion> Unmark(TenantId tenant, std::string_view kind, std::string_view key);
    Result<std::vector<model::Deletion>> Deletions(const DeletionsRequest& request);
    Result<void> SetPace(const model::Pace& pace);

private:
    store::Store& store_;
    services::DeletionDesk desk_;
};

base::OrderedJson ToJson(const model::ItemRecord& record);
base::OrderedJson ToJson(const model::Deletion& deletion);

}  // namespace stint::node
