#include "engine/text/vocabulary.h"

#include <llama.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>

#include "base/check.h"
#include "base/format.h"
#include "engine/text/text_limits.h"

namespace slipstream {

static_assert(kTextLimits.text_bytes_max < std::numeric_limits<std::int32_t>::max() / 2,
              "libllama counts bytes and tokens in 32 bits");

namespace {

// SuperBPE's pre-tokenizer looks ahead from each digit to the end of its number: 32,000 digits take
// half a minute. It groups three digits from the right, so that numbers cut at such groups give the
// same tokens.
constexpr std::string_view kLooksAhead = "superbpe";
constexpr std::size_t kDigitsMax = 48;
static_assert(kDigitsMax % 3 == 0);

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Cuts the text into parts without longer numbers.
std::vector<std::string_view> cut_numbers(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    for (std::size_t n_left = end - i; n_left > kDigitsMax;) {
      n_left = (n_left - 1) / kDigitsMax * kDigitsMax;
      parts.push_back(text.substr(begin, end - n_left - begin));
      begin = end - n_left;
    }
    i = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool looks_ahead_of(const llama_model* model) {
  char name[64] = {};
  const auto n = llama_model_meta_val_str(model, "tokenizer.ggml.pre", name, sizeof(name));
  return n > 0 && std::string_view(name) == kLooksAhead;
}

}  // namespace

struct Vocabulary::LazyPieces {
  bool looks_ahead = false;  // its pre-tokenizer looks ahead in numbers
  std::once_flag once;
  std::unique_ptr<const TokenPieces> pieces;
};

Vocabulary::Vocabulary(const llama_vocab* vocab, int n_tokens)
    : vocab_(vocab),
      n_tokens_(n_tokens),
      pieces_(std::make_unique<LazyPieces>()),
      special_(vocab) {}
Vocabulary::Vocabulary(Vocabulary&& other) noexcept = default;
Vocabulary& Vocabulary::operator=(Vocabulary&& other) noexcept = default;
Vocabulary::~Vocabulary() = default;

Result<Vocabulary> Vocabulary::create(const llama_model* model) {
  SLIP_CHECK(model != nullptr, "no model");
  const llama_vocab* vocab = llama_model_get_vocab(model);
  // All other functions of libllama would abort on it.
  if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
    return fail(Code::kUnsupported, "the model has no vocabulary");
  }
  const int n_tokens = llama_vocab_n_tokens(vocab);
  if (n_tokens <= 0) return fail(Code::kUnsupported, "the model's vocabulary is empty");
  Vocabulary vocabulary(vocab, n_tokens);
  vocabulary.pieces_->looks_ahead = looks_ahead_of(model);
  return vocabulary;
}

namespace {

std::vector<Token> tokenize_part(const llama_vocab* vocab, std::string_view text, bool add_special,
                                 bool parse_special) {
  const auto run = [&](std::vector<Token>& tokens) {
    return llama_tokenize(vocab, text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                          static_cast<std::int32_t>(tokens.size()), add_special, parse_special);
  };
  // A token is rarely less than a byte. If the buffer is too short, the text is tokenized twice.
  constexpr std::size_t kSpecialTokens = 8;
  std::vector<Token> tokens(text.size() + kSpecialTokens);
  std::int32_t n = run(tokens);
  if (n < 0 && n != std::numeric_limits<std::int32_t>::min()) {
    tokens.resize(static_cast<std::size_t>(-n));
    n = run(tokens);
  }
  if (n < 0) throw std::length_error("it has too many tokens to be counted");
  tokens.resize(static_cast<std::size_t>(n));
  return tokens;
}

// The tokens that begin and end every text.
struct Frame {
  std::vector<Token> begin;
  std::vector<Token> end;
};
Frame frame_of(const llama_vocab* vocab) {
  Frame frame{.begin = tokenize_part(vocab, "", true, false), .end = {}};
  const bool has_begin =
      llama_vocab_get_add_bos(vocab) || llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_WPM;
  if (has_begin || frame.begin.empty()) {
    frame.end.assign(frame.begin.begin() + (frame.begin.empty() ? 0 : 1), frame.begin.end());
    frame.begin.resize(std::min<std::size_t>(frame.begin.size(), 1));
  } else {
    frame.begin.swap(frame.end);
  }
  return frame;
}

}  // namespace

struct Vocabulary::Splitting {
  std::span<const MarkedText::Range> client;
  bool add_special = false;
  bool keeps_control_out = false;  // of text that is not a special token's name
  std::size_t n_tokens_max = std::numeric_limits<std::size_t>::max();
};

Result<std::vector<Token>> Vocabulary::split(std::string_view text,
                                             const Splitting& splitting) const {
  if (text.size() > kTextLimits.text_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a text of {} bytes is longer than the {} allowed", text.size(),
                            kTextLimits.text_bytes_max));
  }
  try {
    const Frame frame = splitting.add_special ? frame_of(vocab_) : Frame();
    std::vector<Token> tokens = frame.begin;
    std::map<Token, std::vector<Token>> spellings;
    const auto add_text = [&](std::string_view part) {
      for (const Token token : tokenize_part(vocab_, part, false, false)) {
        if (!splitting.keeps_control_out || !is_control(token)) {
          tokens.push_back(token);
          continue;
        }
        const auto [spelling, is_new] = spellings.try_emplace(token);
        if (is_new) spelling->second = spelled(token);
        tokens.append_range(spelling->second);
      }
    };
    const auto add_fragment = [&](std::string_view fragment) {
      if (fragment.empty()) return;
      if (!pieces_->looks_ahead) return add_text(fragment);
      for (const std::string_view part : cut_numbers(fragment)) add_text(part);
    };
    std::size_t at = 0;
    for (const SpecialTokens::Cut& cut : special_.find(text, splitting.client)) {
      add_fragment(text.substr(at, cut.begin - at));
      tokens.push_back(cut.token);
      at = cut.end;
      if (tokens.size() > splitting.n_tokens_max) return tokens;
    }
    add_fragment(text.substr(at));
    tokens.append_range(frame.end);
    tokens.shrink_to_fit();
    return tokens;
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "not enough memory to split the text into tokens");
  } catch (const std::exception& error) {
    return fail(Code::kInvalidArgument,
                format_text("the text could not be split into tokens: {}", error.what()));
  }
}

