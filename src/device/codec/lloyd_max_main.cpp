// Prints the tables of codebook.cpp.
#include <cstddef>
#include <cstdio>

#include "device/codec/lloyd_max.h"

int main() {
  for (const int n_levels : {4, 8, 16}) {
    const slipstream::turbo::LloydMax book = slipstream::turbo::lloyd_max(n_levels);
    std::printf("// Mean square error %.6f.\n", book.mse);
    std::printf("constexpr std::array<float, %d> kLloydMax%d = {", n_levels, n_levels);
    for (std::size_t k = 0; k < book.centroids.size(); ++k) {
      std::printf("%s%.8fF", k == 0 ? "" : ", ", book.centroids[k]);
    }
    std::printf("};\n");
  }
  return 0;
}
