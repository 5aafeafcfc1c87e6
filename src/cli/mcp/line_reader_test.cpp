#include "cli/mcp/line_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace slipstream {
namespace {

using Kind = ReadLine::Kind;

class LineReaderTest : public testing::Test {
 protected:
  LineReaderTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    input_ = UniqueFd(ends[0]);
    client_ = UniqueFd(ends[1]);
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    stop_ = UniqueFd(ends[0]);
    stopper_ = UniqueFd(ends[1]);
    // Room for what is written before it is read.
    EXPECT_GT(::fcntl(client_.get(), F_SETPIPE_SZ, 1 << 20), 0);
    reader_ = std::make_unique<LineReader>(input_.get(), stop_.get(), 10);
  }
  void send(std::string_view text) const {
    EXPECT_TRUE(write_exactly(client_.get(), std::as_bytes(std::span(text))));
  }
  void hang_up() { client_.reset(); }
  void stop() { stopper_.reset(); }
  ReadLine next() { return reader_->next().value(); }
  void expect_line(std::string_view text) {
    const ReadLine line = next();
    EXPECT_EQ(line.kind, Kind::kLine);
    EXPECT_EQ(line.text, text);
  }

 private:
  UniqueFd input_;
  UniqueFd client_;
  UniqueFd stop_;
  UniqueFd stopper_;

 protected:
  std::unique_ptr<LineReader> reader_;
};

TEST_F(LineReaderTest, LinesComeInOrder) {
  send("one\ntwo\r\n\nthr");
  expect_line("one");
  expect_line("two");
  expect_line("");
  send("ee\nlast");
  expect_line("three");
  hang_up();
  expect_line("last");
  EXPECT_EQ(next().kind, Kind::kEnd);
  EXPECT_EQ(next().kind, Kind::kEnd);
}

TEST_F(LineReaderTest, ALineThatIsTooLongIsSkipped) {
  send(std::string(10, 'a') + "\n" + std::string(11, 'b') + "\n" + std::string(200'000, 'c') +
       "\nnext\n");
  expect_line(std::string(10, 'a'));
  EXPECT_EQ(next().kind, Kind::kTooLong);
  EXPECT_EQ(next().kind, Kind::kTooLong);
  expect_line("next");
  send(std::string(200'000, 'd'));
  hang_up();
  EXPECT_EQ(next().kind, Kind::kTooLong);
  EXPECT_EQ(next().kind, Kind::kEnd);
}

TEST_F(LineReaderTest, ASignalEndsIt) {
  send("one\nhalf a li");
  expect_line("one");
  stop();
  EXPECT_EQ(next().kind, Kind::kEnd);
}

}  // namespace
}  // namespace slipstream
