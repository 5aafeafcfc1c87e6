// For tests: a folder of files with an index of it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "retrieval/indexing/indexer.h"
#include "retrieval/search/searcher.h"
#include "retrieval/store/projects.h"

namespace slipstream {

class IndexTest : public testing::Test {
 protected:
  IndexTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(root());
  }
  ~IndexTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path root() const { return folder_ / "project"; }
  [[nodiscard]] std::string index_path() const { return (folder_ / "data" / "index.db").string(); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

  // Makes or updates the index of the folder.
  UpdateSummary update() {
    Result<Database> database = open_index(index_path());
    EXPECT_TRUE(database) << database.error().message;
    const Result<Project> project = add_project(*database, root().string());
    EXPECT_TRUE(project) << project.error().message;
    Indexer indexer(*database, 2);
    Result<UpdateSummary> updated = indexer.update(*project, {});
    EXPECT_TRUE(updated) << updated.error().message;
    return updated.value_or(UpdateSummary{});
  }

  SearchAnswer search(const std::string& query, SearchRequest request = {}) {
    const Result<std::unique_ptr<Searcher>> searcher = Searcher::open(index_path());
    EXPECT_TRUE(searcher) << searcher.error().message;
    request.query = query;
    const Result<SearchAnswer> answer = (*searcher)->search(request);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer.value_or(SearchAnswer{});
  }
  // The paths that a query finds, in order.
  std::vector<std::string> paths(const std::string& query) {
    std::vector<std::string> found;
    for (const Found& place : search(query).found) found.push_back(place.path);
    return found;
  }
  ProjectCounts counts() {
    Result<Database> database = open_index(index_path());
    const Result<Project> project = find_project(*database, root().string());
    return count_project(*database, project->id).value_or(ProjectCounts{});
  }

 private:
  const std::filesystem::path folder_ = std::filesystem::canonical(testing::TempDir()) /
                                        (std::string("index_test_") + std::to_string(::getpid()));
};

}  // namespace slipstream
