# nix run . -- doctor
# Not tested (docs/packages.md): nixpkgs must have the llama.cpp and ggml that the plugin was made for.
{
  description = "Long contexts and big models on the machine you own, behind stock llama.cpp";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" ];
      for_each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = for_each (pkgs: {
        default = pkgs.stdenv.mkDerivation {
          pname = "slipstream";
          version = "0.1.0";
          src = self;
          # Without the web app: npm would have to reach its registry, which a build may not.
          cmakeFlags = [ "-DSLIPSTREAM_DEVELOPER_MODE=OFF" "-DSLIPSTREAM_WEB=OFF" ];
          nativeBuildInputs = with pkgs; [ cmake ninja pkg-config python3 ];
          buildInputs = with pkgs; [
            boost
            cli11
            curl
            fmt
            ggml
            lexbor
            libedit
            libgit2
            libhwy
            libstemmer
            liburing
            llama-cpp
            nlohmann_json
            openssl
            prometheus-cpp
            spdlog
            sqlite
            utf8proc
            zstd
          ];
          meta = {
            description = "Long contexts and big models behind stock llama.cpp";
            license = pkgs.lib.licenses.mit;
            mainProgram = "slipstream";
            platforms = systems;
          };
        };
      });

      devShells = for_each (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ self.packages.${pkgs.system}.default ];
          packages = with pkgs; [ gtest clang-tools nodejs shellcheck ];
        };
      });
    };
}
