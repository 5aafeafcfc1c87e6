# Writes a file for ctest with one test for each suite of a GoogleTest program:
# cmake -DPROGRAM=a test program -DROOM=the prefix of their names -DLABEL=their label
# -DOUTPUT=a file -P discover_suites.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
# "Suite." or "Suite/0.  # TypeParam = ...", and below it the cases, which are indented.
string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+[.]" suites "${listed}")
set(content "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  set(name "${ROOM}.${suite}")
  # Ends what hangs, and nothing that is merely slow: sanitizers on an old CPU take twenty times as long.
  string(APPEND content
    "add_test([[${name}]] [[${PROGRAM}]] [[--gtest_filter=${suite}.*]])\n"
    "set_tests_properties([[${name}]] PROPERTIES LABELS ${LABEL} TIMEOUT 900)\n")
endforeach()
file(WRITE ${OUTPUT} "${content}")
