#include "engine/speculation/mtp_calls.h"

#include <dlfcn.h>
#include <llama.h>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr const char* kKeepStates = "_Z26llama_set_embeddings_nextnP13llama_contextbb";
constexpr const char* kState = "_Z30llama_get_embeddings_nextn_ithP13llama_contexti";

template <typename Function>
void find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

bool is_tested_for_mtp(std::string_view llama_version) {
  return llama_version == "0.7" || llama_version.starts_with("0.7.");
}

Result<MtpCalls> find_mtp_calls() {
  if (!is_tested_for_mtp(llama_version())) {
    return fail(Code::kUnsupported,
                format_text("MTP was tested with llama.cpp 0.7, and this is {}", llama_version()));
  }
  MtpCalls calls{};
  find(kKeepStates, calls.keep_states);
  find(kState, calls.state);
  if (calls.keep_states == nullptr || calls.state == nullptr) {
    return fail(Code::kUnsupported, "this libllama does not give out the states that MTP needs");
  }
  return calls;
}

}  // namespace slipstream
