// The suite on PostgreSQL: one schema per process, made once and emptied between cases. The
// schema's clock is the server's plus an offset that the fixture moves.
#include <unistd.h>

#include <iostream>

#include "conformance/fixture.h"
#include "postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "support/postgres.h"
#include "support/postgres_schema.h"

namespace stint::conformance {

namespace {

// Also through a transaction pooler, where STINT_TEST_POOLER names one.
std::string PoolerUrl() {
    const char* url = std::getenv("STINT_TEST_POOLER");
    return url != nullptr ? testing::WithParameter(url, "connect_timeout=60") : "";
}

class PostgresFixture final : public StoreFixture {
public:
    explicit PostgresFixture(std::string url) : url_(std::move(url)) { Schema().Empty(); }

    std::shared_ptr<store::Store> Open() override { return OpenOne(Schema().name()); }
    std::shared_ptr<store::Store> OpenAnother() override {
        static testing::PostgresSchema another("another");
        return OpenOne(another.name());
    }
    std::shared_ptr<store::Store> OpenOne(const std::string& schema) {
        store::PostgresOptions options;
        options.url = url_;
        options.schema = schema;
        options.migrate = false;
        options.connections = 3;
        return store::OpenPostgresStore(options);
    }
    void AdvanceTime(Duration by) override { Schema().AdvanceTime(by); }
    ViewRows ReadView(const std::string& view) override {
        postgres::Connection& connection = Schema().connection();
        auto ask = [&](const std::string& text) {
            return connection.Query(postgres::Statement{"", text}, {}, postgres::Commits::kNo);
        };
        std::string name = Schema().name() + "." + view;
        postgres::Rows head = ask("SELECT * FROM " + name + " LIMIT 0");
        ViewRows read;
        std::string list;
        for (int i = 0; i < head.columns(); ++i) {
            read.columns.emplace_back(head.column_name(i));
            list += (i > 0 ? ", " : "") + read.columns.back();
        }
        postgres::Rows rows = ask("SELECT json_build_array(" + list + ")::text FROM " + name);
        for (int i = 0; i < rows.size(); ++i)
            read.rows.push_back(nlohmann::json::parse(rows.View(i, 0)));
        return read;
    }

private:
    static testing::PostgresSchema& Schema() {
        static testing::PostgresSchema schema("conformance");
        return schema;
    }

    const std::string url_;
};

}  // namespace

std::vector<Backend> Backends() {
    std::vector<Backend> backends;
    std::string url = testing::TestPostgresUrl();
    if (url.empty()) {
        std::cerr
            << "STINT_TEST_POSTGRES is not set: no case runs. tools/private-postgres starts a "
               "server and prints its URL.\n";
        return backends;
    }
    std::string pooler = PoolerUrl();
    if (!pooler.empty()) url = pooler;
    backends.push_back(
        {pooler.empty() ? "postgres" : "pooler",
         [url] { return std::make_unique<PostgresFixture>(url); },
         true}
    );
    return backends;
}

}  // namespace stint::conformance
