#include "postgres/sqlstate.h"

#include <array>
#include <utility>

namespace stint::postgres {

namespace {

constexpr std::array kExact = {
    std::pair{std::string_view{"40001"}, Fault::kRetry},        // serialization_failure
    std::pair{std::string_view{"40P01"}, Fault::kRetry},        // deadlock_detected
    std::pair{std::string_view{"25006"}, Fault::kConnection},   // read only: a standby now
    std::pair{std::string_view{"25P03"}, Fault::kConnection},   // idle_in_transaction timeout
    std::pair{std::string_view{"55P03"}, Fault::kSkip},         // lock_not_available
    std::pair{std::string_view{"57014"}, Fault::kTimeout},      // query_canceled
    std::pair{std::string_view{"23505"}, Fault::kUnique},       // unique_violation
    std::pair{std::string_view{"23514"}, Fault::kNoPartition},  // check_violation, no partition
    std::pair{std::string_view{"26000"}, Fault::kStalePlan},    // invalid_sql_statement_name
    std::pair{std::string_view{"0A000"}, Fault::kStalePlan},    // cached plan must not change …
};

// By their beginning, where the exact code is not listed.
constexpr std::array kClasses = {
    std::pair{std::string_view{"08"}, Fault::kConnection},    // connection exceptions
    std::pair{std::string_view{"57P0"}, Fault::kConnection},  // shutdowns, start-up, idle timeouts
    std::pair{std::string_view{"53"}, Fault::kBackOff},       // disk, memory, connections, limits
    std::pair{std::string_view{"58"}, Fault::kBackOff},       // the server's own system fails it
    std::pair{std::string_view{"22"}, Fault::kData},          // data exceptions
    std::pair{std::string_view{"23"}, Fault::kData},          // constraint violations
};

constexpr std::array kNames = {
    std::string_view{"retry"},
    std::string_view{"connection"},
    std::string_view{"back_off"},
    std::string_view{"skip"},
    std::string_view{"timeout"},
    std::string_view{"unique"},
    std::string_view{"no_partition"},
    std::string_view{"data"},
    std::string_view{"stale_plan"},
    std::string_view{"other"},
};

}  // namespace

Fault Classify(std::string_view sqlstate) {
    for (const auto& [code, fault] : kExact) {
        if (code == sqlstate) return fault;
    }
    for (const auto& [beginning, fault] : kClasses) {
        if (sqlstate.starts_with(beginning)) return fault;
    }
    return Fault::kOther;
}

std::string_view FaultName(Fault fault) {
    return kNames.at(static_cast<std::size_t>(fault));
}

}  // namespace stint::postgres
