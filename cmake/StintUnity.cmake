# Unity builds: several sources of a target are compiled as one, which reads their headers and makes
# their templates once. A build from nothing takes little more than half of the time; one file that
# changed takes its neighbours with it. STINT_UNITY=OFF compiles each by itself.
#
# What has a name in common with a neighbour, in an unnamed namespace, is compiled alone. The linter works
# without all of this, and so sees to it that each file includes what it uses.
set(STINT_ALONE
    src/cli/bench_fanout.cpp src/cli/deletion.cpp src/cli/demo_crash.cpp src/cli/demo_fanout.cpp
    src/cli/demo_workflow.cpp src/cli/resource.cpp src/cli/schedule.cpp src/cli/worker.cpp
    src/engine/settle_test.cpp src/engine/submit.cpp
    src/model/calendar/walker_test.cpp
    src/model/condition.cpp src/model/event/join.cpp src/model/filter_text_test.cpp src/model/recurrence_test.cpp
    src/model/schedule.cpp src/model/task_validate.cpp
    src/node/client_test.cpp src/node/config_test.cpp src/node/engine.cpp src/node/engine_flows.cpp
    src/node/engine_results.cpp src/node/node_test.cpp src/node/queues.cpp src/node/resources.cpp
    src/node/scratch_store.cpp src/node/signals_test.cpp src/node/why_claims_test.cpp
    src/services/probes_test.cpp
    src/store/flow_work.cpp
    src/store/memory/flows.cpp src/store/memory/submit.cpp
    src/store/postgres/db.cpp src/store/postgres/fire.cpp src/store/postgres/flows.cpp
    src/store/postgres/operate.cpp src/store/postgres/read.cpp src/store/postgres/results.cpp
    src/store/postgres/schedules.cpp src/store/postgres/submit.cpp src/store/postgres/submit_keys.cpp
    src/store/postgres/types.cpp
    src/store/sqlite/flows.cpp src/store/sqlite/serve_resources.cpp src/store/sqlite/server_schedules.cpp
    tests/conformance/event_cases.cpp tests/conformance/keys_cases.cpp tests/conformance/submit_cases.cpp
    tests/sim/flows.cpp
)

if(STINT_UNITY)
    set(CMAKE_UNITY_BUILD ON)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
endif()

# After all targets are made: the property belongs to the directory of the target.
function(stint_compile_alone)
    foreach(file IN LISTS STINT_ALONE)
        set(directory ${PROJECT_SOURCE_DIR}/${file})
        if(NOT EXISTS ${directory})
            message(FATAL_ERROR "cmake/StintUnity.cmake names ${file}, which is not there")
        endif()
        while(NOT EXISTS ${directory}/CMakeLists.txt)
            get_filename_component(directory ${directory} DIRECTORY)
        endwhile()
        set_source_files_properties(
            ${PROJECT_SOURCE_DIR}/${file} DIRECTORY ${directory} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
        )
    endforeach()
endfunction()
