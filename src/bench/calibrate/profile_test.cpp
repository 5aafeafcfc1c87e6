#include "bench/calibrate/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::calibrate {
namespace {

using testing::HasSubstr;

// Four layers in two groups, without a measurement of 2 bits.
Evidence evidence() {
  const auto options = [](double kl_4, double kl_3) {
    return std::vector<WidthOption>{{.bits = 8, .kl = 0, .bytes_per_token = 256},
                                    {.bits = 4, .kl = kl_4, .bytes_per_token = 128},
                                    {.bits = 3, .kl = kl_3, .bytes_per_token = 96}};
  };
  Evidence found{.chosen = "turbo4,0-1=turbo8v4", .reason = "a reason", .budget = 0.02};
  found.groups = {{.first_layer = 0, .last_layer = 1, .bits = {8, 4}, .kl = 0.001},
                  {.first_layer = 2, .last_layer = 3, .bits = {4, 4}, .kl = 0.002}};
  found.probe.groups = {
      {.first_layer = 0, .last_layer = 1, .keys = options(0.1, 0.2), .values = options(0.001, 0.1)},
      {.first_layer = 2, .last_layer = 3, .keys = options(0.001, 0.1), .values = options(0, 0.1)}};
  found.probe.schemes = {{.kv = "turbo4", .kl = 0.1, .same_top = 0.8},
                         {.kv = "turbo3", .kl = 0.6, .same_top = 0.7},
                         {.kv = "q4_0", .kl = 0.2, .same_top = 0.5}};
  found.trials = {{.kv = "turbo4,0-1=turbo8v4", .kl = 0.01}};
  found.depths = {512};
  return found;
}

class ProfileFile : public testing::Test {
 protected:
  ProfileFile() {
    std::string name = testing::TempDir() + "profile-XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ / "new" / "profile.json";
    std::ofstream(directory_ / "fitted") << "keys";
  }
  ~ProfileFile() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] Profile profile() const {
    return {.slipstream = "1.2.3",
            .fingerprint = "abcd",
            .model_file = "model.gguf",
            .keys = directory_ / "fitted",
            .created = "2026-11-16T00:00:00Z",
            .llama_cpp = "0.7.0",
            .ggml = "0.27.0",
            .machine = {{"cpu", "a CPU"}},
            .evidence = evidence()};
  }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator(file), std::istreambuf_iterator<char>()};
  }
  void rewrite(const std::string& text) const { std::ofstream(path_) << text; }

  std::filesystem::path directory_;
  std::filesystem::path path_;
};

TEST_F(ProfileFile, IsReadAsItWasWritten) {
  ASSERT_TRUE(write_profile(profile(), path_));
  const Result<Profile> read = load_profile(path_, "abcd", "1.2.3");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->evidence.chosen, "turbo4,0-1=turbo8v4");
  EXPECT_EQ(read->evidence.groups[1].bits, (turbo::Bits{4, 4}));
  EXPECT_EQ(read->evidence.probe.groups[0].keys[1].kl, 0.1);
  EXPECT_EQ(read->evidence.trials[0].kl, 0.01);
  EXPECT_EQ(read->machine["cpu"], "a CPU");
  EXPECT_EQ(read->keys, path_.parent_path() / "profile.keys");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_.parent_path()), {}), 2)
      << "nothing unfinished is left behind";
}

TEST_F(ProfileFile, HasTheLimitIfOneWasSearched) {
  ASSERT_TRUE(write_profile(profile(), path_));
  EXPECT_FALSE(load_profile(path_, "abcd", "1.2.3")->evidence.attend);
  Profile with_limit = profile();
  with_limit.evidence.attend = {
      .chosen = "turbo4,attend=2048",
      .depth_max = 8192,
      .trials = {{.kv = "turbo4,attend=2048", .attend = 2048, .at = {{.depth = 512, .kl = 0.1}}}}};
  ASSERT_TRUE(write_profile(with_limit, path_));
  const Result<Profile> read = load_profile(path_, "abcd", "1.2.3");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->evidence.attend);
  EXPECT_EQ(read->evidence.attend->chosen, "turbo4,attend=2048");
  EXPECT_EQ(read->evidence.attend->depth_max, 8192);
  EXPECT_EQ(read->evidence.attend->trials[0].at[0].kl, 0.1);
  for (const char* chosen : {"turbo4", "turbo4,attend=1"}) {
    with_limit.evidence.attend->chosen = chosen;
    ASSERT_TRUE(write_profile(with_limit, path_));
    EXPECT_EQ(load_profile(path_, "abcd", "1.2.3").error().code, Code::kCorrupt) << chosen;
  }
}

TEST_F(ProfileFile, OfAnotherModelOrVersionIsRefused) {
  ASSERT_TRUE(write_profile(profile(), path_));
  const Result<Profile> other_model = load_profile(path_, "ef01", "1.2.3");
  ASSERT_FALSE(other_model);
  EXPECT_EQ(other_model.error().code, Code::kInvalidArgument);
  EXPECT_THAT(other_model.error().message, HasSubstr("for another model (model.gguf)"));
  const Result<Profile> other_version = load_profile(path_, "abcd", "1.2.4");
  ASSERT_FALSE(other_version);
  EXPECT_EQ(other_version.error().code, Code::kUnsupported);
  EXPECT_THAT(other_version.error().message, HasSubstr("calibrate again"));
  rewrite(format_text("{{\"format\": {}, \"slipstream\": \"1.2.3\"}}", kProfileFormat - 1));
  EXPECT_EQ(load_profile(path_, "abcd", "1.2.3").error().code, Code::kUnsupported);
}

