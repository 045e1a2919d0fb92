# stint_room(NAME [DEPS room...] [LIBS library...] [SUBDIRS directory...])
#
# Makes the room in the current directory: every *.cpp that is not a test becomes part of the static
# library room_NAME and, through its objects, of the installed library. *_test.cpp become the
# executable NAME_test, one ctest entry of the same name with label "unit"; *_pgtest.cpp become
# NAME_pgtest, label "pg": those need a PostgreSQL server, found through STINT_TEST_POSTGRES.
# SUBDIRS: directories of the same room, for its files on one subject.
function(stint_room name)
    cmake_parse_arguments(ARG "THREADED_TESTS" "" "DEPS;LIBS;TEST_DEPS;SUBDIRS" ${ARGN})
    set(globs *.cpp)
    foreach(dir IN LISTS ARG_SUBDIRS)
        list(APPEND globs ${dir}/*.cpp)
    endforeach()
    file(GLOB sources_and_tests CONFIGURE_DEPENDS ${globs})
    set(sources ${sources_and_tests})
    set(tests ${sources_and_tests})
    list(FILTER sources EXCLUDE REGEX "_(test|pgtest|bench)\\.cpp$")
    set(pgtests ${sources_and_tests})
    list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
    list(FILTER pgtests INCLUDE REGEX "_pgtest\\.cpp$")

    set(deps "")
    foreach(dep IN LISTS ARG_DEPS)
        list(APPEND deps room_${dep})
    endforeach()

    if(sources)
        add_library(objects_${name} OBJECT ${sources})
        target_include_directories(objects_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
        target_link_libraries(objects_${name} PUBLIC stint_flags ${deps} ${ARG_LIBS})
        stint_kind_of_room(${name} kind)
        stint_precompiled(objects_${name} ${kind})
        add_library(room_${name} STATIC $<TARGET_OBJECTS:objects_${name}>)
        # Doors belong to the binary; everything else is the library.
        if(NOT name STREQUAL "cli")
            set_property(GLOBAL APPEND PROPERTY STINT_ROOM_OBJECTS objects_${name})
        endif()
        set(kind PUBLIC)
    else()
        add_library(room_${name} INTERFACE)
        set(kind INTERFACE)
    endif()
    target_include_directories(room_${name} ${kind} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(room_${name} ${kind} stint_flags ${deps} ${ARG_LIBS})

    set(test_deps "")
    foreach(dep IN LISTS ARG_TEST_DEPS)
        list(APPEND test_deps room_${dep})
    endforeach()
    set(threaded "")
    if(ARG_THREADED_TESTS)
        set(threaded THREADED)
    endif()
    if(tests)
        stint_test(${name}_test ${threaded} SOURCES ${tests} LIBS room_${name} ${test_deps})
    endif()
    if(pgtests)
        stint_test(${name}_pgtest ${threaded} SOURCES ${pgtests} LIBS room_${name} ${test_deps} LABELS pg)
    endif()
endfunction()

# Everything that runs under ThreadSanitizer as well: all that a `tsan` build makes.
add_custom_target(threaded_tests)

# stint_test(NAME SOURCES … LIBS … [LABELS …] [THREADED] [ENV …] [TIMEOUT s] [ARGS …])
#
# A GoogleTest executable and its ctest entry. THREADED ones run under ThreadSanitizer too. Each
# leaves its cases in test-results/NAME.xml, which tools/count_tests.py adds up. Label "serial" keeps
# a test from sharing the machine with others. Without STINT_TESTS it does nothing.
function(stint_test name)
    cmake_parse_arguments(ARG "THREADED" "TIMEOUT" "SOURCES;LIBS;LABELS;ENV;ARGS" ${ARGN})
    if(NOT STINT_TESTS)
        return()
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LIBS} stint_flags GTest::gmock GTest::gtest_main)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_compile_options(${name} PRIVATE ${STINT_TEST_OPTIONS})
    if(name MATCHES "^(base|model|sqlite|postgres|wake)_")
        stint_precompiled(${name} low_tests)
    else()
        stint_precompiled(${name} program_tests)
    endif()
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
    set(labels ${ARG_LABELS})
    if(NOT labels)
        set(labels unit)
    endif()
    if(ARG_THREADED)
        list(APPEND labels threaded)
        add_dependencies(threaded_tests ${name})
    endif()
    if("serial" IN_LIST labels)
        set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
    endif()
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 300)  # for what hangs: a busy machine may take its time
    endif()
    set_tests_properties(${name} PROPERTIES
        LABELS "${labels}"
        TIMEOUT ${ARG_TIMEOUT}
        COST ${ARG_TIMEOUT}  # what may take long begins first, so that no one is left for the end
        ENVIRONMENT "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml;${ARG_ENV}"
    )
endfunction()