Result<std::vector<Token>> Vocabulary::tokenize(std::string_view text, bool add_special,
                                                bool parse_special) const {
  const MarkedText::Range whole[] = {{0, text.size()}};
  return split(text, {.client = parse_special ? std::span<const MarkedText::Range>() : whole,
                      .add_special = add_special});
}

Result<std::vector<Token>> Vocabulary::tokenize_chat(const MarkedText& prompt,
                                                     std::size_t n_tokens_max) const {
  return split(prompt.text(), {.client = prompt.client_ranges(),
                               .add_special = !has_begin(prompt),
                               .keeps_control_out = true,
                               .n_tokens_max = n_tokens_max});
}

Result<std::vector<std::vector<Token>>> Vocabulary::tokenize_chat(std::span<const MarkedText> parts,
                                                                  std::size_t n_tokens_max) const {
  std::vector<std::vector<Token>> all;
  for (const MarkedText& part : parts) {
    Result<std::vector<Token>> tokens = split(
        part.text(),
        {.client = part.client_ranges(), .keeps_control_out = true, .n_tokens_max = n_tokens_max});
    if (!tokens) return std::unexpected(tokens.error());
    all.push_back(std::move(*tokens));
  }
  if (all.empty() || has_begin(parts.front())) return all;
  const Frame frame = frame_of(vocab_);
  all.front().insert_range(all.front().begin(), frame.begin);
  all.back().append_range(frame.end);
  return all;
}

// Most templates write the beginning-of-text token themselves.
bool Vocabulary::has_begin(const MarkedText& prompt) const {
  const std::string begin = bos() ? piece(*bos(), true) : "";
  const auto client = prompt.client_ranges();
  const bool is_template = client.empty() || client.front().begin >= begin.size();
  return !begin.empty() && is_template && prompt.text().starts_with(begin);
}

std::vector<Token> Vocabulary::spelled(Token token) const {
  const std::string text = piece(token, true);
  const auto sorted = pieces().sorted();
  const auto find = [&](std::string_view part) -> std::optional<Token> {
    const auto alike = std::ranges::equal_range(
        sorted, part, {}, [this](Token other) { return pieces().piece(other); });
    for (const Token other : alike) {
      constexpr int kText = LLAMA_TOKEN_ATTR_NORMAL | LLAMA_TOKEN_ATTR_BYTE;
      if ((llama_vocab_get_attr(vocab_, other) & kText) != 0) return other;
    }
    return std::nullopt;
  };
  std::vector<Token> tokens;
  for (std::string_view rest = text; !rest.empty();) {
    std::size_t n = rest.size();
    std::optional<Token> found = find(rest);
    while (!found && n > 1) found = find(rest.substr(0, --n));
    if (found) tokens.push_back(*found);
    rest.remove_prefix(n);  // a byte without a token is left out
  }
  return tokens;
}