TEST_F(ProfileFile, IsOfNoUseWithoutWhatWasFittedToKeys) {
  ASSERT_TRUE(write_profile(profile(), path_));
  std::filesystem::remove(path_.parent_path() / "profile.keys");
  EXPECT_EQ(load_profile(path_, "abcd", "1.2.3").error().code, Code::kCorrupt);
  Profile without = profile();
  without.keys.clear();
  ASSERT_TRUE(write_profile(without, path_));
  EXPECT_EQ(load_profile(path_, "abcd", "1.2.3")->keys, "");
}

TEST_F(ProfileFile, ThatIsDamagedIsRefusedAtEveryLength) {
  ASSERT_TRUE(write_profile(profile(), path_));
  const std::string whole = text();
  for (std::size_t length = 0; length + 2 < whole.size(); length += 97) {
    rewrite(whole.substr(0, length));
    const Result<Profile> read = load_profile(path_, "abcd", "1.2.3");
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, Code::kCorrupt) << length;
  }
  for (const auto& [from, to] : {std::pair{"\"turbo4,0-1=turbo8v4\"", "\"turbo5\""},
                                 std::pair{"\"groups\": [", "\"groups\": 3, \"x\": ["},
                                 std::pair{"\"chosen\"", "\"selected\""},
                                 std::pair{"\"budget\": 0.02", "\"budget\": null"}}) {
    std::string changed = whole;
    const std::size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    rewrite(changed.replace(at, std::string_view(from).size(), to));
    const Result<Profile> read = load_profile(path_, "abcd", "1.2.3");
    ASSERT_FALSE(read) << to;
    EXPECT_EQ(read.error().code, Code::kCorrupt) << to;
  }
  EXPECT_EQ(load_profile(directory_ / "none", "abcd", "1.2.3").error().code, Code::kNotFound);
}

TEST(MeasuredSchemes, AreSortedAndATrialCountsMoreThanTheProbe) {
  Evidence found = evidence();
  found.probe.finest = {.kv = "turbo8", .kl = 0.001, .same_top = 1};
  found.trials.push_back({.kv = "turbo4", .kl = 0.15, .same_top = 0.7});
  std::vector<std::string> names;
  for (const SchemeEvidence& scheme : measured_schemes(found)) {
    names.push_back(format_text("{} {}", scheme.kv, scheme.kl));
  }
  EXPECT_THAT(names, testing::ElementsAre("turbo8 0.001", "turbo4,0-1=turbo8v4 0.01", "turbo4 0.15",
                                          "q4_0 0.2", "turbo3 0.6"));
}

std::string complaint(std::string_view kv) {
  return why_broken(evidence(), *parse_kv_scheme(kv)).value_or("");
}

TEST(WhyBroken, GoesByWhatWasMeasuredOfTheSchemeItself) {
  EXPECT_EQ(complaint("turbo4,0-1=turbo8v4"), "");
  EXPECT_EQ(complaint("turbo4"), "");
  EXPECT_THAT(complaint("turbo3"), HasSubstr("turbo3 at a mean KL divergence of 0.600"));
  EXPECT_THAT(complaint("q4_0"), HasSubstr("top token in 50.0 %"));
}

TEST(WhyBroken, ALimitThatWasTriedIsJudgedByItsWorstDepth) {
  Evidence found = evidence();
  found.attend = {.trials = {{.kv = "turbo4,attend=512",
                              .attend = 512,
                              .at = {{.depth = 512, .kl = 0.1},
                                     {.depth = 4096, .kl = 0.1, .kl_decoded = 0.4}}}}};
  const auto why = why_broken(found, *parse_kv_scheme("turbo4,attend=512"));
  EXPECT_THAT(why.value_or(""), HasSubstr("turbo4,attend=512 at a mean KL divergence of 0.400"));
  EXPECT_FALSE(why_broken(found, *parse_kv_scheme("turbo4,attend=1024")));
}

TEST(WhyBroken, ElseByWhatItsLayersAddUpTo) {
  EXPECT_THAT(complaint("turbo4v3"), HasSubstr("adds up to a mean KL divergence of 0.301"));
  EXPECT_THAT(complaint("turbo3v4"), HasSubstr("0.301"));
  EXPECT_EQ(complaint("turbo8v3"), "");
  EXPECT_THAT(complaint("turbo2"), HasSubstr("0.500")) << "2 bits are no better than 3";
  EXPECT_EQ(complaint("turbo0v3"), "") << "f16 costs nothing";
  EXPECT_EQ(complaint("q5_1"), "") << "nothing is known of it";
  EXPECT_EQ(complaint("turbo3,0=turbo8,2=turbo8"), "") << "a layer's share is not known";
}

}  // namespace
}  // namespace slipstream::calibrate
