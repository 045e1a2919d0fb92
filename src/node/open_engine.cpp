#include "node/open_engine.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "node/client.h"
#include "node/open_store.h"

namespace stint::node {

namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds{250};
constexpr Duration kWarnEvery = std::chrono::minutes{1};

bool IsServer(const Options& options) {
    auto url = ParseStoreUrl(options.store);
    return url && url->kind == StoreUrl::Kind::kPostgres;
}

}  // namespace

std::optional<Engine> OpenEngine(
    const Options& options, const std::function<bool(Duration)>& pause
) {
    base::Logger log(options.log, "worker");
    base::Clock& clock = base::SystemClock();
    std::optional<base::Instant> warned;
    for (Duration wait = kFirstPause;; wait = std::min(2 * wait, options.error_wait)) {
        try {
            std::optional<Engine> engine(std::in_place, options);
            if (warned) log.Info("the store answers again");
            return engine;
        } catch (const store::WrongSchema& error) {
            throw StoreError(Code::kConflict, error.what());
        } catch (const StoreRefuses& error) {
            throw StoreError(Code::kUnavailable, error.what());
        } catch (const store::Unavailable& error) {
            // A file that cannot be opened is a mistake, not a machine that starts up.
            if (!IsServer(options)) throw StoreError(Code::kUnavailable, error.what());
            if (!warned || clock.Now() >= *warned + kWarnEvery) {
                warned = clock.Now();
                log.Warn(
                    "the store cannot be reached; waiting for it",
                    {{"store", WithoutSecrets(options.store)}, {"error", error.what()}}
                );
            }
        }
        double share = 0.8 + 0.4 * base::SystemRandom().Fraction();
        Duration jittered{static_cast<std::int64_t>(static_cast<double>(wait.count()) * share)};
        if (!pause(jittered)) return std::nullopt;
    }
}

}  // namespace stint::node
