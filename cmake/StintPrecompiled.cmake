# Precompiled headers: what nearly every file of a kind includes, read once per kind of target. Most of
# the time of a build from scratch is reading headers. The linter works without them, and so sees to it
# that each file still includes what it uses.
#
# stint_precompiled(TARGET KIND): TARGET has exactly the compile options of its kind.
#   low           base, model and the two databases' drivers: only what is from outside the project
#   store         the stores
#   program       what is above the stores
#   low_tests     tests of the low rooms
#   store_tests   cases that every store must pass
#   program_tests tests of everything else
set(STINT_OUTSIDE_HEADERS
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <filesystem> <fstream>
    <functional> <iostream> <map> <memory> <mutex> <optional> <set> <span> <sstream> <stop_token>
    <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>
    <fmt/chrono.h> <fmt/format.h> <nlohmann/json.hpp>
)
set(STINT_STORE_HEADERS
    "${PROJECT_SOURCE_DIR}/src/base/result.h" "${PROJECT_SOURCE_DIR}/src/base/text.h"
    "${PROJECT_SOURCE_DIR}/src/model/limits.h" "${PROJECT_SOURCE_DIR}/src/model/placement.h"
    "${PROJECT_SOURCE_DIR}/src/store/events.h" "${PROJECT_SOURCE_DIR}/src/store/flows.h"
    "${PROJECT_SOURCE_DIR}/src/store/resources.h" "${PROJECT_SOURCE_DIR}/src/store/results.h"
    "${PROJECT_SOURCE_DIR}/src/store/schedules.h" "${PROJECT_SOURCE_DIR}/src/store/store.h"
)
set(STINT_PROGRAM_HEADERS
    "${PROJECT_SOURCE_DIR}/include/stint/engine.h" "${PROJECT_SOURCE_DIR}/src/model/time_text.h"
)

# Programs and libraries share them, so both must be position independent in the same way.
if(STINT_PRECOMPILED)
    set(CMAKE_CXX_COMPILE_OPTIONS_PIE ${CMAKE_CXX_COMPILE_OPTIONS_PIC})
endif()

function(stint_precompiled target kind)
    if(NOT STINT_PRECOMPILED OR (kind MATCHES "tests" AND NOT STINT_TESTS))
        return()
    endif()
    if(NOT TARGET precompiled_${kind})
        file(WRITE ${PROJECT_BINARY_DIR}/precompiled_${kind}.cpp "")
        add_library(precompiled_${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cpp)
        target_link_libraries(precompiled_${kind} PRIVATE stint_flags fmt::fmt nlohmann_json::nlohmann_json)
        target_include_directories(precompiled_${kind} PRIVATE
            ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
        set(headers ${STINT_OUTSIDE_HEADERS})
        if(kind MATCHES "tests")
            target_compile_options(precompiled_${kind} PRIVATE ${STINT_TEST_OPTIONS})
            target_link_libraries(precompiled_${kind} PRIVATE GTest::gmock)
            list(APPEND headers <gmock/gmock.h> <gtest/gtest.h>)
        endif()
        if(NOT kind MATCHES "low")
            list(APPEND headers ${STINT_STORE_HEADERS})
        endif()
        if(kind MATCHES "program")
            list(APPEND headers ${STINT_PROGRAM_HEADERS})
        endif()
        target_precompile_headers(precompiled_${kind} PRIVATE ${headers})
    endif()
    target_link_libraries(${target} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
endfunction()

# stint_kind_of_room(NAME OUT): the kind of precompiled header that fits the room.
function(stint_kind_of_room name out)
    if(name MATCHES "^(base|model|sqlite|postgres|wake)$")
        set(${out} low PARENT_SCOPE)
    elseif(name MATCHES "^store")
        set(${out} store PARENT_SCOPE)
    else()
        set(${out} program PARENT_SCOPE)
    endif()
endfunction()
