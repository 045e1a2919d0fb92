# The installed tree: one archive made of every room's objects (all but the doors of the binary), the
# public headers, the package file for find_package(stint), and the binary.
include(CMakePackageConfigHelpers)

get_property(stint_objects GLOBAL PROPERTY STINT_ROOM_OBJECTS)
set(stint_archive_parts "")
foreach(objects IN LISTS stint_objects)
    list(APPEND stint_archive_parts $<TARGET_OBJECTS:${objects}>)
endforeach()

add_library(stint_library STATIC ${stint_archive_parts})
add_library(stint::stint ALIAS stint_library)
set_target_properties(stint_library PROPERTIES
    OUTPUT_NAME stint
    EXPORT_NAME stint
    LINKER_LANGUAGE CXX
)
target_compile_features(stint_library INTERFACE cxx_std_20)
target_include_directories(stint_library INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
)
# nlohmann/json is part of the public headers (the default codec); the others only satisfy the linker.
target_link_libraries(stint_library
    PUBLIC nlohmann_json::nlohmann_json
    PRIVATE
        fmt::fmt SQLite::SQLite3 PostgreSQL::PostgreSQL OpenSSL::Crypto tomlplusplus::tomlplusplus
        Threads::Threads
)

install(TARGETS stint_library EXPORT stintTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/stint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")
if(TARGET stint)
    install(TARGETS stint RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(stint_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stint)
install(EXPORT stintTargets NAMESPACE stint:: DESTINATION ${stint_package_dir})
configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/stintConfig.cmake.in
    ${PROJECT_BINARY_DIR}/stintConfig.cmake
    INSTALL_DESTINATION ${stint_package_dir}
    NO_SET_AND_CHECK_MACRO
)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/stintConfigVersion.cmake
    COMPATIBILITY SameMinorVersion
)
install(
    FILES ${PROJECT_BINARY_DIR}/stintConfig.cmake ${PROJECT_BINARY_DIR}/stintConfigVersion.cmake
    DESTINATION ${stint_package_dir}
)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
