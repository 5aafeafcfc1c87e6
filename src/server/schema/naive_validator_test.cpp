#include "server/schema/naive_validator.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

bool is_multiple(const char* value, const char* of) {
  return NaiveValidator({{"multipleOf", NaiveValidator::Json::parse(of)}})
      .accepts(NaiveValidator::Json::parse(value));
}

TEST(NaiveValidator, MultiplesAreThoseOfTheDecimalNumbers) {
  EXPECT_TRUE(is_multiple("0.3", "0.1"));
  EXPECT_TRUE(is_multiple("19.99", "0.01"));
  EXPECT_TRUE(is_multiple("-1.1", "0.1"));
  EXPECT_TRUE(is_multiple("0", "0.1"));
  EXPECT_TRUE(is_multiple("7.5", "2.5"));
  EXPECT_TRUE(is_multiple("9007199254740993", "3"));
  EXPECT_TRUE(is_multiple("1e300", "0.5"));
  EXPECT_FALSE(is_multiple("9007199254740993", "2"));
  EXPECT_FALSE(is_multiple("1.255", "0.01"));
  EXPECT_FALSE(is_multiple("0.001", "0.01"));
  EXPECT_FALSE(is_multiple("10000000000.5", "1"));
  EXPECT_FALSE(is_multiple("1e-20", "1"));
}

}  // namespace
}  // namespace slipstream
