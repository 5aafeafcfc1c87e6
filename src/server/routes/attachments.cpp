#include "server/routes/attachments.h"

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "mcp/cut_lines.h"
#include "server/http/target.h"
#include "server/json.h"
#include "server/routes/routes.h"
#include "server/routes/waiting.h"
#include "server/run_on.h"

namespace slipstream {
namespace {

constexpr std::string_view kAll = "/slipstream/attachments";
constexpr std::string_view kBelow = "/slipstream/attachments/";
constexpr int kLinesUsual = 200;
constexpr int kLineMax = 100'000'000;

// What a path names.
struct Target {
  AttachedChat chat;
  std::optional<std::string> name = {};  // none: the whole chat
};

ApiResult<Target> target_of(const HttpExchange& exchange, const Client& client) {
  const std::string_view path = exchange.path();
  const std::string_view below =
      path.starts_with(kBelow) ? path.substr(kBelow.size()) : std::string_view();
  const std::size_t slash = below.find('/');
  Target target{.chat = {.salt = client.salt, .id = std::string(below.substr(0, slash))}};
  if (!is_chat_id(target.chat.id)) {
    return refuse("chat", format_text("The path has no id of a chat: 1 to {} letters, digits, '-' "
                                      "and '_' after {}",
                                      kAttachmentLimits.chat_id_bytes_max, kBelow));
  }
  if (slash == std::string_view::npos) return target;
  target.name = without_percents(below.substr(slash + 1));
  if (const std::string why = why_no_attachment_name(*target.name); !why.empty()) {
    return refuse("name", format_text("It cannot be attached: {}", why));
  }
  return target;
}

int status_of_refusal(Code code) {
  switch (code) {
    case Code::kUnsupported: return 415;  // it has no text
    case Code::kOverloaded: return 409;   // a limit: there is no use in trying again
    case Code::kIo: return 507;           // the disk is full
    default: return to_api_error(Error{.code = code, .message = {}}).status;
  }
}

ApiError refusal_of(const Error& error) {
  const bool is_of_file = error.code == Code::kUnsupported;
  return {.status = status_of_refusal(error.code),
          .message = is_of_file ? "This file cannot be attached: " + error.message : error.message,
          .code = error.code == Code::kOverloaded ? "attachments_full" : ""};
}

Json describe(const IndexedFile& file) {
  return {{"name", file.path},
          {"bytes", file.n_bytes},
          {"lines", file.n_lines},
          {"chunks", file.n_chunks}};
}

int line_of(std::string_view text, int usual) {
  int line = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
  const bool is_line =
      error == std::errc() && end == text.data() + text.size() && line >= 1 && line <= kLineMax;
  return is_line ? line : usual;
}

Result<Json> lines_of(AttachmentStore& store, const AttachedChat& chat, const std::string& name,
                      std::string_view asked) {
  Result<AttachedFiles> files = store.files_of(chat);
  if (!files) return std::unexpected(files.error());
  const Result<IndexedFile> file = files->find(name);
  if (!file) return std::unexpected(file.error());
  const Result<std::string> text = files->text_of(*file);
  if (!text) return std::unexpected(text.error());
  const int first = line_of(query_value(asked, "first_line"), 1);
  const int last = line_of(query_value(asked, "last_line"), first + kLinesUsual - 1);
  const Lines lines = cut_lines(*text, first, last);
  if (lines.last < first) {
    return fail(Code::kInvalidArgument,
                format_text("{} has only {} lines", file->path, lines.n_all));
  }
  return Json{{"name", file->path},     {"first_line", lines.first}, {"last_line", lines.last},
              {"n_lines", lines.n_all}, {"is_cut", lines.is_cut},    {"text", lines.text}};
}

Result<Json> list_of(AttachmentStore& store, const Target& target) {
  Result<AttachedFiles> attached = store.files_of(target.chat);
  if (!attached) return std::unexpected(attached.error());
  const Result<std::vector<IndexedFile>> files = attached->list();
  if (!files) return std::unexpected(files.error());
  Json all = Json::array();
  for (const IndexedFile& file : *files) all.push_back(describe(file));
  return Json{{"chat", target.chat.id}, {"files", std::move(all)}};
}

Json describe_limits(const AttachmentStore::Room& room) {
  return {{"bytes", room.n_bytes},
          {"bytes_max", room.n_bytes_max},
          {"file_bytes_max", kAttachmentLimits.file_bytes_max},
          {"files_of_chat_max", kAttachmentLimits.files_of_chat_max}};
}

ApiError too_many() {
  return {.status = 429, .message = "Too many ask for attachments now: try again soon"};
}

using AttachmentRoute = RouteAnswer (AttachmentRoutes::*)(HttpExchange&, const Client&);
RouteAnswer with_attachments(const RouteParts& parts, AttachmentRoute route, HttpExchange& exchange,
                             const Client& client) {
  if (parts.attachments == nullptr) {
    co_return std::unexpected(ApiError{
        .status = 404,
        .message = format_text("There is no {}: the server was started without --attachments",
                               exchange.path())});
  }
  co_return co_await ((*parts.attachments).*route)(exchange, client);
}

}  // namespace

RouteAnswer AttachmentRoutes::attach(HttpExchange& exchange, const Client& client) {
  const std::size_t n_max = kAttachmentLimits.file_bytes_max;
  if (const auto problem = co_await exchange.read_body(n_max)) {
    co_return std::unexpected(ApiError{
        .status = problem->status,
        .message =
            problem->status == 413
                ? format_text("The file is larger than {}: attach a part of it, or index its "
                              "folder (slipstream index add)",
                              format_bytes(n_max))
                : problem->message});
  }
  const ApiResult<Target> target = target_of(exchange, client);
  if (!target) co_return std::unexpected(target.error());
  if (!target->name) {
    co_return refuse("name", format_text("The path has no name of a file: {}CHAT/NAME", kBelow));
  }
  const Waiting waiting(n_waiting_);
  if (waiting.are_more_than(kAttachmentLimits.n_waiting_max)) co_return std::unexpected(too_many());
  const Result<IndexedFile> file = co_await run_on(reading_, [&] {
    std::string bytes = exchange.request().body();
    return store_.add(target->chat, *target->name, std::move(bytes));
  });
  if (!file) co_return std::unexpected(refusal_of(file.error()));
  (void)co_await exchange.reply({.body = dump(describe(*file))});
  co_return ApiResult<void>();
}

RouteAnswer AttachmentRoutes::show(HttpExchange& exchange, const Client& client) {
  if (exchange.path() == kAll) {
    (void)co_await exchange.reply({.body = dump(describe_limits(store_.room_of(client.salt)))});
    co_return ApiResult<void>();
  }
  const ApiResult<Target> target = target_of(exchange, client);
  if (!target) co_return std::unexpected(target.error());
  const Waiting waiting(n_waiting_);
  if (waiting.are_more_than(kAttachmentLimits.n_waiting_max)) co_return std::unexpected(too_many());
  const Result<Json> shown = co_await run_on(disk_, [&] {
    return target->name ? lines_of(store_, target->chat, *target->name, exchange.request().target())
                        : list_of(store_, *target);
  });
  if (!shown) co_return std::unexpected(refusal_of(shown.error()));
  (void)co_await exchange.reply({.body = dump(*shown)});
  co_return ApiResult<void>();
}

RouteAnswer AttachmentRoutes::remove(HttpExchange& exchange, const Client& client) {
  const ApiResult<Target> target = target_of(exchange, client);
  if (!target) co_return std::unexpected(target.error());
  const Waiting waiting(n_waiting_);
  if (waiting.are_more_than(kAttachmentLimits.n_waiting_max)) co_return std::unexpected(too_many());
  const Result<void> removed = co_await run_on(disk_, [&] {
    return target->name ? store_.remove(target->chat, *target->name)
                        : store_.remove_all(target->chat);
  });
  if (!removed) co_return std::unexpected(refusal_of(removed.error()));
  (void)co_await exchange.reply({.body = dump({{"deleted", true}})});
  co_return ApiResult<void>();
}

void add_attachment_routes(RouteTable& table, const RouteParts& parts) {
  using boost::beast::http::verb;
  const auto add = [&](verb method, std::string_view path, AttachmentRoute route) {
    table.add({.method = method,
               .path = path,
               .answer = [&parts, route](HttpExchange& exchange, const Client& client) {
                 return with_attachments(parts, route, exchange, client);
               }});
  };
  add(verb::get, kAll, &AttachmentRoutes::show);
  add(verb::post, kBelow, &AttachmentRoutes::attach);
  add(verb::get, kBelow, &AttachmentRoutes::show);
  add(verb::delete_, kBelow, &AttachmentRoutes::remove);
}

}  // namespace slipstream
