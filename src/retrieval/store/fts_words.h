// add_words(): lets SQLite's full-text search (FTS5) cut texts with Words.
//
// The tokenizer has the name "words". Texts of documents are cut by Words. Texts of queries are
// terms already, with a space between them, as Searcher makes them.
//
// Threads: as the connection. Errors: kUnsupported if this SQLite has no FTS5.
#pragma once

#include "retrieval/store/database.h"

namespace slipstream {

[[nodiscard]] Result<void> add_words(Database& database);

// What functions and tokenizers are added with.
[[nodiscard]] Result<fts5_api*> full_text_api(Database& database);

}  // namespace slipstream
