// The heads of the claim as the writer remembers them: which lanes exist, and which may have
// something ready. Only the writer changes the file, so that memory and file cannot part; after a
// rollback everything is forgotten and read again.
#pragma once

#include <stint/ids.h>
#include <stint/time.h>

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/resource.h"
#include "sqlite/connection.h"

namespace stint::store::lite {

using model::Placement;

struct Lane {
    std::int64_t id = 0;
    TenantId tenant;
    std::string queue;
    std::string type;
    std::string placement_text;
    Placement placement;  // without an order key

    // Hints; true and nullopt when not known.
    bool may_be_ready = true;
    bool may_have_suspects = true;
    struct Later {
        bool known = false;
        std::optional<Time> first;  // when known: the earliest due time, if any

        void Note(Time at) {
            if (known && (!first || at < *first)) first = at;
        }
    };
    Later later;
    Later later_suspect;
};

class Lanes {
public:
    explicit Lanes(sqlite::Connection& db) : db_(db) {}

    // Made if it is new.
    Lane& Of(
        TenantId tenant, std::string_view queue, std::string_view type, const Placement& placement
    );
    Lane& At(std::int64_t id);
    std::deque<Lane>& All();
    std::vector<Lane*> OfTypes(const std::vector<std::string>& types);
    void Forget();

private:
    void Load();
    Lane& Add(
        std::int64_t id,
        TenantId tenant,
        std::string_view queue,
        std::string_view type,
        std::string_view placement
    );
    static std::string Key(
        TenantId tenant, std::string_view queue, std::string_view type, std::string_view placement
    );

    sqlite::Connection& db_;
    bool loaded_ = false;
    std::deque<Lane> lanes_;
    std::unordered_map<std::int64_t, Lane*> by_id_;
    std::unordered_map<std::string, Lane*> by_key_;
    std::unordered_map<std::string, std::vector<Lane*>> by_type_;
};

}  // namespace stint::store::lite
