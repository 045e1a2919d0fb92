# stint_embed(TARGET NAMESPACE FILES…): turns text files into a generated header/source pair with one
# std::string_view per file, so that SQL lives in .sql files and ships inside the binary.
# The symbol of queries/claim_batch.sql is k_claim_batch in namespace NAMESPACE.
function(stint_embed target namespace)
    string(REPLACE "::" "_" stem ${namespace})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${stem}_embedded)
    add_custom_command(
        OUTPUT ${out}.cpp ${out}.h
        COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/embed.py ${namespace} ${out} ${ARGN}
        DEPENDS ${PROJECT_SOURCE_DIR}/tools/embed.py ${ARGN}
        VERBATIM
    )
    target_sources(${target} PRIVATE ${out}.cpp ${out}.h)
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>)
endfunction()
