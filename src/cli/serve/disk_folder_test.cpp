#include "cli/serve/disk_folder.h"

#include <gtest/gtest.h>

#include <set>

namespace slipstream::serve {
namespace {

TEST(DiskFolder, EveryModelHasItsOwn) {
  std::set<std::string> folders;
  for (const char* name : {"a/b-c", "a-b/c", "a-b-c", "a%2Fb-c", "a/b/c", "a%b-c"}) {
    EXPECT_TRUE(folders.insert(disk_folder(name)).second) << name;
    EXPECT_EQ(disk_folder(name).find('/'), std::string::npos) << name;
  }
  EXPECT_EQ(disk_folder("qwen:Q8_0"), "qwen:Q8_0");  // as it was, so that its prefixes are found
}

}  // namespace
}  // namespace slipstream::serve
