// Flags as llama-server and vLLM spell them, for people who come from there.
//
// in_own_words() puts our spelling in the place of theirs where we have the same thing, and leaves
// out flags for what is always on. explain_unknown() says of a flag that is left over what takes its
// place, or which of ours is spelled most alike.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace slipstream {

// arguments: those of main() without the program's name. A word that is the value of an option
// stays as it is.
[[nodiscard]] std::vector<std::string> in_own_words(const CLI::App& app,
                                                    const std::vector<std::string>& arguments);

// A line for each of these words that looks like a flag; empty if none does.
[[nodiscard]] std::string explain_unknown(const CLI::App& command,
                                          const std::vector<std::string>& words);

}  // namespace slipstream
