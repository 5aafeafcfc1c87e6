#include "engine/forecast/gguf_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "engine/forecast/test_gguf.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

class Gguf : public testing::Test {
 protected:
  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }
  Error error_of(const std::filesystem::path& path) {
    const Result<GgufModel> model = GgufModel::open(path);
    EXPECT_FALSE(model);
    return model ? Error{} : model.error();
  }

  TestFolder folder_;
};

TEST_F(Gguf, ReadsMetadataAndTensors) {
  GgufMaker maker("llama");
  maker.set("llama.block_count", 7).set("llama.list", std::vector{3, 0, 5});
  maker.matrix("b.weight", 32, 4).matrix("a.weight", 64, 2, 3, GGML_TYPE_Q8_0);
  const Result<GgufModel> model = GgufModel::open(maker.write(at("m.gguf")));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->architecture(), "llama");
  EXPECT_EQ(model->integer("%s.block_count"), 7);
  EXPECT_EQ(model->integer("general.architecture"), std::nullopt);
  EXPECT_EQ(model->integer("absent"), std::nullopt);
  EXPECT_EQ(model->integer_at("%s.list", 2), 5);
  EXPECT_EQ(model->integer_at("%s.list", 3), std::nullopt);
  EXPECT_EQ(model->integer_at("%s.block_count", 9), 7);
  EXPECT_EQ(model->array_size("%s.list"), 3U);
  EXPECT_EQ(model->array_size("%s.block_count"), 0U);
  ASSERT_NE(model->find_tensor("a.weight"), nullptr);
  EXPECT_EQ(model->find_tensor("a.weight")->n_bytes, 6 * 2 * 34U);
  EXPECT_EQ(model->find_tensor("a"), nullptr);
  EXPECT_TRUE(model->has_tensors("b."));
  EXPECT_FALSE(model->has_tensors("c"));
}

TEST_F(Gguf, AddsUpTheParts) {
  for (int part = 0; part < 3; ++part) {
    GgufMaker maker(part == 0 ? "llama" : "");
    maker.set("split.count", 3).set("split.no", part);
    maker.matrix("blk." + std::to_string(part) + ".weight", 32, 4);
    (void)maker.write(at("m-0000" + std::to_string(part + 1) + "-of-00003.gguf"));
  }
  const Result<GgufModel> model = GgufModel::open(at("m-00001-of-00003.gguf"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->files().size(), 3U);
  EXPECT_EQ(model->tensors().size(), 3U);
  EXPECT_EQ(model->find_tensor("blk.2.weight")->file_idx, 2U);

  EXPECT_EQ(error_of(at("m-00002-of-00003.gguf")).code, Code::kInvalidArgument);
  std::filesystem::remove(at("m-00003-of-00003.gguf"));
  const Error missing = error_of(at("m-00001-of-00003.gguf"));
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_THAT(missing.message, HasSubstr("m-00003-of-00003.gguf"));
  std::filesystem::rename(at("m-00001-of-00003.gguf"), at("other.gguf"));
  EXPECT_EQ(error_of(at("other.gguf")).code, Code::kInvalidArgument);
}

TEST_F(Gguf, RefusesWhatIsNoModel) {
  EXPECT_EQ(error_of(at("absent")).code, Code::kNotFound);
  EXPECT_EQ(error_of(folder_.path()).code, Code::kInvalidArgument);
  std::ofstream(at("text")) << "GGML, but not quite";
  EXPECT_EQ(error_of(at("text")).code, Code::kInvalidArgument);
  std::ofstream(at("empty")) << "";
  EXPECT_EQ(error_of(at("empty")).code, Code::kInvalidArgument);
  std::ofstream(at("magic")) << "GGUF";
  EXPECT_EQ(error_of(at("magic")).code, Code::kCorrupt);
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(at("pipe")).code, Code::kInvalidArgument) << "and does not wait for a writer";
  EXPECT_EQ(error_of(GgufMaker("").write(at("nameless"))).code, Code::kCorrupt);
}

TEST_F(Gguf, RefusesAFileThatIsCutOff) {
  const std::filesystem::path path =
      GgufMaker("llama").matrix("a.weight", 64, 64).write(at("m.gguf"));
  ASSERT_TRUE(GgufModel::open(path));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_EQ(error_of(path).code, Code::kCorrupt);
  EXPECT_THAT(error_of(path).message, HasSubstr("a.weight"));
}

}  // namespace
}  // namespace slipstream
