#include "cli/chat/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <utility>

#include "base/check.h"
#include "base/unique_fd.h"
#include "cli/chat/interrupts.h"

namespace slipstream::chat {
namespace {

constexpr int kHistoryLines = 1000;
constexpr unsigned kOwnerOnly = 0600;

struct FreeEditor {
  void operator()(EditLine* editor) const { el_end(editor); }
};
struct FreeHistory {
  void operator()(History* history) const { history_end(history); }
};

// libedit's own function would continue reading after the first signal.
int read_character(EditLine* /*editor*/, wchar_t* character) noexcept {
  std::mbstate_t state{};
  while (true) {
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR && !Interrupts::happened()) continue;  // the window was resized
    if (n <= 0) return static_cast<int>(n);
    const std::size_t n_used = std::mbrtowc(character, &byte, 1, &state);
    if (n_used == static_cast<std::size_t>(-1)) {
      *character = L'?';
      return 1;
    }
    if (n_used != static_cast<std::size_t>(-2)) return 1;
  }
}

}  // namespace

struct LineEditor::Impl {
  std::filesystem::path history_file;
  std::string prompt;
  std::unique_ptr<History, FreeHistory> history;
  std::unique_ptr<EditLine, FreeEditor> editor;

  static char* prompt_of(EditLine* editor) noexcept {
    Impl* self = nullptr;
    el_get(editor, EL_CLIENTDATA, &self);
    return self->prompt.data();
  }

  void load_history() const {
    std::error_code error;
    std::filesystem::create_directories(history_file.parent_path(), error);
    // The file is created here to set its mode, since libedit writes into an existing file. One that
    // was there already may have another mode.
    const Result<UniqueFd> file = open_file(history_file.string(), O_RDWR | O_CREAT, kOwnerOnly);
    if (!file) return;
    (void)::fchmod(file->get(), kOwnerOnly);  // refused if it is another user's
    HistEvent event{};
    ::history(history.get(), &event, H_LOAD, history_file.c_str());
  }

  void remember(const std::string& line) const {
    if (line.find_first_not_of(" \t") == std::string::npos) return;
    HistEvent event{};
    ::history(history.get(), &event, H_ENTER, line.c_str());
    ::history(history.get(), &event, H_SAVE, history_file.c_str());
  }
};

LineEditor::LineEditor(std::filesystem::path history_file) : impl_(std::make_unique<Impl>()) {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");  // models write more than ASCII
  impl_->history_file = std::move(history_file);
  impl_->history.reset(history_init());
  impl_->editor.reset(el_init("slipstream", stdin, stdout, stderr));
  SLIP_CHECK(impl_->history && impl_->editor, "libedit does not start");
  HistEvent event{};
  ::history(impl_->history.get(), &event, H_SETSIZE, kHistoryLines);
  ::history(impl_->history.get(), &event, H_SETUNIQUE, 1);
  EditLine* editor = impl_->editor.get();
  el_set(editor, EL_CLIENTDATA, impl_.get());
  el_set(editor, EL_PROMPT, &Impl::prompt_of);
  el_set(editor, EL_GETCFN, &read_character);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(editor, EL_HIST, ::history, impl_->history.get());
  el_source(editor, nullptr);
  impl_->load_history();
}

LineEditor::~LineEditor() = default;

LineEditor::Input LineEditor::read(const std::string& prompt) {
  impl_->prompt = prompt;
  Interrupts::clear();
  el_resize(impl_->editor.get());
  // This must happen before the prompt is visible. Otherwise the terminal would consume an
  // immediate Ctrl-D and it would be lost.
  el_set(impl_->editor.get(), EL_PREP_TERM, 1);
  int n = 0;
  const char* text = el_gets(impl_->editor.get(), &n);
  if (Interrupts::happened()) {
    std::fputs("\n", stdout);
    return {.outcome = Outcome::kInterrupted};
  }
  if (text == nullptr || n <= 0) return {.outcome = Outcome::kEnd};
  std::string line(text, static_cast<std::size_t>(n));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  impl_->remember(line);
  return {.outcome = Outcome::kLine, .line = std::move(line)};
}

std::filesystem::path history_path() {
  const auto value_of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value == nullptr ? "" : value);
  };
  // The specification says that a relative path must be ignored.
  std::filesystem::path state = value_of("XDG_STATE_HOME");
  if (!state.is_absolute()) state = value_of("HOME") / ".local" / "state";
  return state / "slipstream" / "chat_history";
}

}  // namespace slipstream::chat
