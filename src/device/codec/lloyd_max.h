// Lloyd-Max: the codebook of n levels with the least mean square error for a Gaussian of mean 0 and
// variance 1 (Max 1960, Lloyd 1982). It computes the constants of codebook.cpp, and the test
// compares them with it; no other part of the program calls it.
//
// Threads: pure function. Errors: none; n_levels below 2 is a bug.
#pragma once

#include <vector>

namespace slipstream::turbo {

struct LloydMax {
  std::vector<double> centroids;  // ascending, symmetric around 0
  double mse;                     // expected square error of the nearest centroid
};

LloydMax lloyd_max(int n_levels);

}  // namespace slipstream::turbo
