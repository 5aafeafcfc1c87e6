#include "retrieval/store/database.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

// How long a connection waits for another process that writes. A writer commits every second or so.
constexpr int kBusyMilliseconds = 20'000;

Code code_of(int status) {
  switch (status & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Code::kOverloaded;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return Code::kCorrupt;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return Code::kPermission;
    case SQLITE_NOMEM: return Code::kOutOfMemory;
    case SQLITE_INTERRUPT: return Code::kCancelled;
    case SQLITE_TOOBIG:
    case SQLITE_ERROR: return Code::kInvalidArgument;
    default: return Code::kIo;
  }
}

}  // namespace

Error database_error(sqlite3* file) {
  const char* path = sqlite3_db_filename(file, "main");
  const int status = sqlite3_extended_errcode(file);
  return {code_of(status),
          format_text("the index {}: {}{}", path == nullptr ? "" : path, sqlite3_errmsg(file),
                      (status & 0xFF) == SQLITE_FULL ? ": free some space" : "")};
}

Result<bool> Statement::step() {
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  Error error = database_error(sqlite3_db_handle(statement_.get()));
  reset();
  return std::unexpected(std::move(error));
}

Result<void> Statement::run() {
  while (true) {
    const Result<bool> has_row = step();
    if (!has_row) return std::unexpected(has_row.error());
    if (*has_row) continue;
    reset();
    return {};
  }
}

std::string_view Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::span<const std::byte> Statement::bytes(int column) const {
  const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Statement::bind_one(int idx, std::string_view text) {
  // A null pointer would be NULL.
  sqlite3_bind_text64(statement_.get(), idx, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bind_one(int idx, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    sqlite3_bind_zeroblob(statement_.get(), idx, 0);
  } else {
    sqlite3_bind_blob64(statement_.get(), idx, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
}

Result<Database> Database::open(const std::string& path, Access access) {
  if (access == Access::kWrite) {
    // SQLite would create it for others to read.
    const Result<UniqueFd> created = open_file(path, O_RDWR | O_CREAT, 0600);
    if (!created) return std::unexpected(created.error());
  }
  sqlite3* file = nullptr;
  const int flags = (access == Access::kWrite ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int status = sqlite3_open_v2(path.c_str(), &file, flags, nullptr);
  Database database(file, path);
  if (status != SQLITE_OK) {
    if (file == nullptr) return fail(Code::kOutOfMemory, format_text("no memory to open {}", path));
    return fail(code_of(status), format_text("cannot open {}: {}", path, sqlite3_errmsg(file)));
  }
  sqlite3_busy_timeout(file, kBusyMilliseconds);
  // Files of others may be anything: no SQL in a schema can call functions with side effects.
  sqlite3_db_config(file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(file, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return database;
}

Result<Statement> Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(file_.get(), sql.c_str(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return std::unexpected(database_error(file_.get()));
  }
  return Statement(statement);
}

Result<void> Database::run(const std::string& sql) {
  if (sqlite3_exec(file_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return std::unexpected(database_error(file_.get()));
  }
  return {};
}

Result<std::int64_t> Database::version() {
  Result<Statement> version = prepare("PRAGMA data_version");
  if (!version) return std::unexpected(version.error());
  const Result<bool> stepped = version->step();
  if (!stepped) return std::unexpected(stepped.error());
  return version->integer(0);
}

Result<Transaction> Transaction::begin(Database& database) {
  if (Result<void> begun = database.run("BEGIN IMMEDIATE"); !begun) {
    return std::unexpected(begun.error());
  }
  return Transaction(database);
}

Result<void> Transaction::commit() {
  Result<void> committed = database_->run("COMMIT");
  if (committed) database_ = nullptr;
  return committed;
}

Transaction::~Transaction() {
  // An error may have undone it already.
  if (database_ != nullptr && sqlite3_get_autocommit(database_->handle()) == 0) {
    sqlite3_exec(database_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

}  // namespace slipstream
