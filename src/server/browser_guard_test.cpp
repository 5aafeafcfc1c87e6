#include "server/browser_guard.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

constexpr std::string_view kHost = "localhost:8080";

TEST(BrowserGuard, ALocalServerAnswersToLocalNamesOnly) {
  const BrowserGuard guard({});
  for (const std::string_view host :
       {"localhost", "LocalHost:8080", "127.0.0.1:1", "[::1]:8080", "[::1]", ""}) {
    EXPECT_TRUE(guard.check(host, "").has_value()) << host;
  }
  for (const std::string_view host : {"evil.example", "evil.example:8080", "localhost.evil.example",
                                      "127.0.0.2", "[::2]", "[::1", "localhost@evil"}) {
    const auto checked = guard.check(host, "");
    ASSERT_FALSE(checked.has_value()) << host;
    EXPECT_EQ(checked.error().status, 403);
  }
}

// With DNS rebinding, a page has the server's own origin, because its name was pointed here.
TEST(BrowserGuard, AServerForOthersAnswersToAddressesAndItsNames) {
  const BrowserGuard open({.is_local = false});
  for (const std::string_view host :
       {"192.168.1.5:8080", "10.0.0.1", "[fd00::1]:8080", "localhost", "127.0.0.1:8080", ""}) {
    EXPECT_TRUE(open.check(host, "").has_value()) << host;
  }
  for (const std::string_view host :
       {"evil.example:8080", "evil.example", "10.0.0.1.evil.example", "[evil]", "10.0.0"}) {
    EXPECT_FALSE(open.check(host, "http://" + std::string(host)).has_value()) << host;
  }
  const BrowserGuard named({.is_local = false, .hosts = {"llm.example"}});
  EXPECT_TRUE(named.check("LLM.example:8080", "").has_value());
  EXPECT_TRUE(named.check("10.0.0.1:8080", "").has_value()) << "a probe of the container's";
  EXPECT_FALSE(named.check("other.example", "").has_value());
  EXPECT_TRUE(BrowserGuard({.hosts = {"llm.example"}}).check("llm.example", "").has_value());
  EXPECT_TRUE(
      BrowserGuard({.is_local = false, .hosts = {"*"}}).check("any.example", "").has_value());
}

TEST(BrowserGuard, WhereKeysAreNeededAnyNameWillDoButNotOnThisMachine) {
  EXPECT_TRUE(BrowserGuard({.is_local = false, .answers_to_all = true})
                  .check("llm.example", "")
                  .has_value());
  EXPECT_FALSE(BrowserGuard({.answers_to_all = true}).check("llm.example", "").has_value());
}

TEST(BrowserGuard, PagesOfOtherOriginsAreRefusedUnlessAllowed) {
  const BrowserGuard guard({.origins = {"https://chat.example"}});
  EXPECT_EQ(guard.check(kHost, "http://localhost:8080"), "") << "its own page";
  EXPECT_EQ(guard.check(kHost, "https://chat.example"), "https://chat.example");
  for (const std::string_view origin :
       {"http://chat.example", "https://chat.example.evil", "null", "http://localhost:8081", "x"}) {
    EXPECT_FALSE(guard.check(kHost, origin).has_value()) << origin;
  }
  EXPECT_EQ(BrowserGuard({.origins = {"*"}}).check(kHost, "https://any.example"),
            "https://any.example");
}

}  // namespace
}  // namespace slipstream
