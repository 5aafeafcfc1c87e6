"""What is compared: ways to keep the KV cache, each an arm with a name.

f16 is stock llama.cpp without the plugin. A stock type (q8_0; q8_0/q4_0: keys/values) is stock
with -ctk and -ctv. turbo... is the plugin with that scheme. NAME@TAG is NAME again under another
name, so that --env can make the two differ.
"""

import dataclasses
import os
import pathlib

BASE = "f16"
STOCK_TYPES = {"f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"}
# Set in the caller's shell, these would change an arm behind its name.
FOREIGN = ("GGML_BACKEND_PATH", "GGML_TURBO_", "LLAMA_ARG_")


@dataclasses.dataclass(frozen=True)
class Arm:
    name: str
    flags: tuple[str, ...]  # for llama-bench and llama-batched-bench alike
    variables: dict[str, str]

    @property
    def has_plugin(self) -> bool:
        return "GGML_BACKEND_PATH" in self.variables

    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        return {**kept, **self.variables}


def make_arm(name: str, plugin: pathlib.Path) -> Arm:
    kind = name.split("@")[0]
    if kind.startswith("turbo"):
        if not plugin.is_file():
            raise ValueError(f"arm {name} needs the plugin, and there is no {plugin}: build it "
                             "(cmake --build --preset release) or name it with --plugin")
        return Arm(name, (), {"GGML_BACKEND_PATH": str(plugin.resolve()), "GGML_TURBO_KV": kind})
    keys, _, values = kind.partition("/")
    values = values or keys
    if not {keys, values} <= STOCK_TYPES:
        raise ValueError(f"no arm {name}: it is neither turbo... nor one of "
                         f"{', '.join(sorted(STOCK_TYPES))}")
    return Arm(name, ("-ctk", keys, "-ctv", values), {})


def make_arms(names: list[str], plugin: pathlib.Path, settings: list[str]) -> list[Arm]:
    """The arms, f16 first. Settings are [ARM:]KEY=VALUE, without ARM for all with the plugin."""
    arms = [make_arm(name, plugin) for name in dict.fromkeys([BASE, *names])]
    for setting in settings:
        words, equals, value = setting.partition("=")
        wanted, _, key = words.rpartition(":")
        matching = [arm for arm in arms if arm.name == wanted or (not wanted and arm.has_plugin)]
        if not key or not equals or not matching:
            raise ValueError(f"--env {setting}: not [ARM:]KEY=VALUE for an arm of this run")
        for arm in matching:
            arm.variables[key] = value
    return arms
