#include "trial.h"

#include <algorithm>
#include <ranges>

#include "base/format.h"
#include "bench/quality/asker.h"
#include "bench/quality/hay.h"
#include "bench/quality/plain_text.h"
#include "server/recall/conversation_search.h"
#include "server/template/model_template.h"
#include "watched_model.h"

namespace slipstream::evictions {
namespace {

using quality::Needle;

// "It is amber lantern." takes ten. What is longer is no answer.
constexpr int kAnswerTokensMax = 24;
// Beside a text and what comes back: the template, the question and an answer.
constexpr int kRoomForAnswer = 128;

// The text is searched as a conversation of short turns, which is what rescue is for.
constexpr int kLinesOfTurn = 3;

// What the product writes above what comes back (server/recall/rescue.cpp).
constexpr std::string_view kHeading = "From earlier in this conversation:\n";

// Tokens that may come back, as in the product for a window of the size of the text.
int recalled_max(int depth) { return std::max(depth / 16, std::min(256, depth / 8)); }

// A text, and what is asked about it.
struct AskedText {
  std::string body;
  std::vector<const Needle*> needles;
};

std::string question_of(const Needle& needle) {
  return needle.text.substr(needle.text.rfind('\n') + 1);
}

std::vector<AskedText> by_text(std::span<const Needle> needles) {
  std::vector<AskedText> texts;
  for (const Needle& needle : needles) {
    const std::string body = needle.text.substr(0, needle.text.rfind('\n') + 1);
    if (texts.empty() || texts.back().body != body) texts.push_back({.body = body, .needles = {}});
    texts.back().needles.push_back(&needle);
  }
  return texts;
}

class Trial {
 public:
  Trial(const TrialOptions& options, WatchedModel& model, ChatTemplate chat_template,
        std::span<const Token> hay, const std::function<void(double)>& on_progress)
      : options_(options),
        model_(model),
        template_(std::move(chat_template)),
        hay_(hay),
        on_progress_(on_progress) {}

  Result<std::vector<Answered>> run() {
    const std::vector<Needle> needles = quality::make_needles(
        kTrialKinds, options_.depths, options_.n_texts, quality::hay_of(model_.vocabulary(), hay_));
    double n_work = 0;
    double n_done = 0;
    const std::vector<AskedText> texts = by_text(needles);
    for (const AskedText& text : texts) n_work += text.needles.front()->depth;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (const auto tried = try_text(texts[i], static_cast<unsigned>(i)); !tried) {
        return std::unexpected(tried.error());
      }
      on_progress_((n_done += texts[i].needles.front()->depth) / n_work);
    }
    return std::move(answered_);
  }

 private:
  Result<void> try_text(const AskedText& text, unsigned seed) {
    const Result<std::vector<Token>> begin = tokens_before_question(text.body);
    if (!begin) return std::unexpected(begin.error());
    const Result<AttentionRecord> record = model_.read_recording(*begin);
    if (!record) return std::unexpected(record.error());
    if (const auto asked = ask_all(text, {}, 0, text.body, *begin, nullptr); !asked) return asked;
    for (const int n_kept : options_.kept_tokens) {
      if (static_cast<std::size_t>(n_kept) >= begin->size()) continue;
      for (const Policy policy : options_.policies) {
        for (const Unit unit : {Unit::kCell, Unit::kHead}) {
          // These have no scores by which heads could differ.
          if (unit == Unit::kHead && policy <= Policy::kRandom) continue;
          const Kept kept = keep(policy, unit, *record, static_cast<std::size_t>(n_kept), seed);
          const Arm arm{.kind = Arm::Kind::kPolicy, .policy = policy, .unit = unit};
          const auto asked = ask_all(text, arm, n_kept, text.body, *begin, &kept);
          if (!asked) return asked;
        }
      }
    }
    for (const int n_kept : options_.kept_tokens) {
      if (static_cast<std::size_t>(n_kept) >= begin->size()) continue;
      if (const auto left = try_leaving(text, n_kept, *begin); !left) return left;
    }
    return {};
  }

  // The beginning of the text leaves before anything is computed.
  Result<void> try_leaving(const AskedText& text, int n_kept, const std::vector<Token>& whole) {
    std::size_t n_left_bytes = 0;
    const Result<std::vector<Token>> body = model_.vocabulary().tokenize(text.body, false, false);
    if (!body) return std::unexpected(body.error());
    const std::size_t n_dropped =
        std::min(body->size(), whole.size() - static_cast<std::size_t>(n_kept));
    for (std::size_t i = 0; i < n_dropped; ++i) {
      n_left_bytes += model_.vocabulary().piece((*body)[i], false).size();
    }
    const std::string rest = text.body.substr(n_left_bytes);
    const Result<std::vector<Token>> begin = tokens_before_question(rest);
    if (!begin) return std::unexpected(begin.error());
    if (const auto read = model_.read(*begin); !read) return read;
    AskedText asked = text;
    asked.body = rest;
    return ask_all(asked, {.kind = Arm::Kind::kLeave}, n_kept, text.body.substr(0, n_left_bytes),
                   *begin, nullptr);
  }

