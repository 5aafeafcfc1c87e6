// SpecialTokens: finds the special tokens of a vocabulary by their names in a text.
//
// Control tokens ("<|im_end|>") are found only where text may address the model: in what the
// template wrote. Tokens that are text but were added to the vocabulary by hand ("<think>", runs of
// spaces) are found everywhere, as in libllama. A text is cut at them as libllama would cut it
// (tokenizer_st_partition), but in linear time: libllama walks a list from its beginning for each
// token it finds. If names overlap in a text, control tokens win, then the first name; in libllama
// the longest wins. No vocabulary that we know has such names.
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
  // A token and the bytes it takes from the text: its name, and white space around it if the token
  // is defined to take that, too.
  struct Cut {
    std::size_t begin;
    std::size_t end;
    Token token;
  };

  explicit SpecialTokens(const llama_vocab* vocab);

  // In order. Control tokens are found only outside the client's ranges, and only whole: a name
  // that a client began and the template ended is not one.
  [[nodiscard]] std::vector<Cut> find(std::string_view text,
                                      std::span<const MarkedText::Range> client) const;

 private:
  struct Named {
    std::string_view text;
    Token token;
  };

  // Finds names; they are sorted by their bytes.
  class Matcher {
   public:
    void add(const Named& name) { names_.push_back(name); }
    void sort();
    [[nodiscard]] bool is_empty() const { return names_.empty(); }
    // The longest name that text[at...] begins with; null if there is none.
    [[nodiscard]] const Named* longest(std::string_view text, std::size_t at) const;

   private:
    std::vector<Named> names_;
    std::array<bool, 256> starts_ = {};  // whether a name starts with this byte
  };

  // Adds the tokens whose names lie in `names`; they take white space only from `space`.
  void find(const Matcher& matcher, std::string_view text, MarkedText::Range names,
            MarkedText::Range space, std::vector<Cut>& cuts) const;

  const llama_vocab* vocab_;
  Matcher control_;
  Matcher by_hand_;
};

}  // namespace slipstream
