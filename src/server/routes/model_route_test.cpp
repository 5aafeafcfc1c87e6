// Tests requests for a model that is still being loaded.
#include "server/routes/model_route.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "engine/model/model.h"
#include "server/api_server.h"
#include "server/http/raw_client.h"

namespace slipstream {
namespace {

using namespace std::chrono_literals;

Result<std::unique_ptr<ServedModel>> load_needle() {
  const RunnerOptions runner{.n_sequences_max = 2, .n_prefixes_max = 4};
  Result<Model> model = Model::load({.path = NEEDLE_MODEL,
                                     .plugin = {},
                                     .n_cells = 512,
                                     .n_sequences_max = runner.n_sequence_ids(),
                                     .n_threads = 1,
                                     .on_progress = {}});
  if (!model) return std::unexpected(model.error());
  Result<std::unique_ptr<Engine>> engine = Engine::start(std::move(*model), {.runner = runner});
  if (!engine) return std::unexpected(engine.error());
  Result<ChatTemplate> chat_template =
      ChatTemplate::create("{% for m in messages %}{{ m.content }}{% endfor %}", "", "");
  if (!chat_template) return std::unexpected(chat_template.error());
  return std::make_unique<ServedModel>(
      ServedModel{.name = "slow",
                  .engine = std::move(*engine),
                  .chat_template = std::make_unique<ChatTemplate>(std::move(*chat_template))});
}

// A server whose only model is loaded when the test says so.
class SlowModel : public testing::Test {
 protected:
  SlowModel() {
    ApiServerOptions options;
    options.http.port = 0;
    options.http.silence_max = 20ms;
    options.api_keys = {"k"};
    ModelPoolOptions models;
    models.models.push_back({.name = "slow", .load = [this](const std::stop_token& /*stop*/) {
                               return may_load_.get_future().get() ? load_needle()
                                                                   : fail(Code::kIo, "no disk");
                             }});
    Result<std::unique_ptr<ApiServer>> started = ApiServer::start(options, std::move(models));
    if (started) server_ = std::move(*started);
  }
  ~SlowModel() override {
    if (!has_settled_) settle(false);
  }

  void settle(bool is_loaded) {
    has_settled_ = true;
    may_load_.set_value(is_loaded);
  }

