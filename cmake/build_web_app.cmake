# Builds the web app and writes a C++ file that has its files: cmake -DSOURCE=web -DWORK=a folder of
# the build -DOUTPUT=a .cpp -P build_web_app.cmake
#
# Works on a copy, so that a build leaves the checkout as it was. npm's registry is asked only when
# package-lock.json has changed.
cmake_minimum_required(VERSION 3.25)

function(run what)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed:\n${output}\n"
      "To build the program without its web app: cmake -DSLIPSTREAM_WEB=OFF and build again")
  endif()
endfunction()

function(content_type_of path result)
  set(type_of_html "text/html; charset=utf-8")
  set(type_of_js "text/javascript; charset=utf-8")
  set(type_of_css "text/css; charset=utf-8")
  set(type_of_svg "image/svg+xml")
  set(type_of_png "image/png")
  set(type_of_md "text/plain; charset=utf-8")
  set(type_of_webmanifest "application/manifest+json")
  string(REGEX REPLACE ".*[.]" "" extension ${path})
  if(NOT DEFINED type_of_${extension})
    message(FATAL_ERROR "${path}: name its content type in cmake/build_web_app.cmake")
  endif()
  set(${result} ${type_of_${extension}} PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK}/src ${WORK}/public ${WORK}/tests ${WORK}/dist)
foreach(name src public tests index.html package.json package-lock.json tsconfig.json vite.config.ts)
  file(COPY ${SOURCE}/${name} DESTINATION ${WORK})
endforeach()

file(SHA256 ${WORK}/package-lock.json wanted)
set(installed "")
if(EXISTS ${WORK}/node_modules/.installed)
  file(READ ${WORK}/node_modules/.installed installed)
endif()
if(NOT installed STREQUAL wanted)
  run("npm ci" npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1)
  file(WRITE ${WORK}/node_modules/.installed ${wanted})
endif()
run("npm run build" npm run build)

file(GLOB_RECURSE paths RELATIVE ${WORK}/dist ${WORK}/dist/*)
list(SORT paths)
set(arrays "")
set(entries "")
set(i 0)
foreach(path ${paths})
  content_type_of(${path} type)
  # The hash is also what makes this file change when only an embedded one did.
  file(SHA256 ${WORK}/dist/${path} hash)
  string(SUBSTRING ${hash} 0 32 hash)
  set(url /${path})
  if(path STREQUAL "index.html")
    set(url /)
  endif()
  set(is_named_by_hash false)
  if(path MATCHES "^assets/")
    set(is_named_by_hash true)
  endif()
  string(APPEND arrays
    "constexpr unsigned char kFile${i}[] = {\n#embed \"${WORK}/dist/${path}\"\n};\n")
  string(APPEND entries
    "    {\"${url}\", \"${type}\", \"\\\"${hash}\\\"\", kFile${i}, ${is_named_by_hash}},\n")
  math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUTPUT} "// Made by cmake/build_web_app.cmake.
#include \"server/routes/web_app.h\"

namespace slipstream {
namespace {

${arrays}
constexpr WebFile kFiles[] = {
${entries}};

}  // namespace

std::span<const WebFile> web_files() { return kFiles; }

}  // namespace slipstream
")
