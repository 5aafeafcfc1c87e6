// Database: one connection to an SQLite file, and Statement: one of its statements.
//
// Only what the index needs of SQLite, with its errors as ours.
//
//   Result<Statement> find = database.prepare("SELECT id FROM project WHERE root = ?");
//   find->bind(root);
//   Result<bool> found = find->step();   // true: there is a row
//
// Threads: thread-compatible: a connection is used by one thread at a time.
// Errors:  kIo for a disk that is full or fails, kOverloaded while another process writes, kCorrupt,
//          kPermission, kOutOfMemory; all with SQLite's message and the file's name.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slipstream {

class Statement {
 public:
  Statement() = default;  // of nothing: it must not be used
  // Binds all parameters, in order. Texts and bytes must live until the statement is reset.
  template <typename... Values>
  void bind(const Values&... values) {
    reset();
    int idx = 0;
    (bind_one(++idx, values), ...);
  }
  // Whether there is a row; its columns can be read until the next step.
  [[nodiscard]] Result<bool> step();
  // Runs it to its end.
  [[nodiscard]] Result<void> run();
  void reset() { sqlite3_reset(statement_.get()); }

  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
  }
  [[nodiscard]] double number(int column) const {
    return sqlite3_column_double(statement_.get(), column);
  }
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::span<const std::byte> bytes(int column) const;
  [[nodiscard]] bool is_null(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  void bind_one(int idx, std::int64_t value) { sqlite3_bind_int64(statement_.get(), idx, value); }
  void bind_one(int idx, int value) { sqlite3_bind_int64(statement_.get(), idx, value); }
  void bind_one(int idx, double value) { sqlite3_bind_double(statement_.get(), idx, value); }
  void bind_one(int idx, std::string_view text);
  void bind_one(int idx, const std::string& text) { bind_one(idx, std::string_view(text)); }
  void bind_one(int idx, const char* text) { bind_one(idx, std::string_view(text)); }
  void bind_one(int idx, std::span<const std::byte> bytes);
  void bind_one(int idx, std::nullptr_t) { sqlite3_bind_null(statement_.get(), idx); }

  struct Free {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Free> statement_;
};

class Database {
 public:
  enum class Access : std::uint8_t { kRead, kWrite };
  // kWrite creates the file, which only its owner can read.
  [[nodiscard]] static Result<Database> open(const std::string& path, Access access);

  [[nodiscard]] Result<Statement> prepare(const std::string& sql);
  // Runs statements that have no parameters and whose rows are not wanted.
  [[nodiscard]] Result<void> run(const std::string& sql);
  [[nodiscard]] std::int64_t last_row_id() const { return sqlite3_last_insert_rowid(file_.get()); }
  [[nodiscard]] int n_changed() const { return sqlite3_changes(file_.get()); }
  // Changes when another connection has changed the file.
  [[nodiscard]] Result<std::int64_t> version();
  // Ends the statement that runs, from any thread.
  void interrupt() { sqlite3_interrupt(file_.get()); }

  [[nodiscard]] sqlite3* handle() const { return file_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Database(sqlite3* file, std::string path) : file_(file), path_(std::move(path)) {}
  struct Close {
    void operator()(sqlite3* file) const { sqlite3_close_v2(file); }
  };
  std::unique_ptr<sqlite3, Close> file_;
  std::string path_;
};

// A transaction, undone unless it is committed.
class Transaction {
 public:
  // Begins to write: waits for other writers first.
  [[nodiscard]] static Result<Transaction> begin(Database& database);
  [[nodiscard]] Result<void> commit();
  ~Transaction();
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

// What went wrong last on the connection.
[[nodiscard]] Error database_error(sqlite3* file);

}  // namespace slipstream
