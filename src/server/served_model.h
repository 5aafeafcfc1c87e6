// ServedModel: a loaded model, under the name that clients use.
//
// It writes, with an engine, or only reads. One that writes may have a reader beside it.
//
// Threads: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "server/metrics.h"
#include "server/reading/served_reader.h"
#include "server/template/chat_template.h"

namespace slipstream {

class Rescue;
class Retrieval;

struct ServedModel {
  std::string name;
  std::unique_ptr<Engine> engine;                    // null: the model only reads
  std::unique_ptr<ChatTemplate> chat_template = {};  // null: the model is not for chats
  std::unique_ptr<ServedReader> reader = {};         // null: embeddings were not requested
  RequestMetrics* metrics = nullptr;                 // owned and set by the server
  Retrieval* retrieval = nullptr;  // as well, like the next; null: there is no index
  const Rescue* rescue = nullptr;  // null: what is longer than its window is refused
  std::string file_name = {};
  std::string system_fingerprint = {};  // of model, cache and program; empty: not known
  std::string kv_scheme = {};
  std::uint64_t kv_bytes = 0;      // 0: not known
  std::uint64_t kv_f16_bytes = 0;  // what f16 would take for the same number of tokens

  // Of what writes, or else of what reads.
  [[nodiscard]] const Vocabulary& vocabulary() const {
    return engine ? engine->vocabulary() : reader->vocabulary();
  }
  [[nodiscard]] int n_context() const {
    return engine ? engine->n_context() : reader->reader().n_tokens_max();
  }
  [[nodiscard]] const llama_model* model() const {
    return engine ? engine->model() : reader->model()->model();
  }
};

}  // namespace slipstream
