#include "server/attachments/attachment_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "server/attachments/attachment_limits.h"

namespace slipstream {
namespace {

using std::chrono::system_clock;

class AttachmentStoreTest : public testing::Test {
 protected:
  AttachmentStoreTest() { std::filesystem::remove_all(folder_); }
  ~AttachmentStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  AttachmentStore& store() {
    if (!store_) open({});
    return *store_;
  }
  void open(AttachmentStoreOptions options) {
    store_.reset();
    options.folder = folder_.string();
    auto opened = AttachmentStore::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }
  // Why it was refused; empty: it was not.
  std::string add(const AttachedChat& chat, const std::string& name, std::string bytes) {
    const Result<IndexedFile> added = store().add(chat, name, std::move(bytes));
    return added ? "" : added.error().message;
  }
  // Names and texts.
  std::string shown(const AttachedChat& chat) {
    Result<AttachedFiles> attached = store().files_of(chat);
    if (!attached)
      return attached.error().code == Code::kNotFound ? "none" : attached.error().message;
    std::string all;
    const Result<std::vector<IndexedFile>> files = attached->list();
    for (const IndexedFile& file : *files) all += file.path + ": " + *attached->text_of(file);
    return all;
  }
  std::string found(const AttachedChat& chat, const std::string& query) {
    Result<AttachedFiles> attached = store().files_of(chat);
    if (!attached) return "none";
    const Result<SearchAnswer> answer = attached->search({.query = query});
    std::string all;
    for (const Found& place : answer->found) all += place.path + " ";
    return all;
  }
  [[nodiscard]] int n_folders() const {
    int n = 0;
    for (const auto& item : std::filesystem::directory_iterator(folder_))
      n += item.is_directory() ? 1 : 0;
    return n;
  }

  const AttachedChat chat_{.salt = 1, .id = "one"};
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("attachments_" + std::to_string(::getpid()));

