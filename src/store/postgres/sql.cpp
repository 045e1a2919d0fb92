#include "store/postgres/sql.h"

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

Sql::Sql(std::string_view schema_name) : schema(postgres::QuoteName(schema_name)) {
#define X(query) query = {"stint_" #query, ForSchema(WithConditions(text::k_##query), schema_name)};
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
    };
    return migrations;
}

}  // namespace stint::store::pg
