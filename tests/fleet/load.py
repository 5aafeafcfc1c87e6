"""Clients for the real run: conversations over HTTP, streamed and whole, and what each turn met."""

import asyncio
import dataclasses
import json
import random
import re
import time

import replicas

HAYSTACK = (replicas.pathlib.Path(replicas.CONFIGURATION).parents[2]
            / "tests" / "fixtures" / "haystack.txt").read_text()
WORDS = sorted(set(re.findall(r"\b[a-z]{3,8}\b", HAYSTACK)))
REQUEST_S_MAX = 60


@dataclasses.dataclass
class Asked:
    """One request and its end."""
    conversation: int
    turn: int
    is_stream: bool
    sent_s: float
    replica: str = ""
    status: int = 0
    first_s: float = 0.0   # until the first text
    total_s: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    problem: str = ""      # "" | cut | refused | hung


def words(n, *seed):
    rng = random.Random(str(seed))
    return " ".join(rng.choice(WORDS) for _ in range(n))


async def read_chunks(reader):
    """The bytes of a chunked body; raises if it ends before its last chunk."""
    while size := int(await reader.readline() or b"x", 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readline()


async def read_events(reader):
    left = b""
    async for data in read_chunks(reader):
        *events, left = (left + data).split(b"\n\n")
        for event in events:
            if event.startswith(b"data: {"):
                yield json.loads(event[6:])


async def read_head(reader):
    status = int((await reader.readline()).split()[1])
    headers = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers


def count_usage(asked, usage):
    asked.prompt_tokens = usage["prompt_tokens"]
    asked.cached_tokens = usage["prompt_tokens_details"]["cached_tokens"]


async def read_answer(reader, asked, started):
    """The text; fills in what is measured."""
    asked.status, headers = await read_head(reader)
    asked.replica = headers.get("x-replica", "")
    if asked.is_stream and asked.status == 200:
        text, is_whole = "", False
        async for event in read_events(reader):
            if "error" in event:
                raise ValueError(str(event["error"]))
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                is_whole = is_whole or choice["finish_reason"] is not None
            if text and not asked.first_s:
                asked.first_s = time.monotonic() - started
            if event.get("usage"):
                count_usage(asked, event["usage"])
        if not is_whole:
            raise ValueError("no end")
        return text
    body = json.loads(await reader.readexactly(int(headers["content-length"])))
    if asked.status != 200:
        asked.problem = "refused"
        return ""
    asked.first_s = time.monotonic() - started
    count_usage(asked, body["usage"])
    return body["choices"][0]["message"]["content"]


async def ask(port, messages, n_tokens, asked):
    """One request, to its end or the limit on time."""
    body = json.dumps({"messages": messages, "max_tokens": n_tokens, "ignore_eos": True, "temperature": 0,
                       "stream": asked.is_stream,
                       **({"stream_options": {"include_usage": True}} if asked.is_stream else {})})
    started = time.monotonic()
    text, writer = "", None
    try:
        async with asyncio.timeout(REQUEST_S_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
            writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         f"Authorization: Bearer {replicas.KEY}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
                         .encode())
            text = await read_answer(reader, asked, started)
    except TimeoutError:
        asked.problem = "hung"
    except (OSError, EOFError, ValueError, IndexError):
        asked.problem = "cut"
    finally:
        if writer:
            writer.close()
    asked.total_s = time.monotonic() - started
    return text


async def converse(port, conversation, shape, begun, results, whole_every):
    await asyncio.sleep(max(0.0, begun + conversation.start_s - time.monotonic()))
    number = conversation.number
    messages = [{"role": "system", "content": words(shape.system_size, "system", conversation.system)}]
    for i, turn in enumerate(conversation.turns):
        await asyncio.sleep(turn.think_s)
        messages.append({"role": "user", "content": words(turn.user_size, "user", number, i)})
        for _ in range(3):  # a client asks again where an answer was cut
            asked = Asked(number, i, is_stream=not whole_every or (number + i) % whole_every != 0,
                          sent_s=time.monotonic() - begun)
            results.append(asked)
            text = await ask(port, messages, turn.answer_tokens, asked)
            if not asked.problem:
                break
        messages.append({"role": "assistant", "content": text})


async def run(port, conversations, shape, whole_every=0, events=()):
    """All conversations; events: (second, function) that happen meanwhile. whole_every: of so many requests
    one is not streamed. Returns what was asked, in the order of asking."""
    begun, results = time.monotonic(), []

    async def happen(second, what):
        await asyncio.sleep(second)
        await asyncio.to_thread(what)

    await asyncio.gather(*(converse(port, conversation, shape, begun, results, whole_every)
                           for conversation in conversations),
                         *(happen(second, what) for second, what in events))
    return results
