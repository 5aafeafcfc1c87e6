"""The needle model with tokens for filling in: five that training left unused get the names that libllama looks for.

It has not learned what they mean. So it shows how a prompt is put together, and not how good a completion is.
"""

import pathlib
import struct

from serving import NEEDLE_MODEL

NAMES = {b"<|unused0|>": b"<|fim_prefix|>", b"<|unused1|>": b"<|fim_suffix|>", b"<|unused2|>": b"<|fim_middle|>",
         b"<|unused3|>": b"<|repo_name|>", b"<|unused4|>": b"<|file_sep|>"}
# Gives up as many bytes as the names take, so that everything behind the header stays where it is.
DESCRIPTION = b"Tiny chat model trained to read facts out of long contexts; a test fixture, not an assistant."


def counted(text):
    """A string as GGUF has it."""
    return struct.pack("<Q", len(text)) + text


def make_fill_model(path, names=NAMES):
    content = pathlib.Path(NEEDLE_MODEL).read_bytes()
    n_more = sum(len(new) - len(old) for old, new in names.items())
    for old, new in {**names, DESCRIPTION: DESCRIPTION[n_more:]}.items():
        assert content.count(counted(old)) == 1, old
        content = content.replace(counted(old), counted(new))
    pathlib.Path(path).write_bytes(content)
    return str(path)
