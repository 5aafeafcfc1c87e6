// SpecialTokens: the tokens of a vocabulary that stand in a text as they are written, and where.
//
// Control tokens ("<|im_end|>") are read where the text may speak to the model: in what the
// template wrote. Tokens that are text, only added to the vocabulary by hand ("<think>", runs of
// spaces), are read everywhere, as libllama does. A text is cut at them as libllama would cut it
// (tokenizer_st_partition), but in linear time: libllama walks a list from its beginning for each
// token it finds. Of names that overlap in a text, control tokens and then the first are taken;
// libllama takes the longest. No vocabulary that we know has such names.
//
// Threads: immutable. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "engine/text/marked_text.h"

struct llama_vocab;

namespace slipstream {

class SpecialTokens {
 public:
  // A token, and the bytes it takes from the text: those of its name, and white space around it
  // where the token is defined to take that, too.
  struct Cut {
    std::size_t begin;
    std::size_t end;
    Token token;
  };

  explicit SpecialTokens(const llama_vocab* vocab);

  // In order. Control tokens are found outside of these ranges only, and whole: one that a client
  // began and the template ended is none.
  [[nodiscard]] std::vector<Cut> find(std::string_view text,
                                      std::span<const MarkedText::Range> client) const;

 private:
  struct Named {
    std::string_view text;
    Token token;
  };

  // Of names in the order of their bytes.
  class Matcher {
   public:
    void add(const Named& name) { names_.push_back(name); }
    void sort();
    [[nodiscard]] bool is_empty() const { return names_.empty(); }
    // The longest name with which text[at...] begins; null: none.
    [[nodiscard]] const Named* longest(std::string_view text, std::size_t at) const;

   private:
    std::vector<Named> names_;
    std::array<bool, 256> starts_ = {};  // a name, by its first byte
  };

  // Adds those whose names lie in these bytes, with white space of these others.
  void find(const Matcher& matcher, std::string_view text, MarkedText::Range names,
            MarkedText::Range space, std::vector<Cut>& cuts) const;

  const llama_vocab* vocab_;
  Matcher control_;
  Matcher by_hand_;
};

}  // namespace slipstream
