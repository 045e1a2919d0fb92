# Flags shared by every target of the project, and ccache where it is installed.
add_library(stint_flags INTERFACE)
target_compile_options(stint_flags INTERFACE
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
    # {.queue = "x"} leaves the other members at their defaults: that is what it is for.
    -Wno-missing-field-initializers
)
if(STINT_WERROR)
    target_compile_options(stint_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(stint_flags INTERFACE -Wthread-safety)
endif()
if(STINT_SANITIZE)
    target_compile_options(stint_flags INTERFACE -fsanitize=${STINT_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(stint_flags INTERFACE -fsanitize=${STINT_SANITIZE})
    if(STINT_SANITIZE MATCHES "undefined")
        # These four double the time that a build takes. Null accesses and those beyond an object end
        # in AddressSanitizer's report anyway; what is given up is alignment and wrong virtual calls.
        target_compile_options(stint_flags INTERFACE
            -fno-sanitize-recover=undefined -fno-sanitize=null,alignment,vptr,object-size
        )
    endif()
    # Code of tests runs once and is large: compiling it well costs more than it saves.
    set(STINT_TEST_OPTIONS -O0)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # g++ 12 complains about std::string's own operator+ (its bug 105651) …
    target_compile_options(stint_flags INTERFACE -Wno-restrict)
    if(STINT_SANITIZE)
        # … and, with the sanitizers' extra code in between, about std::variant and std::optional.
        target_compile_options(stint_flags INTERFACE -Wno-maybe-uninitialized)
    endif()
endif()
if(STINT_PLANTED_BUGS)
    target_compile_definitions(stint_flags INTERFACE STINT_PLANTED_BUGS=1)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Paths below the project are made relative, so that another clone of it finds its objects too.
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        # What a precompiled header needs; its own date says nothing about its content.
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        ${CCACHE_PROGRAM})
    if(STINT_PRECOMPILED AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
    elseif(STINT_PRECOMPILED)
        add_compile_options(-fpch-preprocess)
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()
