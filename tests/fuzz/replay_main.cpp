// Runs a fuzz target over the files of its corpus, so that every build without libFuzzer replays
// what fuzzing has found. Usage: TARGET_replay CORPUS_DIRECTORY
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n_bytes);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  LLVMFuzzerInitialize(&argc, &argv);
  int n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    ++n_files;
  }
  std::printf("replayed %d files\n", n_files);
  return n_files > 0 ? 0 : 1;  // an empty corpus would pass without testing anything
}
