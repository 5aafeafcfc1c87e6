#include "retrieval/content/html_text.h"

#include <lexbor/html/tokenizer.h>
#include <lexbor/ns/const.h>
#include <lexbor/tag/const.h>

#include <algorithm>
#include <array>
#include <memory>

namespace slipstream {
namespace {

// Parts of a word may be in elements of these kinds.
bool is_within_words(lxb_tag_id_t tag) {
  constexpr auto kTags = std::to_array<lxb_tag_id_t>(
      {LXB_TAG_A,     LXB_TAG_ABBR, LXB_TAG_B,      LXB_TAG_BIG,  LXB_TAG_CODE, LXB_TAG_EM,
       LXB_TAG_FONT,  LXB_TAG_I,    LXB_TAG_KBD,    LXB_TAG_MARK, LXB_TAG_S,    LXB_TAG_SAMP,
       LXB_TAG_SMALL, LXB_TAG_SPAN, LXB_TAG_STRONG, LXB_TAG_SUB,  LXB_TAG_SUP,  LXB_TAG_TT,
       LXB_TAG_U,     LXB_TAG_VAR,  LXB_TAG_WBR});
  return std::ranges::contains(kTags, tag);
}

// What a reader does not see.
bool is_hidden(lxb_tag_id_t tag) {
  return tag == LXB_TAG_SCRIPT || tag == LXB_TAG_STYLE || tag == LXB_TAG_NOSCRIPT ||
         tag == LXB_TAG_TEMPLATE || tag == LXB_TAG_IFRAME || tag == LXB_TAG_SVG;
}

// Takes tokens, and writes their text so that it has as many line breaks as the source up to there.
class Reader {
 public:
  explicit Reader(std::string_view html) : html_(html) {
    text_.reserve(2 * html.size());  // enough: nothing is thrown through lexbor
  }

  void take(lxb_html_tokenizer_t* tokenizer, const lxb_html_token_t* token) {
    const std::size_t end = end_of(token);
    n_lines_ += static_cast<std::size_t>(
        std::count(html_.begin() + static_cast<std::ptrdiff_t>(at_),
                   html_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
    if (token->tag_id == LXB_TAG__TEXT) {
      if (hidden_ == LXB_TAG__UNDEF) write(token);
    } else if (token->tag_id != LXB_TAG__EM_COMMENT && token->tag_id != LXB_TAG__EM_DOCTYPE &&
               token->tag_id != LXB_TAG__END_OF_FILE) {
      take_tag(tokenizer, token);
    }
    for (; n_written_ < n_lines_; ++n_written_) text_ += '\n';
  }
  [[nodiscard]] std::string take_text() { return std::move(text_); }

 private:
  [[nodiscard]] std::size_t end_of(const lxb_html_token_t* token) const {
    const auto* begin = reinterpret_cast<const lxb_char_t*>(html_.data());
    if (token->end == nullptr || token->end < begin + at_ || token->end > begin + html_.size()) {
      return at_;
    }
    return static_cast<std::size_t>(token->end - begin);
  }

  void take_tag(lxb_html_tokenizer_t* tokenizer, const lxb_html_token_t* token) {
    const bool closes = (token->type & LXB_HTML_TOKEN_TYPE_CLOSE) != 0;
    if (closes) {
      if (token->tag_id == hidden_) hidden_ = LXB_TAG__UNDEF;
    } else {
      // Text up to the end of a script is no markup.
      lxb_html_tokenizer_set_state_by_tag(tokenizer, false, token->tag_id, LXB_NS_HTML);
      const bool has_content = (token->type & LXB_HTML_TOKEN_TYPE_CLOSE_SELF) == 0;
      if (hidden_ == LXB_TAG__UNDEF && has_content && is_hidden(token->tag_id)) {
        hidden_ = token->tag_id;
      }
    }
    if (!is_within_words(token->tag_id)) text_ += ' ';
  }

  void write(const lxb_html_token_t* token) {
    if (token->text_start == nullptr) return;
    const std::string_view text(reinterpret_cast<const char*>(token->text_start),
                                static_cast<std::size_t>(token->text_end - token->text_start));
    for (const char c : text) {
      // A line break that is written as a character reference is none in the source.
      const bool is_break = c == '\n' && n_written_ < n_lines_;
      if (is_break) ++n_written_;
      text_ += c == '\n' && !is_break ? ' ' : c;
    }
  }

  const std::string_view html_;
  std::string text_;
  std::size_t at_ = 0;                    // where the source has been read to
  std::size_t n_lines_ = 0;               // line breaks up to there
  std::size_t n_written_ = 0;             // of them
  lxb_tag_id_t hidden_ = LXB_TAG__UNDEF;  // the element that hides what is read
};

lxb_html_token_t* on_token(lxb_html_tokenizer_t* tokenizer, lxb_html_token_t* token, void* reader) {
  static_cast<Reader*>(reader)->take(tokenizer, token);
  return token;
}

struct Destroy {
  void operator()(lxb_html_tokenizer_t* tokenizer) const { lxb_html_tokenizer_destroy(tokenizer); }
};

}  // namespace

std::string html_text(std::string_view html) {
  const std::unique_ptr<lxb_html_tokenizer_t, Destroy> tokenizer(lxb_html_tokenizer_create());
  if (tokenizer == nullptr || lxb_html_tokenizer_init(tokenizer.get()) != LXB_STATUS_OK) return {};
  Reader reader(html);
  lxb_html_tokenizer_callback_token_done_set(tokenizer.get(), on_token, &reader);
  const bool is_read =
      lxb_html_tokenizer_begin(tokenizer.get()) == LXB_STATUS_OK &&
      lxb_html_tokenizer_chunk(tokenizer.get(), reinterpret_cast<const lxb_char_t*>(html.data()),
                               html.size()) == LXB_STATUS_OK;
  if (is_read) (void)lxb_html_tokenizer_end(tokenizer.get());
  return reader.take_text();
}

}  // namespace slipstream
