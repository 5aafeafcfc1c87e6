# The web app as part of a target: slipstream_embed_web_app(TARGET). Where it is not built, the
# program has a page that says so. Included by the folder of the target, which makes the file.
function(slipstream_embed_web_app target)
  find_program(SLIPSTREAM_NPM npm)
  if(SLIPSTREAM_WEB AND NOT SLIPSTREAM_NPM)
    message(WARNING "SLIPSTREAM_WEB is on and npm is not installed: built without the web app")
  endif()
  if(NOT SLIPSTREAM_WEB OR NOT SLIPSTREAM_NPM)
    target_sources(${target} PRIVATE routes/web_app_absent.cpp)
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/web)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/web_files.cpp)
  # Vite finds modules by their imports: this list only says when to run it again.
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS
    ${source}/src/* ${source}/public/* ${source}/index.html ${source}/*.json ${source}/*.ts)
  list(FILTER inputs EXCLUDE REGEX "/(node_modules|dist)/")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DWORK=${PROJECT_BINARY_DIR}/web -DOUTPUT=${output}
      -P ${PROJECT_SOURCE_DIR}/cmake/build_web_app.cmake
    DEPENDS ${inputs} ${PROJECT_SOURCE_DIR}/cmake/build_web_app.cmake
    COMMENT "Building the web app" VERBATIM)
  add_custom_target(web_app DEPENDS ${output})
  add_dependencies(${target} web_app)
  target_sources(${target} PRIVATE ${output})
  # #embed is C++26; g++ 15 and clang 19 have it before.
  set_source_files_properties(${output} PROPERTIES
    COMPILE_OPTIONS "-Wno-pedantic;$<$<CXX_COMPILER_ID:Clang>:-Wno-c23-extensions>")
endfunction()
