// Removing a schema with all that is in it: for stores made to be thrown away.
#pragma once

#include <string>

namespace stint::store {

// Refuses every schema whose name does not begin with "stint_bench_" or "stint_test_": a store that
// somebody uses cannot be removed by mistake. Throws Unavailable or std::runtime_error.
void DropPostgres(const std::string& url, const std::string& schema);

}  // namespace stint::store
