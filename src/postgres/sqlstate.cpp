#include "postgres/sqlstate.h"

#include <array>
#include <utility>

namespace stint::postgres {

namespace {

constexpr std::array kExact = {
    std::pair{std::string_view{"40001"}, Fault::kRetry},        // serialization_failure
    std::pair{std::string_view{"40P01"}, Fault::kRetry},        // deadlock_detected
    std::pair{std::string_view{"25006"}, Fault::kConnection},   // read only: a standby now
    std::pair{std::string_view{"57P01"}, Fault::kConnection},   // admin_shutdown
    std::pair{std::string_view{"57P02"}, Fault::kConnection},   // crash_shutdown
    std::pair{std::string_view{"57P03"}, Fault::kConnection},   // cannot_connect_now
    std::pair{std::string_view{"57P05"}, Fault::kConnection},   // idle_session_timeout
    std::pair{std::string_view{"25P03"}, Fault::kConnection},   // idle_in_transaction timeout
    std::pair{std::string_view{"53300"}, Fault::kBackOff},      // too_many_connections
    std::pair{std::string_view{"53400"}, Fault::kBackOff},      // configuration_limit_exceeded
    std::pair{std::string_view{"55P03"}, Fault::kSkip},         // lock_not_available
    std::pair{std::string_view{"57014"}, Fault::kTimeout},      // query_canceled
    std::pair{std::string_view{"23505"}, Fault::kUnique},       // unique_violation
    std::pair{std::string_view{"23514"}, Fault::kNoPartition},  // check_violation, no partition
    std::pair{std::string_view{"26000"}, Fault::kStalePlan},    // invalid_sql_statement_name
    std::pair{std::string_view{"0A000"}, Fault::kStalePlan},    // cached plan must not change …
};

constexpr std::array kNames = {
    std::string_view{"retry"},
    std::string_view{"connection"},
    std::string_view{"back_off"},
    std::string_view{"skip"},
    std::string_view{"timeout"},
    std::string_view{"unique"},
    std::string_view{"no_partition"},
    std::string_view{"stale_plan"},
    std::string_view{"other"},
};

}  // namespace

Fault Classify(std::string_view sqlstate) {
    for (const auto& [code, fault] : kExact) {
        if (code == sqlstate) return fault;
    }
    if (sqlstate.starts_with("08")) return Fault::kConnection;
    return Fault::kOther;
}

std::string_view FaultName(Fault fault) {
    return kNames.at(static_cast<std::size_t>(fault));
}

}  // namespace stint::postgres
