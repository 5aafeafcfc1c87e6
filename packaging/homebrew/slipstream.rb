# Homebrew on Linux: brew install --HEAD --formula packaging/homebrew/slipstream.rb
# Not tested (docs/packages.md): it needs a llama.cpp formula with the versions that the plugin was made for.
class Slipstream < Formula
  desc "Long contexts and big models on the machine you own, behind stock llama.cpp"
  homepage "https://example.org/slipstream"
  license "MIT"
  head "https://example.org/slipstream.git", branch: "main"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "node" => :build
  depends_on "pkgconf" => :build
  depends_on "python@3.13" => :build
  depends_on "curl"
  depends_on "fmt"
  depends_on "ggml"
  depends_on "highway"
  depends_on "lexbor"
  depends_on "libedit"
  depends_on "libgit2"
  depends_on "liburing"
  depends_on :linux # io_uring; macOS is not ported
  depends_on "llama.cpp"
  depends_on "openssl@3"
  depends_on "prometheus-cpp"
  depends_on "snowball"
  depends_on "spdlog"
  depends_on "sqlite"
  depends_on "utf8proc"
  depends_on "zstd"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DSLIPSTREAM_DEVELOPER_MODE=OFF",
           "-DSLIPSTREAM_WEB=ON", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build", "--component", "runtime"
  end

  service do
    run [opt_bin/"slipstream", "serve", var/"slipstream/model.gguf", "--kv-disk", var/"cache/slipstream"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/slipstream --version") unless head?
    assert_match "compressed KV", shell_output("#{bin}/slipstream doctor")
  end
end
