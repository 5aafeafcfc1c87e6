#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/check.h"

namespace slipstream {
namespace {

constexpr Code kAll[] = {Code::kInvalidArgument, Code::kNotFound,    Code::kPermission,
                         Code::kUnsupported,     Code::kOutOfMemory, Code::kOverloaded,
                         Code::kCancelled,       Code::kCorrupt,     Code::kIo};

TEST(Result, EveryCodeHasItsOwnNameAndSentence) {
  std::set<std::string_view> names;
  std::set<std::string_view> sentences;
  for (const Code code : kAll) {
    names.insert(name(code));
    sentences.insert(sentence(code));
    EXPECT_TRUE(sentence(code).ends_with('.'));
  }
  EXPECT_EQ(names.size(), std::size(kAll));
  EXPECT_EQ(sentences.size(), std::size(kAll));
}

TEST(Result, ErrnoBecomesACodeAndASentence) {
  const Result<int> missing = fail_errno(ENOENT, "cannot open model.gguf");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message, "cannot open model.gguf: No such file or directory");
  EXPECT_EQ(fail_errno(EACCES, "x").error().code, Code::kPermission);
  EXPECT_EQ(fail_errno(ENOMEM, "x").error().code, Code::kOutOfMemory);
  EXPECT_EQ(fail_errno(ENOSPC, "x").error().code, Code::kIo);
}

TEST(CheckDeathTest, SaysWhereAndWhat) {
  SLIP_CHECK(1 + 1 == 2, "arithmetic holds");
  EXPECT_DEATH(SLIP_CHECK(1 + 1 == 3, "arithmetic broke"),
               "result_test.cpp:[0-9]+: bug: arithmetic broke \\(check failed: 1 \\+ 1 == 3\\)");
}

}  // namespace
}  // namespace slipstream
