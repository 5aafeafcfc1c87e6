#include "retrieval/content/outliner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/child.h"
#include "base/log.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

// Not looked for in PATH: what reads everybody's files is the system's own.
constexpr const char* kCtags = "/usr/bin/ctags-universal";

// Data; and what libxml2 parses, which wants more than the sandbox allows.
constexpr const char* kNoLanguages =
    "--languages=-JSON,-Yaml,-CSS,-SCSS,-Iniconf,-Diff,-QemuHX,-Passwd,-XML,-SVG,-XSLT,-Ant,"
    "-Maven2,-Glade,-DBusIntrospect,-PlistXML,-RelaxNG,-XRC,-OpenAPI,-AnsiblePlaybook,"
    "-I18nRubyGem";

std::vector<std::string> ctags_command() {
  return {kCtags,
          "--quiet=yes",
          "--options=NONE",
          "--_interactive=sandbox",
          "--fields=NKnesl-P",
          "--extras=-F",
          "--sort=no",
          kNoLanguages,
          "--map-TypeScript=+.tsx",
          "--map-JavaScript=+.jsx",
          "-G"};  // a script tells its language in its first line
}

// Whether a symbol of this kind is looked for by its name. Fields and local names are too many.
bool is_wanted(std::string_view language, std::string_view kind) {
  constexpr auto kMinor = std::to_array<std::string_view>(
      {"local",      "parameter",  "label",      "field",    "header",      "externvar",
       "prototype",  "file",       "import",     "unknown",  "anchor",      "hyperlink",
       "id",         "script",     "stylesheet", "property", "key",         "using",
       "name",       "attribute",  "package",    "tparam",   "footnote",    "regex",
       "element",    "hashtag",    "reference",  "citation", "packageName", "require",
       "sourcefile", "module-name"});
  if (std::ranges::contains(kMinor, kind)) return false;
  if (kind == "member") return language == "Python";  // a method there, a field elsewhere
  // Names at the top of C files are those of tables and drivers. In scripts they are local.
  const bool is_c = language == "C" || language == "C++" || language == "Rust" || language == "Go";
  return is_c || (kind != "variable" && kind != "constant");
}

std::string text_of(const nlohmann::json& tag, const char* name) {
  const auto found = tag.find(name);
  return found != tag.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int line_of(const nlohmann::json& tag, const char* name) {
  const auto found = tag.find(name);
  return found != tag.end() && found->is_number_integer() ? found->get<int>() : 0;
}

// A name may be any bytes of the text.
std::string bounded(std::string name) {
  if (name.size() > kRetrievalLimits.symbol_bytes_max) name.clear();
  return name;
}

}  // namespace

Outliner::Outliner(std::chrono::milliseconds time_max) : time_max_(time_max) {}
Outliner::~Outliner() { end(); }

bool Outliner::is_available() { return ::access(kCtags, X_OK) == 0; }

bool Outliner::start() {
  // A socket, because writing to it can be told not to raise SIGPIPE.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  Result<Pipe> answers = make_pipe();
  const Result<UniqueFd> nowhere = open_file("/dev/null", O_WRONLY);
  if (!answers || !nowhere) return false;
  const Result<pid_t> pid =
      spawn_child(ctags_command(), theirs.get(), answers->write.get(), nowhere->get());
  if (!pid) return false;
  pid_ = *pid;
  in_ = std::move(ours);
  out_ = std::move(answers->read);
  unread_.clear();
  std::string greeting;
  return read_line(greeting, Clock::now() + std::chrono::seconds(20));
}

void Outliner::end() {
  in_.reset();
  out_.reset();
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

bool Outliner::send(std::string_view bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(in_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd room{.fd = in_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, static_cast<int>(left)) < 0 && errno != EINTR) return false;
  }
  return true;
}

bool Outliner::read_line(std::string& line, Clock::time_point until) {
  constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;
  std::size_t n_searched = 0;
  while (true) {
    const std::size_t end = unread_.find('\n', n_searched);
    if (end != std::string::npos) {
      line.assign(unread_, 0, end);
      unread_.erase(0, end + 1);
      return true;
    }
    n_searched = unread_.size();
    if (n_searched > kLineBytesMax) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd answer{.fd = out_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&answer, 1, static_cast<int>(left)) <= 0) {
      if (errno == EINTR) continue;
      return false;
    }
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(out_.get(), buffer.data(), buffer.size());
    if (n <= 0) return false;
    unread_.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

bool Outliner::ask(std::string_view path, std::string_view text, std::vector<Symbol>& symbols) {
  const nlohmann::json request = {
      {"command", "generate-tags"}, {"filename", std::string(path)}, {"size", text.size()}};
  const Clock::time_point until = Clock::now() + time_max_;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;
  if (!send(request.dump(-1, ' ', false, kReplace) + "\n", until) || !send(text, until)) {
    return false;
  }
  std::string line;
  while (read_line(line, until)) {
    const nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
    if (!answer.is_object()) continue;  // a name that is not UTF-8
    const std::string type = text_of(answer, "_type");
    if (type == "completed") return true;
    if (type == "error") return text_of(answer, "fatal").empty();
    if (type != "tag" || symbols.size() >= kRetrievalLimits.symbols_of_file_max) continue;
    std::string kind = text_of(answer, "kind");
    if (!is_wanted(text_of(answer, "language"), kind)) continue;
    Symbol symbol{.name = bounded(text_of(answer, "name")),
                  .kind = std::move(kind),
                  .scope = bounded(text_of(answer, "scope")),
                  .first_line = line_of(answer, "line"),
                  .last_line = line_of(answer, "end")};
    if (symbol.name.empty() || symbol.first_line <= 0) continue;
    // ctags' own names for what has none.
    if (symbol.name.starts_with("__anon")) continue;
    if (const std::size_t anonymous = symbol.scope.find("__anon"); anonymous != std::string::npos) {
      symbol.scope.resize(anonymous);
      while (symbol.scope.ends_with(':') || symbol.scope.ends_with('.')) symbol.scope.pop_back();
    }
    symbols.push_back(std::move(symbol));
  }
  return false;
}

std::vector<Symbol> Outliner::outline(std::string_view path, std::string_view text) {
  std::vector<Symbol> symbols;
  if (text.empty() || !is_available()) return symbols;
  if (pid_ == 0 && !start()) {
    end();
    ++n_failures_;
    return symbols;
  }
  if (!ask(path, text, symbols)) {
    ++n_failures_;
    log::warn("index.outline",
              {{"path", path}, {"problem", "ctags did not answer in time, or ended"}});
    end();
    symbols.clear();
  }
  std::ranges::stable_sort(symbols, {}, &Symbol::first_line);
  return symbols;
}

}  // namespace slipstream
