# Precompiled headers: what nearly every file includes from outside the project, read once per kind of
# target. They halve a build from scratch. The linter works without them, and so sees to it that
# each file still includes what it uses.
#
# stint_precompiled(TARGET rooms|tests): TARGET has exactly the compile options of its kind.
set(STINT_OUTSIDE_HEADERS
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <filesystem> <fstream>
    <functional> <iostream> <map> <memory> <mutex> <optional> <set> <span> <sstream> <stop_token>
    <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
    <fmt/chrono.h> <fmt/format.h> <nlohmann/json.hpp>
)

# Programs and libraries share them, so both must be position independent in the same way.
if(STINT_PRECOMPILED)
    set(CMAKE_CXX_COMPILE_OPTIONS_PIE ${CMAKE_CXX_COMPILE_OPTIONS_PIC})
endif()

function(stint_precompiled target kind)
    if(NOT STINT_PRECOMPILED OR (kind STREQUAL "tests" AND NOT STINT_TESTS))
        return()
    endif()
    if(NOT TARGET precompiled_${kind})
        file(WRITE ${PROJECT_BINARY_DIR}/precompiled_${kind}.cpp "")
        add_library(precompiled_${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cpp)
        target_link_libraries(precompiled_${kind} PRIVATE stint_flags fmt::fmt nlohmann_json::nlohmann_json)
        set(headers ${STINT_OUTSIDE_HEADERS})
        if(kind STREQUAL "tests")
            target_compile_options(precompiled_tests PRIVATE ${STINT_TEST_OPTIONS})
            target_link_libraries(precompiled_tests PRIVATE GTest::gmock)
            list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
        endif()
        target_precompile_headers(precompiled_${kind} PRIVATE ${headers})
    endif()
    target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
endfunction()