  // Asks everything about a text that was read, with and without what rescue finds in `searched`.
  Result<void> ask_all(const AskedText& text, const Arm& arm, int n_kept,
                       const std::string& searched, std::span<const Token> begin,
                       const Kept* kept) {
    for (const bool is_rescued : options_.rescued) {
      // Rescue is for whole cells only: no cache can give a head cells of its own.
      if (is_rescued && arm.unit == Unit::kHead) continue;
      for (const Needle* needle : text.needles) {
        std::string question = question_of(*needle);
        const std::size_t n_asked = question.size();
        if (is_rescued) question = rescue(searched, question, needle->depth);
        const Result<std::vector<Token>> prompt = tokens_of(text.body + question);
        if (!prompt) return std::unexpected(prompt.error());
        if (!std::ranges::starts_with(*prompt, begin)) {
          return fail(Code::kUnsupported, "the question changes the tokens of the text before it");
        }
        const Result<std::string> answer =
            model_.answer(std::span(*prompt).subspan(begin.size()), kept, kAnswerTokensMax);
        if (!answer) return std::unexpected(answer.error());
        const std::string_view recalled =
            std::string_view(question).substr(0, question.size() - n_asked);
        answered_.push_back({.depth = needle->depth,
                             .position = needle->position,
                             .arm = arm,
                             .n_kept = n_kept,
                             .is_rescued = is_rescued,
                             .is_right = quality::answers(*answer, needle->name),
                             .is_found = recalled.contains(needle->name),
                             .n_recalled = n_tokens_of(recalled)});
      }
    }
    return {};
  }

  // The question with what the product puts before it if `left` was said earlier and has left.
  [[nodiscard]] std::string rescue(const std::string& left, const std::string& question,
                                   int depth) const {
    ConversationSearch search;
    for (const auto turn : std::views::split(left, '\n') | std::views::chunk(kLinesOfTurn)) {
      search.begin_turn();
      for (const auto line : turn) {
        const std::string_view said(line);
        search.add("User", said, static_cast<std::size_t>(n_tokens_of(said)));
      }
    }
    double n_tokens = n_tokens_of(kHeading);
    std::vector<ConversationSearch::PieceId> pieces;
    for (const ConversationSearch::PieceId id : search.find(question)) {
      if (n_tokens + search.piece(id).n_tokens > recalled_max(depth)) continue;
      n_tokens += search.piece(id).n_tokens;
      pieces.push_back(id);
    }
    if (pieces.empty()) return question;
    std::ranges::sort(pieces);  // as they were said
    std::string text(kHeading);
    for (const ConversationSearch::PieceId id : pieces) text += search.piece(id).text;
    return text + question;
  }

  [[nodiscard]] int n_tokens_of(std::string_view text) const {
    const Result<std::vector<Token>> tokens = model_.vocabulary().tokenize(text, false, false);
    return tokens ? static_cast<int>(tokens->size()) : 0;
  }

  [[nodiscard]] Result<std::vector<Token>> tokens_of(const std::string& message) const {
    const Result<MarkedText> prompt = quality::prompt_of(template_, {.text = message});
    if (!prompt) return std::unexpected(prompt.error());
    return model_.vocabulary().tokenize_chat(*prompt, llama_n_ctx(model_.context()));
  }

  // Of a prompt, up to the end of the body: what two prompts have in common.
  [[nodiscard]] Result<std::vector<Token>> tokens_before_question(const std::string& body) const {
    Result<std::vector<Token>> one = tokens_of(body + "Who");
    const Result<std::vector<Token>> other = tokens_of(body + "From");
    if (!one) return one;
    if (!other) return other;
    one->erase(std::ranges::mismatch(*one, *other).in1, one->end());
    return one;
  }

  const TrialOptions& options_;
  WatchedModel& model_;
  const ChatTemplate template_;
  const std::span<const Token> hay_;
  const std::function<void(double)>& on_progress_;
  std::vector<Answered> answered_;
};

}  // namespace

std::string Arm::name() const {
  switch (kind) {
    case Kind::kAll: return "all";
    case Kind::kLeave: return "leave";
    case Kind::kPolicy: break;
  }
  return format_text("{}{}", name_of(policy), unit == Unit::kHead ? ", by head" : "");
}

Result<std::vector<Answered>> run_trial(const TrialOptions& options,
                                        const std::function<void(double done)>& on_progress) {
  if (options.depths.empty()) return fail(Code::kInvalidArgument, "no depth is given");
  for (const int n_kept : options.kept_tokens) {
    if (static_cast<std::size_t>(n_kept) < kKeptMin) {
      return fail(
          Code::kInvalidArgument,
          format_text("{} tokens are fewer than the {} that a policy needs", n_kept, kKeptMin));
    }
  }
  const Result<std::string> hay = quality::text_or_ours(options.text);
  if (!hay) return std::unexpected(hay.error());
  const int deepest = std::ranges::max(options.depths);
  Result<WatchedModel> model = WatchedModel::create(
      options.model, static_cast<std::size_t>(deepest + 2 * recalled_max(deepest) + kRoomForAnswer),
      options.n_threads);
  if (!model) return std::unexpected(model.error());
  if (static_cast<std::size_t>(deepest) > model->n_trained()) {
    return fail(Code::kInvalidArgument,
                format_text("the model was trained for {} tokens", model->n_trained()));
  }
  Result<ChatTemplate> chat_template = chat_template_of(model->model(), model->vocabulary());
  if (!chat_template) return std::unexpected(chat_template.error());
  const Result<std::vector<Token>> tokens = model->vocabulary().tokenize(*hay, true, false);
  if (!tokens) return std::unexpected(tokens.error());
  return Trial(options, *model, std::move(*chat_template), *tokens, on_progress).run();
}

}  // namespace slipstream::evictions
