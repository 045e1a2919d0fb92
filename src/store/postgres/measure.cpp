#include "store/postgres/measure.h"

#include <fmt/format.h>

#include "base/process.h"
#include "stint_store_pg_bench_embedded.h"
#include "store/postgres/bench_connection.h"

namespace stint::store {

using pg::AskBench;
using pg::WhileMeasuring;
using postgres::Params;
using postgres::Rows;

PostgresMeter::PostgresMeter(std::string url)
    : url_(std::move(url)), connection_(pg::OpenForBench(url_)) {
}

PostgresCounters PostgresMeter::Read() {
    constexpr int kSyncsMoved = 180'000;  // to another view
    return WhileMeasuring([&] {
        Rows rows = AskBench(*connection_, pg::bench::k_counters);
        bool moved = connection_->server_version() >= kSyncsMoved;
        Rows syncs = AskBench(*connection_, moved ? pg::bench::k_syncs_18 : pg::bench::k_syncs);
        PostgresCounters counters{rows.Int(0, 0), rows.Int(0, 1), std::nullopt};
        if (!syncs.empty() && !syncs.IsNull(0, 0)) counters.syncs = syncs.Int(0, 0);
        return counters;
    });
}

int PostgresMeter::ConnectionsNamed(const std::string& application) {
    return WhileMeasuring([&] {
        Rows rows = AskBench(*connection_, pg::bench::k_others, Params().Text(application));
        return static_cast<int>(rows.Int(0, 0));
    });
}

std::vector<std::pair<std::string, std::string>> PostgresMeter::Settings() {
    return WhileMeasuring([&] {
        std::vector<std::pair<std::string, std::string>> settings;
        Rows rows = AskBench(*connection_, pg::bench::k_settings);
        for (int i = 0; i < rows.size(); ++i)
            settings.emplace_back(rows.Text(i, 0), rows.Text(i, 1));
        return settings;
    });
}

std::optional<pid_t> PostgresMeter::LocalServer() {
    return WhileMeasuring([&]() -> std::optional<pid_t> {
        Rows rows = AskBench(*connection_, pg::bench::k_server);
        auto backend = static_cast<pid_t>(rows.Int(0, 0));
        // In a container its number is another's here: what has that number must look like it.
        if (!rows.Bool(0, 1) || base::ProgramOf(backend) != "postgres") return std::nullopt;
        pid_t server = base::ParentOf(backend);
        if (server <= 1 || base::ProgramOf(server) != "postgres") return std::nullopt;
        return server;
    });
}

PostgresPin::PostgresPin(const std::string& url, const std::string& schema, Kind kind)
    : connection_(pg::OpenForBench(url)) {
    WhileMeasuring([&] {
        connection_->Script(kind == Kind::kXid ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ");
        connection_->Script("SET LOCAL idle_in_transaction_session_timeout = 0");
        connection_->Script(
            kind == Kind::kXid ? "SELECT pg_current_xact_id()" : "SELECT pg_current_snapshot()"
        );
        if (kind != Kind::kDump) return;
        Rows tables = AskBench(*connection_, pg::bench::k_tables, Params().Text(schema));
        for (int i = 0; i < tables.size(); ++i) {
            connection_->Script(
                fmt::format("LOCK TABLE ONLY {} IN ACCESS SHARE MODE", tables.View(i, 0))
            );
        }
    });
}

}  // namespace stint::store
