#include "retrieval/store/fts_words.h"

#include <exception>
#include <new>

#include "base/format.h"
#include "retrieval/text/words.h"

namespace slipstream {
namespace {

using OnToken = int (*)(void* context, int flags, const char* token, int n_bytes, int begin,
                        int end);

int create(void* /*context*/, const char** /*arguments*/, int /*n*/, Fts5Tokenizer** made) {
  *made = reinterpret_cast<Fts5Tokenizer*>(new (std::nothrow) Words());
  return *made == nullptr ? SQLITE_NOMEM : SQLITE_OK;
}

void destroy(Fts5Tokenizer* words) { delete reinterpret_cast<Words*>(words); }

// A query's terms stay as they are: cutting them again would stem them twice.
int tell_terms(std::string_view query, void* context, OnToken on_token) {
  std::size_t at = 0;
  while (at < query.size()) {
    const std::size_t end = std::min(query.find(' ', at), query.size());
    if (end > at) {
      const int status = on_token(context, 0, query.data() + at, static_cast<int>(end - at),
                                  static_cast<int>(at), static_cast<int>(end));
      if (status != SQLITE_OK) return status;
    }
    at = end + 1;
  }
  return SQLITE_OK;
}

int tokenize(Fts5Tokenizer* tokenizer, void* context, int flags, const char* text, int n_bytes,
             const char* /*locale*/, int /*n_locale*/, OnToken on_token) {
  const std::string_view whole(text, static_cast<std::size_t>(n_bytes));
  if ((flags & FTS5_TOKENIZE_QUERY) != 0) return tell_terms(whole, context, on_token);
  int status = SQLITE_OK;
  try {
    reinterpret_cast<Words*>(tokenizer)->cut(whole, [&](const Term& term) {
      status = on_token(context, 0, term.text.data(), static_cast<int>(term.text.size()),
                        static_cast<int>(term.begin), static_cast<int>(term.end));
      return status == SQLITE_OK;
    });
  } catch (const std::exception&) {  // memory
    return SQLITE_NOMEM;
  }
  return status;
}

}  // namespace

Result<fts5_api*> full_text_api(Database& database) {
  fts5_api* api = nullptr;
  sqlite3_stmt* select = nullptr;
  if (sqlite3_prepare_v2(database.handle(), "SELECT fts5(?1)", -1, &select, nullptr) == SQLITE_OK) {
    sqlite3_bind_pointer(select, 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
    (void)sqlite3_step(select);
  }
  sqlite3_finalize(select);
  if (api == nullptr || api->iVersion < 3) {
    return fail(Code::kUnsupported,
                format_text("SQLite {} has no full-text search, or an older one "
                            "than this program needs (FTS5 of 3.47)",
                            sqlite3_libversion()));
  }
  return api;
}

Result<void> add_words(Database& database) {
  const Result<fts5_api*> api = full_text_api(database);
  if (!api) return std::unexpected(api.error());
  fts5_tokenizer_v2 words{
      .iVersion = 2, .xCreate = create, .xDelete = destroy, .xTokenize = tokenize};
  if ((*api)->xCreateTokenizer_v2(*api, "words", nullptr, &words, nullptr) != SQLITE_OK) {
    return std::unexpected(database_error(database.handle()));
  }
  return {};
}

}  // namespace slipstream
