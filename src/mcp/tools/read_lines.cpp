#include <algorithm>

#include "base/format.h"
#include "mcp/cut_lines.h"
#include "mcp/mcp_limits.h"
#include "mcp/tools/tool.h"
#include "retrieval/search/indexed_file.h"

namespace slipstream {
namespace {

constexpr int kLinesUsual = 200;
constexpr int kLineMax = 100'000'000;
constexpr int kFileLettersMax = 4000;

Result<ToolAnswer> call_read_lines(CorpusView& corpus, const Json& arguments) {
  Result<Corpus::Reader> reader = corpus.reader();
  if (!reader) return std::unexpected(reader.error());
  Result<NamedFile> named = named_file(*reader, arguments);
  if (!named) return std::unexpected(named.error());
  const int first = integer_of(arguments, "first_line", 1);
  const int last = integer_of(arguments, "last_line", std::min(first, kLineMax) + kLinesUsual - 1);
  if (last < first) return fail(Code::kInvalidArgument, "'last_line' is before 'first_line'");
  Result<IndexedFile> file = find_indexed_file(reader->database(), named->project, named->path);
  if (!file && file.error().code == Code::kNotFound) {
    // It may be new.
    (void)corpus.sync(*reader, std::span(&named->project, 1));
    file = find_indexed_file(reader->database(), named->project, named->path);
  }
  if (!file) return std::unexpected(file.error());
  const Result<std::string> text = read_indexed_file(reader->database(), named->project, *file);
  if (!text) return std::unexpected(text.error());
  const Lines lines = cut_lines(*text, first, last);
  if (lines.last < first && lines.n_all > 0) {
    return fail(Code::kInvalidArgument,
                format_text("{} has only {} lines", named->path, lines.n_all));
  }
  ToolAnswer answer;
  answer.text = format_text("{}/{}:{}-{} of {} lines\n{}", named->project.root, named->path,
                            lines.first, lines.last, lines.n_all, lines.text);
  if (lines.is_cut) answer.text += "\n[cut: ask for the lines after these]\n";
  answer.json = {{"project", named->project.root},
                 {"path", named->path},
                 {"first_line", lines.first},
                 {"last_line", lines.last},
                 {"n_lines", lines.n_all},
                 {"is_cut", lines.is_cut},
                 {"text", lines.text}};
  return answer;
}

}  // namespace

Tool read_lines_tool() {
  return {
      .name = "read_lines",
      .title = "Read lines of a file",
      .description =
          format_text("Shows lines of a file of the index as they are now, at most {} at a time. "
                      "Only files that "
                      "the index has: what it refuses, such as files of secrets, is not shown.",
                      kMcpLimits.lines_max),
      .schema = object_schema(
          {{"path",
            text_schema("The file: relative to its project, or a whole path", kFileLettersMax)},
           {"project", text_schema("The project, if several have such a file", kFileLettersMax)},
           {"first_line", integer_schema("From this line", 1, kLineMax, 1)},
           {"last_line", integer_schema(format_text("To this line. Default: {} lines", kLinesUsual),
                                        1, kLineMax)}},
          Json::array({"path"})),
      .call = call_read_lines};
}

}  // namespace slipstream
