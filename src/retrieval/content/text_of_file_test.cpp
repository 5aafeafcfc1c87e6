#include "retrieval/content/text_of_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "base/utf8.h"
#include "retrieval/content/html_text.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

using namespace std::string_literals;

std::string text(std::string bytes, std::string_view name = "a.txt") {
  const Result<FileText> file = text_of_bytes(std::move(bytes), name);
  return file ? file->text : "refused: " + file.error().message;
}

TEST(TextOfFile, EncodingsBecomeUtf8) {
  EXPECT_EQ(text("plain"), "plain");
  EXPECT_EQ(text("\xEF\xBB\xBFmarked"), "marked");
  EXPECT_EQ(text("\xFF\xFEh\0i\0"s), "hi");
  EXPECT_EQ(text("\xFE\xFF\0h\0i"s), "hi");
  EXPECT_EQ(text("\xFF\xFE\x3D\xD8\x00\xDE"s), "\U0001F600");
  EXPECT_EQ(text("\xFF\xFE\x3D\xD8h\0"s), "h") << "half of a pair";
  EXPECT_EQ(text("caf\xE9 \x93quoted\x94"), "café \u201Cquoted\u201D");
}

TEST(TextOfFile, DataIsRefused) {
  EXPECT_EQ(text("ELF\0\1\2"s), "refused: binary");
  EXPECT_EQ(text(std::string(300, '\xFE') + std::string(50, '\x01')), "refused: binary");
  EXPECT_EQ(text(std::string(100'000, 'x')), "refused: data in long lines");
  EXPECT_EQ(text("{}", "package-lock.json"), "refused: lock file");
  EXPECT_EQ(text(std::string(kRetrievalLimits.file_bytes_max + 1, '\n')),
            "refused: larger than 5 MiB");
  EXPECT_EQ(text("-----BEGIN PRIVATE KEY-----\n" + std::string(64, 'A')), "refused: private key");
  EXPECT_EQ(text("%PDF-1.4 nothing of it", "a.pdf").substr(0, 9), "refused: ");
}

TEST(TextOfFile, AParagraphOnOneLineIsText) {
  EXPECT_FALSE(text(std::string(3000, 'x') + "\n").starts_with("refused"));
}

TEST(TextOfFile, LinksAreNotFollowed) {
  const std::string folder = testing::TempDir() + "/text_of_file_" + std::to_string(::getpid());
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (folder + "/link.txt").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", (folder + "/etc").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder + "/pipe.txt").c_str(), 0600), 0);
  const Result<UniqueFd> fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(fd);
  for (const char* path :
       {"link.txt", "etc/passwd", "../outside", "/etc/passwd", "pipe.txt", "none"}) {
    EXPECT_FALSE(read_text(fd->get(), path)) << path;
  }
}

TEST(HtmlText, KeepsItsLines) {
  EXPECT_EQ(
      html_text(
          "<html>\n<head><title>T</title>\n<style>\nb {}\n</style></head>\n<p>one\n<b>t</b>wo"),
      " \n  T \n \n\n  \n one\ntwo");
}

TEST(HtmlText, LeavesOutWhatNobodySees) {
  const std::string text = html_text(
      "<p>seen</p><script>var hidden = '<p>';</script><!-- hidden --><style>hidden</style>"
      "<noscript>hidden</noscript><p title='hidden'>and &lt;this&gt; &amp; caf&eacute;</p>");
  EXPECT_TRUE(text.contains("seen"));
  EXPECT_TRUE(text.contains("and <this> & café"));
  EXPECT_FALSE(text.contains("hidden")) << text;
}

TEST(HtmlText, DeepAndBrokenMarkupTakesLinearTime) {
  std::string deep;
  for (int i = 0; i < 500'000; ++i) deep += "<b>";
  EXPECT_TRUE(html_text(deep + "end").contains("end"));
  EXPECT_TRUE(html_text("<script>" + std::string(1'000'000, '<')).size() < 100);
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += "<p\n>x&#10;";
  EXPECT_EQ(std::ranges::count(html_text(lines), '\n'), 100'000);
}

RC_GTEST_PROP(HtmlText, HasAsManyLinesAsItsSource, ()) {
  const auto piece = rc::gen::element<std::string>(
      "<p>", "</p>", "<script>", "</script>", "<!--", "-->", "&lt;", "&#10;", "\n", "\r\n", "x",
      "<", ">", "\"", "<a href='\n'>", "&", "<title>", "\xFF");
  std::string html;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece)) html += part;
  RC_ASSERT(std::ranges::count(html_text(html), '\n') <= std::ranges::count(html, '\n'));
}

RC_GTEST_PROP(TextOfFile, AnyBytesGiveUtf8OrAReason, (const std::string& bytes)) {
  for (const char* name : {"a.txt", "a.html", "a.c"}) {
    const Result<FileText> file = text_of_bytes(bytes, name);
    RC_ASSERT((file ? is_utf8(file->text) : !file.error().message.empty()));
  }
}

}  // namespace
}  // namespace slipstream
