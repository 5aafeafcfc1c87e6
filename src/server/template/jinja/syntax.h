// The syntax tree of a template: what the parser makes and the interpreter walks.
//
// Nodes are plain data with a kind. Every tree is at most template_nesting_max deep, because the
// parser and the interpreter are recursive.
//
// Threads: immutable once parsed. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

struct Expression {
  enum class Kind : std::uint8_t {
    kLiteral,    // value
    kName,       // name
    kList,       // children
    kDict,       // children: key, value, key, value, ...
    kAttribute,  // children[0].name
    kIndex,      // children[0][children[1]]
    kSlice,      // children[0][children[1]:children[2]:children[3]], each but the first may be null
    kCall,       // children[0](children[1..], named)
    kFilter,     // children[0] | name(children[1..], named)
    kTest,       // children[0] is name(children[1..])
    kUnary,      // name: "-", "+", "not"
    kBinary,     // name: the operator
    kIf,         // children[0] if children[1] else children[2], which may be null
  };
  Kind kind;
  int line;
  std::string name = {};
  Value value = {};
  std::vector<std::unique_ptr<Expression>> children = {};
  std::vector<std::pair<std::string, std::unique_ptr<Expression>>> named = {};
  int depth = 1;
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Statement;
using Block = std::vector<Statement>;

// A macro's parameter; the default may be null.
struct Parameter {
  std::string name;
  ExpressionPtr value;
};

struct Statement {
  enum class Kind : std::uint8_t {
    kText,      // text
    kOutput,    // expression
    kIf,        // branches: a null condition is else
    kFor,       // names in expression if condition: body, otherwise
    kSet,       // names = expression, or text.names[0] = expression
    kSetBlock,  // names[0] = body
    kMacro,     // text(parameters): body
    kCall,      // expression, with body as caller()
    kFilter,    // expression: a filter of null; body
    kBlock,     // body
    kBreak,
    kContinue,
  };
  Kind kind;
  int line;
  std::string text = {};
  std::vector<std::string> names = {};
  ExpressionPtr expression = nullptr;
  ExpressionPtr condition = nullptr;
  std::vector<std::pair<ExpressionPtr, Block>> branches = {};
  std::vector<Parameter> parameters = {};
  Block body = {};
  Block otherwise = {};
};

struct Macro {
  const Statement* statement;
};

[[nodiscard]] Block parse(std::string_view source);

}  // namespace slipstream::jinja
