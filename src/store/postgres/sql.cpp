#include "store/postgres/sql.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "postgres/listener.h"
#include "stint_store_pg_text_embedded.h"
#include "store/postgres/conditions.h"

namespace stint::store::pg {

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
        text.replace(at, from.size(), to);
        at += to.size();
    }
}

std::string ForSchema(std::string_view text, std::string_view schema) {
    std::string result(text);
    ReplaceAll(result, "$schema$.", postgres::QuoteName(schema) + ".");
    ReplaceAll(result, "$schema_name$", schema);
    return result;
}

namespace {

struct Keyed {
    std::string_view table, key;
};
constexpr Keyed kKeyed[] = {
    {"live", "id"},
    {"past", "task"},
    {"session", "id"},
    {"cancel_note", "task"},
    {"outside", "task"},
    {"later", "task"},
    {"ordered", "task"},
};

// "JOIN $row live v g.task$": the row of `live` with that key, called v. Looked up one by one,
// always. Written as a plain join, a table that is nearly empty but full of dead rows, which an old
// snapshot keeps from being cleaned away, looks to the planner as if reading all of it were as
// good.
std::string WithRows(std::string_view text) {
    constexpr std::string_view kWord = "$row ";
    std::string result(text);
    for (std::size_t at = result.find(kWord); at != std::string::npos;
         at = result.find(kWord, at)) {
        std::size_t end = result.find('$', at + kWord.size());
        std::istringstream words(result.substr(at + kWord.size(), end - at - kWord.size()));
        std::string table, alias, key;
        words >> table >> alias >> key;
        const auto* keyed = std::ranges::find(kKeyed, table, &Keyed::table);
        CHECK_WHY(keyed != std::end(kKeyed) && !key.empty(), table);
        std::string row = fmt::format(
            "LATERAL (SELECT f.* FROM $schema$.{} f WHERE f.{} = {} OFFSET 0) {} ON true",
            table,
            keyed->key,
            key,
            alias
        );
        result.replace(at, end + 1 - at, row);
    }
    return result;
}

// "$leased$": what the statements that claim have in common.
std::string WithFragments(std::string_view text) {
    std::string result(text);
    ReplaceAll(result, "$leased$", text::k_leased);
    return result;
}

std::string Composed(std::string_view text) {
    return WithRows(WithConditions(WithFragments(text)));
}

}  // namespace

Sql::Sql(std::string_view schema_name) : schema(postgres::QuoteName(schema_name)) {
#define X(query) query = {"stint_" #query, ForSchema(Composed(text::k_##query), schema_name)};
    STINT_PG_QUERIES(X)
#undef X
}

const std::vector<Migration>& Migrations() {
    static const std::vector<Migration> migrations = {
        {1, "first", text::k_001_first},
        {2, "views", text::k_002_views},
        {3, "submit", text::k_003_submit},
        {4, "identity", text::k_004_identity},
        {5, "tally", text::k_005_tally},
        {6, "queue_changed", text::k_006_queue_changed},
        {7, "waits", text::k_007_waits},
        {8, "schedules", text::k_008_schedules},
        {9, "events", text::k_009_events},
        {10, "resources", text::k_010_resources},
        {11, "flows", text::k_011_flows},
        {12, "results", text::k_012_results},
        {13, "session_labels", text::k_013_session_labels},
        {14, "submit_fields", text::k_014_submit_fields},
        {15, "kept_records", text::k_015_kept_records},
        {16, "resource_ids", text::k_016_resource_ids},
        {17, "shares", text::k_017_shares},
        {18, "day", text::k_018_day},
        {19, "any", text::k_019_any},
        {20, "slots", text::k_020_slots},
    };
    return migrations;
}

}  // namespace stint::store::pg
