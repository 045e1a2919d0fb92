# Tests of the house itself: its rules, its documents, its installed tree. Exit code 77 means skipped.
function(stint_house_test name)
    cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
    add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES
        LABELS "${ARG_LABELS}"
        TIMEOUT ${ARG_TIMEOUT}
        SKIP_RETURN_CODE 77
        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1"
    )
endfunction()

stint_house_test(tidy LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} tools/tidy.py)
stint_house_test(tidy_self LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} tools/tidy_test.py)
stint_house_test(count_tests_self LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} tools/count_tests_test.py)
stint_house_test(requirements LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} tests/docs/requirements_test.py
        --build ${PROJECT_BINARY_DIR})
stint_house_test(compare_self LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} bench/compare/test)
stint_house_test(docs_self LABELS unit TIMEOUT 60
    COMMAND ${Python3_EXECUTABLE} tests/docs/docs_self_test.py)
stint_house_test(scripts LABELS slow TIMEOUT 900
    COMMAND ${Python3_EXECUTABLE} tests/house/scripts_test.py)
set_tests_properties(scripts PROPERTIES RUN_SERIAL TRUE)
stint_house_test(readme LABELS slow TIMEOUT 600
    # What is shipped where it has been built, else this build's own.
    COMMAND ${Python3_EXECUTABLE} tests/readme/readme_test.py
        --bin ${PROJECT_SOURCE_DIR}/build/release --bin ${PROJECT_BINARY_DIR})
set(stint_sanitizer_flags "")
if(STINT_SANITIZE)
    set(stint_sanitizer_flags -fsanitize=${STINT_SANITIZE})
endif()
stint_house_test(install_tree LABELS slow TIMEOUT 900
    COMMAND ${Python3_EXECUTABLE} tests/install/install_test.py
        --cmake ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --compiler ${CMAKE_CXX_COMPILER}
        "--flags=${stint_sanitizer_flags}")
stint_house_test(task_budget LABELS slow TIMEOUT 600
    # Of what is shipped: a sanitizer's instructions are nobody's business.
    COMMAND ${Python3_EXECUTABLE} bench/budget/budget_test.py --bin ${PROJECT_SOURCE_DIR}/build/release)
