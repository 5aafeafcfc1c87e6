// What every fuzz target is run in: little stack, and a time that grows with the input.
//
// A target is fuzz_one() in NAME_fuzz.cpp. harness.cpp is what libFuzzer and replay_main.cpp call.
#pragma once

#include <cstddef>
#include <cstdint>

// The value is of no meaning.
int fuzz_one(const std::uint8_t* data, std::size_t n_bytes);
