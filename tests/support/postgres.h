// Tests that need a PostgreSQL server find it through STINT_TEST_POSTGRES (a URL of a superuser);
// without it they are skipped, saying so.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace stint::testing {

inline std::string WithParameter(std::string url, const std::string& parameter) {
    url += url.find('?') == std::string::npos ? '?' : '&';
    return url + parameter;
}

// Patient: on a busy machine a connection may take its time, and that is not what is tested.
inline std::string TestPostgresUrl() {
    const char* url = std::getenv("STINT_TEST_POSTGRES");
    return url != nullptr && *url != '\0' ? WithParameter(url, "connect_timeout=60") : "";
}

}  // namespace stint::testing

#define SKIP_WITHOUT_POSTGRES()                                                               \
    if (::stint::testing::TestPostgresUrl().empty())                                          \
    GTEST_SKIP() << "STINT_TEST_POSTGRES is not set: tools/private-postgres starts a server " \
                    "and prints its URL"