  [[nodiscard]] RawClient ask(std::string_view path, const std::string& body,
                              std::string_view key = "k") const {
    const std::string address = server_->address();
    RawClient client(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    client.send(
        format_text("POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n"
                    "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
                    path, key, body.size(), body));
    return client;
  }

  std::unique_ptr<ApiServer> server_;

 private:
  std::promise<bool> may_load_;
  bool has_settled_ = false;
};

std::size_t n_times(std::string_view part, std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++n;
  }
  return n;
}

// Reads until `part` has come n times. Returns all that was read.
std::string read_until(const RawClient& client, std::string_view part, std::size_t n) {
  std::string text;
  while (n_times(part, text) < n) {
    const std::string more = client.read("\r\n");
    if (more.empty()) break;
    text += more;
  }
  return text;
}

struct Api {
  std::string_view path;
  std::string_view body;   // the fields of a request; more are added
  std::string_view ping;   // a part of the ping event
  std::string_view error;  // a part of the error event
  std::string_view end;    // a part of the last event of a successful stream
};

constexpr std::string_view kMessages =
    R"("messages":[{"role":"user","content":"amber"}],"max_tokens":2)";
const Api kApis[] = {
    {.path = "/v1/chat/completions",
     .body = kMessages,
     .ping = R"("delta":{},"logprobs":null,"finish_reason":null)",
     .error = R"(data: {"error":{)",
     .end = "[DONE]"},
    {.path = "/v1/completions",
     .body = R"("prompt":"amber","max_tokens":2)",
     .ping = R"("text":"","logprobs":null,"finish_reason":null)",
     .error = R"(data: {"error":{)",
     .end = "[DONE]"},
    {.path = "/v1/messages",
     .body = kMessages,
     .ping = "event: ping",
     .error = "event: error\ndata: {\"type\":\"error\"",
     .end = "event: message_stop"},
    {.path = "/v1/responses",
     .body = R"("input":"amber","max_output_tokens":2)",
     .ping = "event: response.in_progress",
     .error = "event: response.failed",
     .end = "event: response.incomplete"},
};

std::string streamed(const Api& api, std::string_view model = "slow") {
  return format_text(R"({{"model":"{}","stream":true,{}}})", model, api.body);
}

TEST_F(SlowModel, StreamsBeginBeforeItIsLoadedAndGoOnWithIt) {
  ASSERT_TRUE(server_);
  std::vector<RawClient> clients;
  std::vector<std::string> texts;
  for (const Api& api : kApis) clients.push_back(ask(api.path, streamed(api)));
  for (std::size_t i = 0; i < std::size(kApis); ++i) {
    texts.push_back(read_until(clients[i], kApis[i].ping, 3));
    EXPECT_TRUE(texts[i].starts_with("HTTP/1.1 200 OK\r\n")) << texts[i];
    EXPECT_TRUE(texts[i].contains("Content-Type: text/event-stream\r\n")) << texts[i];
    EXPECT_GE(n_times(kApis[i].ping, texts[i]), 3U) << texts[i];
  }
  settle(true);
  for (std::size_t i = 0; i < std::size(kApis); ++i) {
    texts[i] += clients[i].read();
    EXPECT_EQ(n_times(kApis[i].end, texts[i]), 1U) << texts[i];
    EXPECT_EQ(n_times(kApis[i].error, texts[i]), 0U) << texts[i];
    EXPECT_EQ(n_times("HTTP/1.1", texts[i]), 1U) << texts[i];
  }
}

// OpenAI's clients join the events of one id, and need the events of a response in order.
TEST_F(SlowModel, WhatComesBeforeAndAfterIsOneAnswer) {
  ASSERT_TRUE(server_);
  const Api& chat = kApis[0];
  const Api& responses = kApis[3];
  const RawClient chat_client = ask(chat.path, streamed(chat));
  const RawClient responses_client = ask(responses.path, streamed(responses));
  std::string chunks = read_until(chat_client, chat.ping, 2);
  std::string events = read_until(responses_client, responses.ping, 3);
  settle(true);
  chunks += chat_client.read();
  events += responses_client.read();

  const std::size_t id_at = chunks.find(R"("id":")");
  ASSERT_NE(id_at, std::string::npos) << chunks;
  const std::string id = chunks.substr(id_at, chunks.find(',', id_at) - id_at);
  EXPECT_EQ(n_times(id, chunks), n_times(R"("id":")", chunks)) << chunks;
  EXPECT_EQ(n_times("event: response.created", events), 1U) << events;
  const std::size_t n_events = n_times("\"sequence_number\":", events);
  for (std::size_t i = 0, at = 0; i < n_events; ++i) {
    at = events.find(format_text("\"sequence_number\":{},", i), at);
    ASSERT_NE(at, std::string::npos) << i << " of " << events;
  }
  const std::size_t response_at = events.find(R"("id":"resp)");
  ASSERT_NE(response_at, std::string::npos) << events;
  const std::string response =
      events.substr(response_at, events.find(',', response_at) - response_at);
  EXPECT_EQ(n_times(response, events), n_times(R"("id":"resp)", events)) << events;
}

TEST_F(SlowModel, ALoadThatFailsIsAnErrorOfTheStream) {
  ASSERT_TRUE(server_);
  std::vector<RawClient> clients;
  for (const Api& api : kApis) clients.push_back(ask(api.path, streamed(api)));
  for (std::size_t i = 0; i < std::size(kApis); ++i) {
    (void)read_until(clients[i], kApis[i].ping, 2);
  }
  settle(false);
  for (std::size_t i = 0; i < std::size(kApis); ++i) {
    const std::string rest = clients[i].read();
    EXPECT_EQ(n_times(kApis[i].error, rest), 1U) << rest;
    EXPECT_TRUE(rest.contains("cannot be used now: no disk")) << rest;
    EXPECT_TRUE(rest.ends_with("0\r\n\r\n")) << rest;
  }
}

TEST_F(SlowModel, WhatIsWrongWithARequestIsFoundBeforeItsHead) {
  ASSERT_TRUE(server_);
  for (const Api& api : kApis) {
    EXPECT_TRUE(ask(api.path, streamed(api), "x").read().starts_with("HTTP/1.1 401 ")) << api.path;
    EXPECT_TRUE(ask(api.path, streamed(api, "other")).read().starts_with("HTTP/1.1 404 "))
        << api.path;
    EXPECT_TRUE(ask(api.path, R"({"stream":true})").read().starts_with("HTTP/1.1 400 "))
        << api.path;
  }
}

// Only the model knows how much fits.
TEST_F(SlowModel, WhatOnlyTheModelKnowsIsAnErrorOfTheStream) {
  ASSERT_TRUE(server_);
  const std::string body =
      format_text(R"({{"model":"slow","stream":true,"max_tokens":2,"messages":[{{"role":"user",)"
                  R"("content":"{}"}}]}})",
                  std::string(8192, 'x'));
  const RawClient client = ask("/v1/messages", body);
  (void)read_until(client, "event: ping", 1);
  settle(true);
  const std::string rest = client.read();
  EXPECT_TRUE(rest.contains("event: error")) << rest;
  EXPECT_TRUE(rest.contains("invalid_request_error")) << rest;
}

TEST_F(SlowModel, AnAnswerThatIsNotStreamedWaits) {
  ASSERT_TRUE(server_);
  const RawClient client = ask("/v1/messages", format_text("{{{}}}", kMessages));
  std::this_thread::sleep_for(100ms);
  settle(false);
  EXPECT_TRUE(client.read().starts_with("HTTP/1.1 529 "));
}

}  // namespace
}  // namespace slipstream
