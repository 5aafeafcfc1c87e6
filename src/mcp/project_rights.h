// ProjectRights: which projects of an index a client may see.
//
// The operator can name folders that belong to some clients. Others see no project that shares files
// with them. What nobody is named for, all clients see.
//
// Threads: immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

// Whether the path is the folder or below it. Both are whole paths.
[[nodiscard]] bool lies_in(std::string_view path, std::string_view folder);

class ProjectRights {
 public:
  // own: the folders of this client. others: those that belong to other clients and not to it.
  ProjectRights(std::vector<std::string> own, std::vector<std::string> others)
      : own_(std::move(own)), others_(std::move(others)) {}

  // root: of a project.
  [[nodiscard]] bool show(std::string_view root) const;

 private:
  const std::vector<std::string> own_;
  const std::vector<std::string> others_;
};

}  // namespace slipstream
