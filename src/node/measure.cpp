#include "node/measure.h"

#include <fmt/format.h>

#include "base/process.h"
#include "base/tallies.h"
#include "node/ask.h"
#include "node/open_store.h"
#include "sqlite/file_work.h"
#include "store/postgres/measure.h"
#include "store/sqlite/pin.h"

namespace stint::node {

void CountTogether(const std::string& path) {
    base::ShareTallies(path);
    sqlite::CountFileWork();
}

std::uint64_t HandledTogether() {
    return base::ProcessTallies().handled;
}

std::int64_t StatementsTogether() {
    return static_cast<std::int64_t>(base::ProcessTallies().statements.load());
}

std::string NamedAddress(const std::string& url, const std::string& name) {
    if (ParseStoreUrl(url).value().kind != StoreUrl::Kind::kPostgres) return url;
    char mark = url.find('?') == std::string::npos ? '?' : '&';
    return fmt::format("{}{}application_name={}", url, mark, name);
}

// ---- meter -------------------------------------------------------------------------------------

struct StoreMeter::Impl {
    std::string name;
    std::optional<store::PostgresMeter> server;  // none: SQLite, whose work our processes count
    std::optional<pid_t> server_process;
};

StoreMeter::StoreMeter(const std::string& url, std::string name) : impl_(std::make_unique<Impl>()) {
    impl_->name = std::move(name);
    StoreUrl parsed = ParseStoreUrl(url).value();
    if (parsed.kind != StoreUrl::Kind::kPostgres) return;
    Ask([&] {
        impl_->server.emplace(parsed.connection);
        impl_->server_process = impl_->server->LocalServer();
        return 0;
    });
}
StoreMeter::~StoreMeter() = default;

StoreWork StoreMeter::Read() {
    auto number = [](const std::atomic<std::uint64_t>& tally) {
        return static_cast<std::int64_t>(tally.load());
    };
    const base::Tallies& tallies = base::ProcessTallies();
    StoreWork work{number(tallies.commits), number(tallies.syncs), number(tallies.log_bytes)};
    if (!impl_->server) return work;
    auto counters = Ask([&] { return impl_->server->Read(); });
    work.commits = counters.commits;
    work.syncs = counters.syncs;
    work.log_bytes = counters.wal_bytes;
    return work;
}

bool StoreMeter::late() const {
    return impl_->server.has_value();
}

int StoreMeter::Unsettled() {
    if (!impl_->server) return 0;
    return Ask([&] { return impl_->server->ConnectionsNamed(impl_->name); });
}

std::vector<std::pair<std::string, std::string>> StoreMeter::DurabilitySettings() {
    // Every SQLite file is opened like this.
    if (!impl_->server) return {{"journal_mode", "wal"}, {"synchronous", "full"}};
    return Ask([&] { return impl_->server->Settings(); });
}

std::optional<std::chrono::nanoseconds> StoreMeter::ServerCpu() {
    if (!impl_->server_process) return std::nullopt;
    pid_t server = *impl_->server_process;
    auto used = base::CpuOf(server) + base::CpuOfEndedChildren(server);
    for (pid_t backend : base::ChildrenOf(server)) used += base::CpuOf(backend);
    return used;
}

std::string StoreMeter::why_no_server_cpu() const {
    if (!impl_->server) return "SQLite has no server: its work is the clients' own";
    return "the server's processes cannot be seen from here";
}

// ---- pin ---------------------------------------------------------------------------------------

struct Pin::Impl {
    std::optional<store::PostgresPin> server;
    std::optional<store::SqlitePin> file;
};

std::string Pin::DefaultFor(const std::string& url) {
    bool server = ParseStoreUrl(url).value().kind == StoreUrl::Kind::kPostgres;
    return server ? "snapshot" : "reader";
}

Pin::Pin(const std::string& url, std::string_view how) : impl_(std::make_unique<Impl>()) {
    using Kind = store::PostgresPin::Kind;
    StoreUrl parsed = ParseStoreUrl(url).value();
    bool server = parsed.kind == StoreUrl::Kind::kPostgres;
    std::optional<Kind> kind;
    if (how == "snapshot") kind = Kind::kSnapshot;
    if (how == "xid") kind = Kind::kXid;
    if (how == "dump") kind = Kind::kDump;
    if (server ? !kind : how != "reader") {
        throw StoreError(
            Code::kInvalid,
            fmt::format(
                "--pin is \"{}\"; this store can be held by {}",
                how,
                server ? "snapshot, xid or dump" : "reader"
            )
        );
    }
    Ask([&] {
        if (server) {
            impl_->server.emplace(parsed.connection, parsed.schema, *kind);
        } else {
            impl_->file.emplace(parsed.path);
        }
        return 0;
    });
}
Pin::~Pin() = default;

}  // namespace stint::node
