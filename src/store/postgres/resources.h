// Resources, their slots, rates and breakers.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/postgres/db.h"
#include "store/resource_book.h"

namespace stint::store::pg {

class PostgresStore;

// Resources as they were read; what is changed in the book is written by Save().
struct PgBook {
    ResourceBook book;
    std::map<std::string, int> ids;
    std::optional<Time> read_at;  // by the server's clock; none when nothing was there
};
// Those of the names, and all patterns; no names = all.
PgBook ReadBook(
    Transaction& transaction,
    const Sql& sql,
    const std::vector<std::string>& names,
    bool holders = false
);
PgBook BookOf(const Rows& rows);
// Makes those that only have a pattern so far. `all`: the others too, without a limit.
void MakeMissing(
    Transaction& transaction,
    const Sql& sql,
    const PgBook& known,
    const std::vector<std::string>& names,
    bool all
);
// Those of the names that are there.
std::set<std::string> Lock(
    Transaction& transaction, const Sql& sql, const std::vector<std::string>& names
);
void Save(Transaction& transaction, const Sql& sql, PgBook& known);
void EditPgBook(
    Transaction& transaction,
    const Sql& sql,
    const std::vector<std::string>& names,
    bool all,
    const std::function<void(PgBook&)>& edit
);
// Under the locks of the names.
void EditBook(
    Transaction& transaction,
    const Sql& sql,
    const std::vector<std::string>& names,
    bool all,
    const std::function<void(ResourceBook&)>& edit
);
std::vector<QueueOrder> ReadOrders(const Rows& rows);

// A task that runs.
struct RunningTask {
    TaskId id;
    Needs needs;  // those of its queue and type included, whether they are known or not
    std::set<std::string> holds;
};

class PostgresResources final : public ResourceStore {
public:
    explicit PostgresResources(PostgresStore& store) : store_(store) {}

    Result<ResourceSettings> Change(const ResourceChange& change, std::string_view actor) override;
    bool Remove(std::string_view name, std::string_view actor) override;
    std::vector<ResourceRecord> List() override;
    std::optional<ResourceRecord> Find(std::string_view name) override;
    bool Reopen(std::string_view name, std::string_view actor) override;
    bool Close(
        std::string_view name, Duration length, std::string_view reason, std::string_view actor
    ) override;
    Result<void> SetOrder(const QueueOrder& order, std::string_view actor) override;
    bool RemoveOrder(std::string_view queue, std::string_view actor) override;
    std::vector<QueueOrder> Orders() override;

private:
    PostgresStore& store_;
};

}  // namespace stint::store::pg
