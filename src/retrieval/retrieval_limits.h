// RetrievalLimits: what an index accepts. Files come from anybody: everything that one can make
// long, deep or many has a limit here.
//
// Threads: immutable.
#pragma once

#include <chrono>
#include <cstddef>

namespace slipstream {

struct RetrievalLimits {
  // Longer files are refused. Source files are shorter; what is longer is mostly generated data.
  std::size_t file_bytes_max = std::size_t{5} << 20;
  // Documents such as PDF, before they are converted. Their text has the limit of a file.
  std::size_t document_bytes_max = std::size_t{64} << 20;
  std::size_t path_bytes_max = 4096;
  std::size_t folder_depth_max = 128;
  std::size_t files_of_project_max = 1'000'000;
  // Text of which more than this share of the lines' bytes is in lines longer than line_bytes_max
  // is data, such as a minified script.
  std::size_t line_bytes_max = 2000;

  // A chunk has about the size that a reader, or an embedding model, takes at once.
  std::size_t chunk_bytes = 1600;
  std::size_t chunk_bytes_max = 3200;
  std::size_t symbols_of_file_max = 20'000;
  std::size_t symbol_bytes_max = 200;
  // Terms longer than this, such as the lines of an encoded picture, are not found.
  std::size_t term_bytes_max = 64;

  // One query.
  std::size_t query_bytes_max = 16 << 10;
  std::size_t query_terms_max = 64;
  std::size_t results_max = 100;

  // Vectors that a query is compared with, all of one project: 400 MB of 384 numbers.
  std::size_t vectors_max = 1'000'000;
  int vector_dimensions_max = 8192;

  // A document is converted by a program of its own, within these.
  std::chrono::seconds convert_time_max{60};
  std::size_t convert_memory_bytes = std::size_t{1} << 30;
  // ctags on one file. A file that takes longer has no symbols.
  std::chrono::milliseconds outline_time_max{5000};
};

inline constexpr RetrievalLimits kRetrievalLimits{};

}  // namespace slipstream