// In these two types, the stored text is never shorter than the bytes it stands for. Other types
// leave out what they do not know.
std::size_t token_bytes_max(const Vocabulary& vocabulary) {
  const auto type = llama_vocab_type(vocabulary.get());
  if (type != LLAMA_VOCAB_TYPE_BPE && type != LLAMA_VOCAB_TYPE_SPM)
    return kTextLimits.text_bytes_max;
  std::size_t longest = 1;
  for (Token token = 0; token < vocabulary.n_tokens(); ++token) {
    const char* text = llama_vocab_get_text(vocabulary.get(), token);
    if (text != nullptr) longest = std::max(longest, std::strlen(text));
  }
  return longest;
}

std::string Vocabulary::piece(Token token, bool special) const {
  SLIP_CHECK(contains(token), "a token outside of the vocabulary");
  const auto run = [&](std::string& bytes) {
    return llama_token_to_piece(vocab_, token, bytes.data(),
                                static_cast<std::int32_t>(bytes.size()), 0, special);
  };
  std::string bytes(std::string().capacity(), '\0');
  std::int32_t n = run(bytes);
  if (n < 0) {
    bytes.resize(static_cast<std::size_t>(-n));
    n = run(bytes);
  }
  SLIP_CHECK(n >= 0, "libllama asked for a longer buffer twice");
  bytes.resize(static_cast<std::size_t>(n));
  return bytes;
}

std::vector<Token> Vocabulary::special_tokens_in(std::string_view text) const {
  Result<std::vector<Token>> tokens = tokenize(text, false, true);
  if (!tokens) return {};
  std::erase_if(*tokens, [this](Token token) {
    constexpr int kByHand = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED;
    return (llama_vocab_get_attr(vocab_, token) & kByHand) == 0;
  });
  return *std::move(tokens);
}

bool Vocabulary::is_end(Token token) const {
  SLIP_CHECK(contains(token), "a token outside of the vocabulary");
  return llama_vocab_is_eog(vocab_, token);
}

bool Vocabulary::is_control(Token token) const {
  SLIP_CHECK(contains(token), "a token outside of the vocabulary");
  return llama_vocab_is_control(vocab_, token);
}

std::optional<Token> Vocabulary::bos() const {
  const Token token = llama_vocab_bos(vocab_);
  return contains(token) ? std::optional(token) : std::nullopt;
}

std::optional<Token> Vocabulary::eos() const {
  const Token token = llama_vocab_eos(vocab_);
  return contains(token) ? std::optional(token) : std::nullopt;
}

bool Vocabulary::adds_bos() const { return llama_vocab_get_add_bos(vocab_); }

std::optional<FillTokens> Vocabulary::fill_tokens() const {
  const auto known = [this](Token token) {
    return contains(token) ? std::optional(token) : std::nullopt;
  };
  const std::optional<Token> prefix = known(llama_vocab_fim_pre(vocab_));
  const std::optional<Token> suffix = known(llama_vocab_fim_suf(vocab_));
  const std::optional<Token> middle = known(llama_vocab_fim_mid(vocab_));
  if (!prefix || !suffix || !middle) return std::nullopt;
  return FillTokens{.prefix = *prefix,
                    .suffix = *suffix,
                    .middle = *middle,
                    .repository = known(llama_vocab_fim_rep(vocab_)),
                    .file = known(llama_vocab_fim_sep(vocab_))};
}

const TokenPieces& Vocabulary::pieces() const {
  std::call_once(pieces_->once, [this] {
    std::vector<std::string> pieces;
    std::vector<Token> ends;
    pieces.reserve(static_cast<std::size_t>(n_tokens_));
    for (Token token = 0; token < n_tokens_; ++token) {
      pieces.push_back(piece(token, true));
      if (is_end(token)) ends.push_back(token);
    }
    pieces_->pieces = std::make_unique<const TokenPieces>(std::move(pieces), std::move(ends));
  });
  return *pieces_->pieces;
}

}  // namespace slipstream
