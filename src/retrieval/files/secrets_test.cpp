#include "retrieval/files/secrets.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

TEST(Secrets, FilesOfKeysAndPasswordsAreKnownByName) {
  for (const char* name : {".env",
                           ".env.local",
                           ".ENV",
                           "prod.env",
                           ".envrc",
                           ".netrc",
                           ".pgpass",
                           ".npmrc",
                           ".pypirc",
                           ".git-credentials",
                           ".htpasswd",
                           "id_rsa",
                           "id_rsa.old",
                           "id_ed25519",
                           "server.key",
                           "tls.pem",
                           "cert.p12",
                           "store.jks",
                           "vault.kdbx",
                           "credentials",
                           "credentials.json",
                           "secrets.yaml",
                           "secret.toml",
                           "client_secret_123.json",
                           "service-account-prod.json",
                           "terraform.tfstate",
                           "prod.tfvars",
                           "office.ovpn",
                           "wallet.dat",
                           "key4.db",
                           ".bash_history",
                           ".python_history",
                           "private.gpg",
                           ".dockercfg",
                           ".vault-token"}) {
    EXPECT_TRUE(is_secret_file(name)) << name;
  }
}

TEST(Secrets, OtherFilesAreRead) {
  for (const char* name : {".env.example", ".env.sample", "id_rsa.pub", "keys.cpp", "key.h",
                           "environment.py", "secretary.txt", "credentials.go", "README.md",
                           "monkey.c", "keyboard.keymap", "history.md", "env.rs", ".gitignore"}) {
    EXPECT_FALSE(is_secret_file(name)) << name;
  }
}

TEST(Secrets, FoldersOfKeysAreNotEntered) {
  for (const char* name : {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", "secrets",
                           ".password-store", ".SSH"}) {
    EXPECT_TRUE(is_secret_folder(name)) << name;
  }
  for (const char* name : {"src", "ssh", "crypto", "keys", "docker"}) {
    EXPECT_FALSE(is_secret_folder(name)) << name;
  }
}

TEST(Secrets, APrivateKeyIsFoundInAText) {
  const std::string body(64, 'A');
  for (const char* label : {"", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "}) {
    const std::string key =
        "some text\n-----BEGIN " + std::string(label) + "PRIVATE KEY-----\n" + body + "\n";
    EXPECT_TRUE(holds_private_key(key)) << label;
  }
  EXPECT_TRUE(holds_private_key("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + body));
  EXPECT_TRUE(holds_private_key(
      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0011\n\n" +
      body));
}

TEST(Secrets, CodeThatReadsKeysIsNoKey) {
  EXPECT_FALSE(holds_private_key(
      "if (line == \"-----BEGIN PRIVATE KEY-----\") {\n  return read_key(line);\n}\n"));
  EXPECT_FALSE(holds_private_key("-----BEGIN CERTIFICATE-----\n" + std::string(64, 'A')));
  EXPECT_FALSE(holds_private_key("-----BEGIN PUBLIC KEY-----\n" + std::string(64, 'A')));
  EXPECT_FALSE(holds_private_key("-----BEGIN "));
}

TEST(Secrets, TheSystemIsNoProject) {
  for (const char* root : {"/", "/etc", "/usr", "/home", "/tmp", "/proc", "/home/ann",
                           "/home/ann/.ssh", "/home/ann/.aws/x", "/srv/secrets"}) {
    EXPECT_TRUE(why_no_project(root, "/home/ann")) << root;
  }
  for (const char* root : {"/home/ann/src", "/usr/src/linux", "/tmp/work", "/srv/docs"}) {
    EXPECT_FALSE(why_no_project(root, "/home/ann")) << root;
  }
}

}  // namespace
}  // namespace slipstream
