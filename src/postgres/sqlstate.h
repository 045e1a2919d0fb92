// What an SQLSTATE means to a caller: what to do next, not what went wrong in detail.
#pragma once

#include <cstdint>
#include <string_view>

namespace stint::postgres {

enum class Fault : std::uint8_t {
    kRetry,        // the transaction lost a race; run it again from its start
    kConnection,   // this connection is of no use any more; another may be
    kBackOff,      // the server, its disk or its memory is full; try again later
    kSkip,         // somebody else holds the lock; leave it to them
    kTimeout,      // the statement took too long and was cancelled
    kUnique,       // a unique key is taken
    kNoPartition,  // the period table for this row does not exist yet
    kData,         // a value that the database cannot or may not hold
    kStalePlan,    // a prepared statement is gone or outdated; forget it and run again
    kOther,        // our bug, a missing right, …
};

Fault Classify(std::string_view sqlstate);
std::string_view FaultName(Fault fault);

}  // namespace stint::postgres
