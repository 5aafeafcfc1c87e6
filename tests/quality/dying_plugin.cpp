// A plugin that ends the process which loads it, to see what eval does when a scheme's process
// dies.
#include <cstdlib>

namespace {

[[gnu::constructor]] void die() { std::abort(); }

}  // namespace
