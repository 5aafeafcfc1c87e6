# Toolchain: Debian's cross compiler for 64-bit ARM with the arm64 libraries installed beside the
# machine's own. Tests run under QEMU's user-mode emulation; QEMU_CPU, which the test presets set, says
# on which CPU.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# pkgconf would answer for the machine's own libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