 private:
  std::unique_ptr<AttachmentStore> store_;
};

TEST_F(AttachmentStoreTest, AFileIsFoundByItsChatOnly) {
  EXPECT_EQ(shown(chat_), "none");
  EXPECT_EQ(add(chat_, "birds.txt", "The heron stands in the river.\n"), "");
  EXPECT_EQ(shown(chat_), "birds.txt: The heron stands in the river.\n");
  EXPECT_EQ(found(chat_, "heron river"), "birds.txt ");
  EXPECT_EQ(shown({.salt = 1, .id = "two"}), "none");
  EXPECT_EQ(shown({.salt = 2, .id = "one"}), "none");
  EXPECT_EQ(shown({.salt = 0, .id = "one"}), "none");
}

TEST_F(AttachmentStoreTest, AreThereAfterARestart) {
  EXPECT_EQ(add(chat_, "birds.txt", "The heron stands.\n"), "");
  const std::uint64_t n_bytes = store().room_of(1).n_bytes;
  open({});
  EXPECT_EQ(shown(chat_), "birds.txt: The heron stands.\n");
  EXPECT_EQ(shown({.salt = 2, .id = "one"}), "none");
  EXPECT_NEAR(static_cast<double>(store().room_of(1).n_bytes), static_cast<double>(n_bytes), 64e3);
}

TEST_F(AttachmentStoreTest, AFileReplacesThatOfItsName) {
  EXPECT_EQ(add(chat_, "a.txt", "old heron\n"), "");
  EXPECT_EQ(add(chat_, "b.txt", "bittern\n"), "");
  EXPECT_EQ(add(chat_, "a.txt", "new stork\n"), "");
  EXPECT_EQ(shown(chat_), "a.txt: new stork\nb.txt: bittern\n");
  EXPECT_EQ(found(chat_, "heron"), "");
  EXPECT_EQ(found(chat_, "stork"), "a.txt ");
}

TEST_F(AttachmentStoreTest, WhatIsRemovedIsGone) {
  EXPECT_EQ(add(chat_, "a.txt", "heron\n"), "");
  EXPECT_EQ(add(chat_, "b.txt", "bittern\n"), "");
  EXPECT_TRUE(store().remove(chat_, "a.txt"));
  EXPECT_EQ(shown(chat_), "b.txt: bittern\n");
  EXPECT_EQ(found(chat_, "heron"), "");
  EXPECT_EQ(store().remove(chat_, "a.txt").error().code, Code::kNotFound);
  EXPECT_EQ(store().remove_all({.salt = 2, .id = "one"}).error().code, Code::kNotFound);
  EXPECT_TRUE(store().remove(chat_, "b.txt"));
  EXPECT_EQ(shown(chat_), "none");
  EXPECT_EQ(n_folders(), 0) << "without files nothing stays";
  EXPECT_EQ(store().room_of(1).n_bytes, 0U);
  EXPECT_EQ(add(chat_, "a.txt", "heron\n"), "");
  EXPECT_TRUE(store().remove_all(chat_));
  EXPECT_EQ(shown(chat_), "none");
  EXPECT_EQ(n_folders(), 0);
}

TEST_F(AttachmentStoreTest, RefusesWhatHasNoText) {
  EXPECT_EQ(add(chat_, "a.bin", std::string("\0\1\2", 3)), "binary");
  EXPECT_NE(add(chat_, "a.txt", "").find("no text"), std::string::npos);
  EXPECT_NE(add(chat_, "a.txt", " \n\n").find("no text"), std::string::npos);
  EXPECT_NE(add(chat_, ".env", "A=1\n").find("keys or passwords"), std::string::npos);
  EXPECT_EQ(add(chat_, "notes.txt", "-----BEGIN RSA PRIVATE KEY-----\n" + std::string(60, 'A')),
            "private key");
  EXPECT_NE(add(chat_, "a.txt", std::string(std::size_t{6} << 20, ' ')).find("larger"),
            std::string::npos);
  EXPECT_NE(add(chat_, "a.pdf", "no PDF"), "");
  EXPECT_EQ(shown(chat_), "none");
  EXPECT_EQ(n_folders(), 0);
}

TEST_F(AttachmentStoreTest, NamesAndIdsAreChecked) {
  for (const char* name : {"", ".", "..", "a/b", "../a", "a\nb", "a\x7F", "\xFF\xFE"}) {
    EXPECT_NE(add(chat_, name, "text\n"), "") << name;
  }
  EXPECT_NE(add(chat_, std::string(kAttachmentLimits.name_bytes_max + 1, 'a'), "text\n"), "");
  EXPECT_EQ(add(chat_, "-rf \u202E '\"; DROP TABLE file; --.txt", "text\n"), "");
  for (const std::string& id : {std::string(), std::string(".."), std::string("a/b"),
                                std::string("a.b"), std::string("a\0b", 3), std::string(65, 'a')}) {
    EXPECT_NE(add({.salt = 1, .id = id}, "a.txt", "text\n"), "") << id;
    EXPECT_EQ(store().files_of({.salt = 1, .id = id}).error().code, Code::kInvalidArgument) << id;
    EXPECT_EQ(store().remove_all({.salt = 1, .id = id}).error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(add({.salt = 1, .id = std::string(64, 'a')}, "a.txt", "text\n"), "");
}

TEST_F(AttachmentStoreTest, AChatHasSoManyFiles) {
  for (std::size_t i = 0; i < kAttachmentLimits.files_of_chat_max; ++i) {
    ASSERT_EQ(add(chat_, "file" + std::to_string(i), "text\n"), "");
  }
  EXPECT_NE(add(chat_, "one more", "text\n").find("remove one"), std::string::npos);
  EXPECT_EQ(add(chat_, "file0", "other\n"), "") << "it replaces one";
  EXPECT_EQ(add({.salt = 1, .id = "two"}, "one more", "text\n"), "");
}

TEST_F(AttachmentStoreTest, AKeyHasAQuarterAndNothingMakesRoom) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  open({.folder = {}, .bytes_max = 8 * kMiB});
  EXPECT_EQ(store().room_of(1).n_bytes_max, 2 * kMiB);
  EXPECT_EQ(store().room_of(0).n_bytes_max, 8 * kMiB);
  std::string why;
  int n_added = 0;
  for (; n_added < 100 && why.empty(); ++n_added) {
    why = add({.salt = 1, .id = "chat" + std::to_string(n_added)}, "a.txt", "text\n");
  }
  EXPECT_NE(why.find("your files take"), std::string::npos) << why;
  EXPECT_LE(store().room_of(1).n_bytes, 2 * kMiB);
  EXPECT_EQ(shown({.salt = 1, .id = "chat0"}), "a.txt: text\n") << "the first is still there";
  EXPECT_EQ(add({.salt = 2, .id = "x"}, "a.txt", "text\n"), "") << "others have their own";
  for (Salt salt = 2; salt < 20; ++salt) {
    for (int i = 0; i < 20; ++i) {
      why = add({.salt = salt, .id = "chat" + std::to_string(i)}, "a.txt", "text\n");
    }
  }
  EXPECT_NE(why.find("of all clients"), std::string::npos) << why;
  EXPECT_TRUE(store().remove_all({.salt = 1, .id = "chat0"}));
  EXPECT_EQ(add({.salt = 1, .id = "chat1"}, "a.txt", "other\n"), "");
}

TEST_F(AttachmentStoreTest, IdleChatsAreRemoved) {
  EXPECT_EQ(add(chat_, "a.txt", "text\n"), "");
  EXPECT_EQ(store().remove_idle(system_clock::now() + std::chrono::days(29)), 0);
  EXPECT_EQ(shown(chat_), "a.txt: text\n");
  EXPECT_EQ(store().remove_idle(system_clock::now() + std::chrono::days(31)), 1);
  EXPECT_EQ(shown(chat_), "none");
  EXPECT_EQ(n_folders(), 0);
}

TEST_F(AttachmentStoreTest, OneProcessHasTheFolder) {
  (void)store();
  EXPECT_EQ(AttachmentStore::open({.folder = folder_.string()}).error().code, Code::kOverloaded);
}

TEST_F(AttachmentStoreTest, WhatWasBeingRemovedGoesAtTheStart) {
  EXPECT_EQ(add(chat_, "a.txt", "text\n"), "");
  std::filesystem::rename(folder_ / "0000000000000001" / "one", folder_ / "removed-7");
  open({});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "removed-7"));
  EXPECT_EQ(shown(chat_), "none");
}

}  // namespace
}  // namespace slipstream
