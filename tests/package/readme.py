"""The commands of README.md, as a person would type them.

As a program, inside the namespaces of a fresh root: readme.py ROOT MODEL COMMAND... runs a script there,
with a hub on loopback that has MODEL under the name that README.md pulls.
"""

import pathlib
import re
import subprocess
import sys

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests" / "hub"))
MODEL_NAME = re.compile(r"slipstream pull (\S+/(\S+)-GGUF):(\S+)")


def commands(section):
    """Of the console blocks below a heading, without prompt and output, lines joined as written."""
    text = (CHECKOUT / "README.md").read_text()
    body = re.search(rf"^## {section}\n(.*?)(?=^## )", text, flags=re.M | re.S)[1]
    blocks = re.findall(r"^```console\n(.*?)^```", body, flags=re.M | re.S)
    typed = re.findall(r"^[#$] ((?:.*\\\n)*.*)$", "".join(blocks), flags=re.M)
    assert typed, f"README.md has no commands below {section}"
    return typed


def main(model, *command):
    from hub_server import Hub, Repo
    repo, name, quant = MODEL_NAME.search((CHECKOUT / "README.md").read_text()).groups()
    hub = Hub()
    hub.repos[repo] = Repo({f"{name}-{quant}.gguf": pathlib.Path(model).read_bytes()})
    return subprocess.run([word.replace("@HUB@", hub.endpoint) for word in command],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
