// Programs that a model could write, by mistake or by malice: each ends and does no harm.
#include "bench/quality/work/sandbox.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/format.h"
#include "base/unique_fd.h"
#include "bench/quality/work/code.h"

namespace slipstream::quality {
namespace {

using std::chrono::seconds;

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<Sandbox> opened = Sandbox::open({.n_cpu_seconds = 1});
    if (!opened) GTEST_SKIP() << opened.error().message;
    sandbox_ = std::make_unique<Sandbox>(*opened);
  }

  Sandbox::Run run(const std::string& program) {
    const auto started = std::chrono::steady_clock::now();
    Result<Sandbox::Run> found = sandbox_->run(program);
    EXPECT_LT(std::chrono::steady_clock::now() - started, RunLimits{}.time + seconds(10));
    EXPECT_TRUE(found) << found.error().message;
    return found ? *found : Sandbox::Run{};
  }

  // What Python answers to an attempt: the name of the exception, or "it worked".
  std::string attempt(const std::string& statement) {
    const Sandbox::Run found =
        run(format_text("try:\n    {}\n    print('it worked')\nexcept BaseException as error:\n"
                        "    print(type(error).__name__)\n",
                        statement));
    EXPECT_TRUE(found.ended) << found.complaint;
    return found.out;
  }

  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(SandboxTest, RunsAProgram) {
  const Sandbox::Run found = run("import math\nprint(math.factorial(5))");
  EXPECT_TRUE(found.ended);
  EXPECT_EQ(found.out, "120\n");
  const Sandbox::Run failed = run("print(1)\nassert 1 == 2, 'not equal'");
  EXPECT_FALSE(failed.ended);
  EXPECT_EQ(failed.out, "1\n");
  EXPECT_TRUE(failed.complaint.contains("not equal")) << failed.complaint;
}

TEST_F(SandboxTest, ALoopWithoutEndIsStopped) { EXPECT_FALSE(run("while True: pass").ended); }

TEST_F(SandboxTest, ALoopThatIgnoresSignalsIsStopped) {
  EXPECT_FALSE(run("import signal\nfor s in (24, 15, 2): signal.signal(s, signal.SIG_IGN)\n"
                   "while True: pass")
                   .ended);
}

TEST_F(SandboxTest, OneThatSleepsIsStopped) {
  const Result<Sandbox> impatient = Sandbox::open({.time = seconds(2)});
  ASSERT_TRUE(impatient) << impatient.error().message;
  for (const char* before : {"print(1)", "import os; os.close(1); os.close(2)"}) {
    const auto found = impatient->run(format_text("import time\n{}\ntime.sleep(100000)", before));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_FALSE(found->ended);
  }
}

TEST_F(SandboxTest, AForkBombHasNoSecondProcess) {
  EXPECT_EQ(attempt("import os; os.fork()"), "PermissionError\n");
  EXPECT_EQ(attempt("import os; os.posix_spawn('/usr/bin/true', ['true'], {})"),
            "PermissionError\n");
  EXPECT_EQ(attempt("import subprocess; subprocess.run(['/usr/bin/true'])"), "PermissionError\n");
  EXPECT_EQ(attempt("import threading; threading.Thread(target=print).start()"), "RuntimeError\n");
  EXPECT_FALSE(run("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass").ended);
}

TEST_F(SandboxTest, AHugeAllocationIsRefused) {
  EXPECT_EQ(attempt("x = bytearray(1 << 40)"), "MemoryError\n");
  EXPECT_EQ(attempt("x = bytearray(300 << 20)"), "MemoryError\n");
  EXPECT_EQ(attempt("import os; os.memfd_create('x')"), "PermissionError\n");
  EXPECT_EQ(attempt("import mmap; mmap.mmap(-1, 1 << 30)"), "OSError\n");
  // Little by little, whatever comes of it.
  EXPECT_FALSE(run("x = []\nwhile True: x.append('y' * 1000000 + str(len(x)))").ended);
}

TEST_F(SandboxTest, FilesOfTheMachineAreNotThere) {
  EXPECT_EQ(attempt("open('/etc/passwd')"), "FileNotFoundError\n");
  EXPECT_EQ(attempt("open('/proc/self/environ')"), "FileNotFoundError\n");
  EXPECT_EQ(run("import os\nprint(sorted(os.listdir('/')))").out, "['lib', 'lib64', 'usr']\n");
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(attempt(format_text("import os; os.listdir('{}')", here)), "FileNotFoundError\n");
}

TEST_F(SandboxTest, NothingCanBeWritten) {
  for (const char* path : {"/x", "/usr/x", "/usr/bin/python3", "/usr/lib/x"}) {
    EXPECT_EQ(attempt(format_text("open('{}', 'w')", path)), "OSError\n") << path;
  }
  EXPECT_EQ(attempt("import os; os.remove('/usr/bin/env')"), "OSError\n");
  EXPECT_TRUE(std::filesystem::exists("/usr/bin/env"));
}

TEST_F(SandboxTest, TheNetworkIsNotThere) {
  // A server of this machine that a program outside would reach.
  const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  ASSERT_EQ(::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  EXPECT_EQ(attempt(format_text("import socket; socket.create_connection(('127.0.0.1', {}), 5)",
                                ntohs(address.sin_port))),
            "PermissionError\n");
}

TEST_F(SandboxTest, TheEnvironmentIsNotThere) {
  ::setenv("SLIPSTREAM_SANDBOX_TEST", "secret", 1);
  const Sandbox::Run found = run("import os\nprint(dict(os.environ))");
  ::unsetenv("SLIPSTREAM_SANDBOX_TEST");
  EXPECT_FALSE(found.out.contains("secret")) << found.out;
  EXPECT_FALSE(found.out.contains("HOME")) << found.out;
}

TEST_F(SandboxTest, OtherProcessesCannotBeReached) {
  EXPECT_EQ(attempt(format_text("import os; os.kill({}, 9)", ::getpid())), "ProcessLookupError\n");
  EXPECT_EQ(attempt("import os; os.setuid(1234); os.setuid(0)"), "PermissionError\n");
}

TEST_F(SandboxTest, EndlessOutputIsCut) {
  const Sandbox::Run found = run("while True: print('x' * 1000)");
  EXPECT_FALSE(found.ended);
  EXPECT_TRUE(found.out.empty());
  EXPECT_FALSE(run("import sys\nwhile True: sys.stderr.write('x' * 1000 + chr(10))").ended);
}

TEST_F(SandboxTest, WhatIsNoProgramDoesNotEnd) {
  EXPECT_FALSE(run(std::string("print(1)\0print(2)", 17)).ended);
  EXPECT_FALSE(run("def f(:").ended);
}

TEST_F(SandboxTest, AFunctionIsRightIfItsAssertionsHold) {
  const auto judge = [&](const char* function) {
    return judge_function(*sandbox_, function, "assert add(2, 3) == 5");
  };
  const Mark right = judge("def add(a, b):\n    return a + b\n");
  EXPECT_TRUE(right.valid && right.right);
  const Mark wrong = judge("def add(a, b):\n    return a - b\n");
  EXPECT_TRUE(wrong.valid);
  EXPECT_FALSE(wrong.right);
  EXPECT_FALSE(judge("def add(a, b):\n    return a +\n").valid);
  EXPECT_FALSE(judge("def add(a, b):\n    return c\n").right);
  // Ending the program early is no way around the assertions.
  EXPECT_FALSE(judge("def add(a, b):\n    import os\n    os._exit(0)\n").right);
  EXPECT_FALSE(judge("import sys\nsys.exit(0)\n").right);
}

TEST(Code, FindsTheFunctionInAnAnswer) {
  constexpr const char* kBeginning = "def add(a, b):\n    \"\"\"Sum.\"\"\"\n";
  const auto found = [](const char* answer) { return function_in(answer, "add", kBeginning); };
  constexpr const char* kWhole = "def add(a, b):\n    return a + b\n";
  EXPECT_EQ(found("```python\ndef add(a, b):\n    return a + b\n```\nThis adds."),
            std::string(kWhole) + "\n");
  EXPECT_EQ(found("Sure:\ndef add(a, b):\n    return a + b\nIt adds."), kWhole);
  EXPECT_EQ(found("```\ndef add(a, b):\n    return a + b"), kWhole);  // it breaks off
  EXPECT_EQ(found("    return a + b\nprint(add(1, 2))"),
            std::string(kBeginning) + "    return a + b\n");
  EXPECT_EQ(found("return a + b"), std::string(kBeginning) + "    return a + b\n");
  EXPECT_EQ(found("```python\nx = a\nreturn x + b\n```"),
            std::string(kBeginning) + "    x = a\n    return x + b\n    \n");
}

}  // namespace
}  // namespace slipstream::quality
