#include "bindings/slipstream.h"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "cli/hub/find_model.h"
#include "cli/kv_choice.h"
#include "cli/version.h"
#include "engine/engine.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "server/api/json_fields.h"
#include "server/json.h"
#include "server/output/output_parser.h"
#include "server/served_model.h"
#include "server/template/model_template.h"
#include "server/turn/chat_turn.h"
#include "server/turn/completion_turn.h"
#include "server/turn/generation.h"

using slipstream::ApiError;
using slipstream::ApiResult;
using slipstream::ChatDelta;
using slipstream::Code;
using slipstream::fail;
using slipstream::Json;
using slipstream::Result;

struct slipstream_engine {
  slipstream::ServedModel model;
};

namespace {

thread_local std::string last_error;

// Runs what may throw, such as bad_alloc, on behalf of a caller who cannot catch it.
template <typename T, typename Work>
T or_else(T failed, Work work) {
  try {
    Result<T> result = work();
    if (result) return *result;
    last_error = std::move(result.error().message);
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return failed;
}

std::unexpected<slipstream::Error> refusal(const ApiError& error) {
  return fail(Code::kInvalidArgument, error.message);
}

// --- opening

struct Options {
  std::string kv = "auto";
  int n_context = 0;
  int n_parallel = 4;
  int n_threads = 0;
  std::string prefixes = {};
  std::uint64_t prefixes_bytes = std::uint64_t{8} << 30U;
};

constexpr int kContextMax = 1 << 24;
constexpr int kParallelMax = 64;
constexpr int kThreadsMax = 1024;

Result<Options> read_options(const char* text) {
  Options options;
  if (text == nullptr) return options;
  const ApiResult<Json> json = slipstream::parse_json(text);
  if (!json) return refusal(json.error());
  if (!json->is_object()) return fail(Code::kInvalidArgument, "the options must be a JSON object");
  for (const auto& [name, value] : json->items()) {
    // Unlike a request's, these are nobody else's: an unknown one is a mistake.
    if (name != "kv" && name != "context" && name != "parallel" && name != "threads" &&
        name != "prefixes" && name != "prefixes_bytes") {
      return fail(Code::kInvalidArgument,
                  slipstream::format_text("there is no option '{}'", slipstream::quotable(name)));
    }
  }
  slipstream::JsonFields fields(*json);
  const auto integer = [&](const char* name, std::int64_t min, std::int64_t max, int without) {
    return static_cast<int>(fields.integer(name, min, max).value_or(without));
  };
  options.kv = fields.text("kv").value_or(options.kv);
  options.n_context = integer("context", 0, kContextMax, options.n_context);
  options.n_parallel = integer("parallel", 1, kParallelMax, options.n_parallel);
  options.n_threads = integer("threads", 0, kThreadsMax, options.n_threads);
  options.prefixes = fields.text("prefixes").value_or("");
  if (const auto n = fields.integer("prefixes_bytes", 1, INT64_MAX)) {
    options.prefixes_bytes = static_cast<std::uint64_t>(*n);
  }
  if (fields.error()) return refusal(*fields.error());
  return options;
}

Result<slipstream_engine*> open(const char* name, const Options& options) {
  const Result<std::filesystem::path> path = slipstream::find_model(name);
  if (!path) return std::unexpected(path.error());
  const Result<std::uint64_t> available = slipstream::available_memory();
  if (!available) return std::unexpected(available.error());
  const slipstream::RunnerOptions runner = {
      .n_sequences_max = options.n_parallel,
      .speculation = {.speculates = slipstream::Speculates::kNever}};
  slipstream::WeightWish weights;
  weights.n_threads = options.n_threads;
  const Result<slipstream::KvPlan> kv =
      plan_kv(*path, {.scheme = options.kv},
              {.shape = {.n_ctx = options.n_context,
                         .n_sequences_max = runner.n_sequence_ids(),
                         .n_threads = 1}},
              {.available_bytes = *available}, weights);
  if (!kv) return std::unexpected(kv.error());
  Result<slipstream::Model> model =
      slipstream::Model::load({.path = *path,
                               .kv = kv->scheme,
                               .plugin = kv->plugin,
                               .has_products = kv->has_products,
                               .key_profile = kv->key_profile,
                               .n_cells = kv->n_context,
                               .n_sequences_max = runner.n_sequence_ids(),
                               .n_threads = options.n_threads,
                               .on_progress = {}});
  if (!model) return std::unexpected(model.error());
  Result<std::unique_ptr<slipstream::Engine>> engine =
      slipstream::Engine::start(std::move(*model), {.runner = runner,
                                                    .disk_directory = options.prefixes,
                                                    .disk_bytes_max = options.prefixes_bytes});
  if (!engine) return std::unexpected(engine.error());
  Result<slipstream::ChatTemplate> chat_template =
      chat_template_of((*engine)->model(), (*engine)->vocabulary());
  auto opened = std::make_unique<slipstream_engine>();
  opened->model.name = name;
  opened->model.engine = std::move(*engine);
  if (chat_template) {
    opened->model.chat_template =
        std::make_unique<slipstream::ChatTemplate>(std::move(*chat_template));
  }
  return opened.release();
}

// --- requests

// Passes the engine's events on.
class Listening {
 public:
  // Without a parser all output is content.
  Listening(std::unique_ptr<slipstream::OutputParser> parser, slipstream_on_event on_event,
            void* user)
      : parser_(std::move(parser)), on_event_(on_event), user_(user) {}

  // The engine may be faster than who submits.
  void set_request(slipstream::RequestId request) { submitted_.set_value(request); }

  void take(const slipstream::Event& event) {
    if (request_ == 0) request_ = submitted_.get_future().get();
    if (!parser_) {
      if (!event.text.empty()) tell(SLIPSTREAM_CONTENT, event.text);
    } else {
      tell(parser_->push(event.text));
      if (event.ending) tell(parser_->finish());
    }
    if (event.ending) tell(*event.ending);
  }

 private:
  void tell(const slipstream::ChatDeltas& deltas) {
    for (const ChatDelta& delta : deltas) {
      has_calls_ |= delta.kind == ChatDelta::Kind::kCallEnd;
      tell(kind_of(delta.kind), delta.text, delta.call_idx);
    }
  }
  static slipstream_event_kind kind_of(ChatDelta::Kind kind) {
    switch (kind) {
      case ChatDelta::Kind::kReasoning: return SLIPSTREAM_REASONING;
      case ChatDelta::Kind::kContent: return SLIPSTREAM_CONTENT;
      case ChatDelta::Kind::kCallBegin: return SLIPSTREAM_CALL_BEGIN;
      case ChatDelta::Kind::kCallArguments: return SLIPSTREAM_CALL_ARGUMENTS;
      case ChatDelta::Kind::kCallEnd: return SLIPSTREAM_CALL_END;
    }
    return SLIPSTREAM_CONTENT;
  }
  void tell(slipstream_event_kind kind, const std::string& text, int call = 0) const {
    const slipstream_event event = {.request = request_,
                                    .kind = kind,
                                    .call = call,
                                    .text = text.c_str(),
                                    .n_text_bytes = text.size(),
                                    .error = "",
                                    .n_prompt = 0,
                                    .n_cached = 0,
                                    .n_generated = 0};
    on_event_(&event, user_);
  }
  void tell(const slipstream::Ending& ending) const {
    const bool calls = has_calls_ && ending.reason == slipstream::FinishReason::kStop;
    const std::string reason(calls ? "tool_calls" : name(ending.reason));
    const slipstream_event event = {.request = request_,
                                    .kind = SLIPSTREAM_END,
                                    .call = 0,
                                    .text = reason.c_str(),
                                    .n_text_bytes = reason.size(),
                                    .error = ending.error.c_str(),
                                    .n_prompt = ending.usage.n_prompt,
                                    .n_cached = ending.usage.n_cached,
                                    .n_generated = ending.usage.n_generated};
    on_event_(&event, user_);
  }

  const std::unique_ptr<slipstream::OutputParser> parser_;
  const slipstream_on_event on_event_;
  void* const user_;
  bool has_calls_ = false;
  std::promise<slipstream::RequestId> submitted_;
  slipstream::RequestId request_ = 0;  // not known yet
};

struct Asked {
  slipstream::GenerateRequest request;
  std::unique_ptr<slipstream::OutputParser> parser;  // null: the output is text
};

Result<void> check_one(const slipstream::GenerationOptions& options) {
  if (options.n != 1)
    return fail(Code::kInvalidArgument, "'n' must be 1: ask again for another answer");
  if (options.sampling.n_top_logprobs < 0) return {};
  return fail(Code::kInvalidArgument, "log-probabilities are not passed on: leave out 'logprobs'");
}

Result<Asked> read_chat(const slipstream::ServedModel& model, Json& body) {
  if (const auto checked = check_chat(model, body); !checked) return refusal(checked.error());
  ApiResult<slipstream::ChatRequest> request = slipstream::read_chat_request(body);
  if (!request) return refusal(request.error());
  if (Result<void> one = check_one(request->options); !one) return std::unexpected(one.error());
  if (request->retrieval) {
    return fail(Code::kInvalidArgument, "'retrieval' needs the index of a server");
  }
  const slipstream::Client client;
  ApiResult<slipstream::ChatPlan> plan = plan_chat(model, *request, client);
  if (!plan) return refusal(plan.error());
  return Asked{.request = request_of(*plan, *request, 0, client),
               .parser = std::make_unique<slipstream::OutputParser>(std::move(plan->parsing))};
}

Result<Asked> read_completion(const slipstream::ServedModel& model, const Json& body) {
  ApiResult<slipstream::CompletionRequest> request = slipstream::read_completion_request(body);
  if (!request) return refusal(request.error());
  if (Result<void> one = check_one(request->options); !one) return std::unexpected(one.error());
  if (request->prompts.size() != 1 || request->echoes) {
    return fail(Code::kInvalidArgument, "'prompt' must be one text, and 'echo' is not possible");
  }
  ApiResult<std::vector<std::vector<slipstream::Token>>> prompts = take_prompts(model, *request);
  if (!prompts) return refusal(prompts.error());
  std::vector<slipstream::Token>& prompt = prompts->front();
  const ApiResult<int> n_tokens = slipstream::tokens_to_generate(
      "prompt", prompt.size(), request->options, model.engine->n_context());
  if (!n_tokens) return refusal(n_tokens.error());
  return Asked{.request = slipstream::make_request(request->options, std::move(prompt), *n_tokens,
                                                   0, slipstream::Client{}),
               .parser = nullptr};
}

Result<slipstream::RequestId> generate(slipstream_engine& engine, const char* text,
                                       slipstream_on_event on_event, void* user) {
  ApiResult<Json> body = slipstream::parse_json(text);
  if (!body) return refusal(body.error());
  if (!body->is_object()) return fail(Code::kInvalidArgument, "the request must be a JSON object");
  const bool is_chat = slipstream::member(*body, "messages") != nullptr;
  if (is_chat == (slipstream::member(*body, "prompt") != nullptr)) {
    return fail(Code::kInvalidArgument, "the request must have either 'messages' or 'prompt'");
  }
  Result<Asked> asked =
      is_chat ? read_chat(engine.model, *body) : read_completion(engine.model, *body);
  if (!asked) return std::unexpected(asked.error());
  const auto listening = std::make_shared<Listening>(std::move(asked->parser), on_event, user);
  const Result<slipstream::RequestId> id = engine.model.engine->submit(
      std::move(asked->request),
      [listening](const slipstream::Event& event) { listening->take(event); });
  if (id) listening->set_request(*id);
  return id;
}

}  // namespace

slipstream_engine* slipstream_open(const char* model, const char* options) {
  slipstream::log::set_level(slipstream::log::Level::kWarn);  // standard error is the caller's
  return or_else<slipstream_engine*>(nullptr, [&]() -> Result<slipstream_engine*> {
    if (model == nullptr) return fail(Code::kInvalidArgument, "no model is named");
    const Result<Options> read = read_options(options);
    if (!read) return std::unexpected(read.error());
    return open(model, *read);
  });
}

int64_t slipstream_generate(slipstream_engine* engine, const char* request,
                            slipstream_on_event on_event, void* user) {
  return or_else<int64_t>(-1, [&]() -> Result<int64_t> {
    if (engine == nullptr || request == nullptr || on_event == nullptr) {
      return fail(Code::kInvalidArgument, "engine, request and on_event must not be NULL");
    }
    return generate(*engine, request, on_event, user);
  });
}

void slipstream_cancel(slipstream_engine* engine, int64_t request) {
  if (engine != nullptr) engine->model.engine->cancel(request);
}

void slipstream_close(slipstream_engine* engine) { delete engine; }

const char* slipstream_last_error(void) { return last_error.c_str(); }

const char* slipstream_version(void) { return slipstream::kVersion; }
