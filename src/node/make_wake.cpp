#include "node/make_wake.h"

#include "wake/file_wake.h"
#include "wake/local.h"
#include "wake/postgres_wake.h"

namespace stint::node {

std::unique_ptr<wake::Wake> MakeWake(const StoreUrl& url, const LogSink& log) {
    switch (url.kind) {
        case StoreUrl::Kind::kMemory:
            break;
        case StoreUrl::Kind::kSqlite:
            return std::make_unique<wake::FileWake>(wake::FileWakeOptions{
                .path = url.path, .log = log});
        case StoreUrl::Kind::kPostgres:
            return std::make_unique<wake::PostgresWake>(wake::PostgresWakeOptions{
                .url = url.connection, .schema = url.schema, .log = log});
    }
    return std::make_unique<wake::LocalWake>();
}

}  // namespace stint::node
