"""What a hostile client sends: kinds of requests, each made as large as is asked for.

KINDS maps a name to (route, make): make(size) gives a body of about `size` bytes. Every kind makes one thing long,
deep or many. A kind that a limit refuses early stays in the list: that refusing is cheap is part of the promise.
"""

import json

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
MCP = "/mcp"
OLLAMA = "/api/chat"
ATTACHMENTS = "/slipstream/attachments/hostile/"
USER = {"role": "user", "content": "Who is amber?"}


def dumped(value):
    return json.dumps(value, separators=(",", ":")).encode()


def chat(**members):
    return dumped({"messages": [USER], "max_tokens": 1, **members})


def response(**members):
    return dumped({"input": "Who is amber?", "max_output_tokens": 1, **members})


def with_blocks(blocks, role="user", **members):
    return dumped({"messages": [USER, {"role": role, "content": blocks}], "max_tokens": 1, **members})


def with_content(text):
    return chat(messages=[{"role": "user", "content": text}])


def mcp(method, **params):
    return dumped({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def mcp_search(query):
    return mcp("tools/call", name="search", arguments={"query": query})


def retrieval(query, **members):
    return chat(messages=[{"role": "user", "content": query}], retrieval=members)


def long_chat(n):
    """Longer than the window: its oldest turns have to leave, and are searched."""
    turns = many(n, lambda i: {"role": ("user", "assistant")[i % 2], "content": f"We met person {i} today."})
    return chat(messages=[*turns[:len(turns) // 2 * 2], USER])


def raw_content(content):
    """`content` as bytes of a JSON string, valid or not."""
    return b'{"max_tokens":1,"messages":[{"role":"user","content":"' + content + b'"}]}'


def with_calls(calls, results=()):
    return chat(messages=[USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results])


def call(i, arguments):
    return {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": arguments}}


def tool(i, parameters):
    return {"type": "function", "function": {"name": f"tool{i}", "parameters": parameters}}


def schema(value):
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": value}})


def nested(depth, before, inner, after):
    return before * depth + inner + after * depth


def many(size, item):
    """Items until they are about `size` bytes."""
    n = max(1, size // (len(dumped(item(10**6))) + 1))
    return [item(i) for i in range(n)]


def members(size, value=0):
    return {f"k{i}": value for i in range(max(1, size // 12))}


def reference_chain(size):
    n = max(2, size // 40)
    definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(n)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{n}": {"type": "string"}}}


def repeated(text):
    return lambda size: with_content(text * max(1, size // len(text.encode())))


KINDS = {
    # Nesting.
    "nested JSON": (CHAT, lambda n: b'{"messages":[],"x":' + nested(n // 2, b"[", b"", b"]") + b"}"),
    "nested arguments": (CHAT, lambda n: with_calls([call(0, '{"a":' + nested(n // 2, "[", "", "]") + "}")])),
    "nested objects in arguments": (CHAT, lambda n: with_calls([call(0, nested(n // 8, '{"a":', "0", "}"))])),
    "nested schema": (CHAT, lambda n: b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"response_format":'
                      b'{"type":"json_schema","json_schema":{"name":"s","schema":'
                      + nested(n // 26, b'{"type":"array","items":', b"{}", b"}") + b"}}}"),
    "nested tool parameters": (CHAT, lambda n: b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"tools":[{"type":'
                               b'"function","function":{"name":"f","parameters":'
                               + nested(n // 26, b'{"type":"array","items":', b"{}", b"}") + b"}}]}"),
    "nested template variable": (CHAT, lambda n: b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1,"chat_template_kwargs":{"v":'
                                 + nested(min(n // 2, 60), b"[", b"0" * max(1, n - 240), b"]") + b"}}"),
    # Many.
    "many members": (CHAT, lambda n: chat(x=members(n))),
    "many members of one name": (CHAT, lambda n: b'{"messages":[{"role":"user","content":"x"}],"max_tokens":1,'
                                 + b",".join([b'"x":0'] * max(1, n // 6)) + b"}"),
    "many values": (CHAT, lambda n: chat(x=[0] * (n // 2))),
    "many members in arguments": (CHAT, lambda n: with_calls([call(0, json.dumps(members(n)))])),
    "many tools": (CHAT, lambda n: chat(tools=many(n, lambda i: tool(i, {"type": "object", "properties": {}})))),
    "many properties of a tool": (CHAT, lambda n: chat(tools=[tool(0, {
        "type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(max(1, n // 28))}})])),
    "many messages": (CHAT, lambda n: chat(messages=many(n, lambda i: {"role": "user", "content": "x"}))),
    "many messages of two roles": (CHAT, lambda n: chat(messages=many(
        n, lambda i: {"role": ("user", "assistant")[i % 2], "content": "x"}))),
    "many content parts": (CHAT, lambda n: with_content(many(n, lambda i: {"type": "text", "text": "x"}))),
    "many calls": (CHAT, lambda n: with_calls(many(n, lambda i: call(i, "{}")))),
    "many calls with results": (CHAT, lambda n: with_calls(
        many(n // 2, lambda i: call(i, "{}")),
        many(n // 2, lambda i: {"role": "tool", "tool_call_id": f"c{i}", "content": "x"}))),
    "many stop texts": (CHAT, lambda n: chat(stop=many(n, lambda i: f"stop {i}"))),
    "many stop tokens": (CHAT, lambda n: chat(stop_token_ids=many(n, lambda i: i % 500))),
    "long stop text": (CHAT, lambda n: chat(stop=["x" * n])),
    "many biases": (CHAT, lambda n: chat(logit_bias={str(i): 1 for i in range(max(1, n // 9))})),
    "many breakers": (CHAT, lambda n: chat(dry_multiplier=1, dry_sequence_breakers=many(n, lambda i: f"b{i}"))),
    "many template variables": (CHAT, lambda n: chat(chat_template_kwargs=members(n))),
    "many unknown members of messages": (CHAT, lambda n: chat(messages=[{**USER, **members(n)}])),
    "many prompts": (COMPLETIONS, lambda n: dumped({"prompt": ["x"] * (n // 4), "max_tokens": 1})),
    "many tokens": (COMPLETIONS, lambda n: dumped({"prompt": [100] * (n // 4), "max_tokens": 1})),
    "many answers": (COMPLETIONS, lambda n: dumped({"prompt": "x" * n, "n": 64, "max_tokens": 1, "grammar": 'root ::= "x"*'})),
    "many items": (RESPONSES, lambda n: response(input=many(n, lambda i: {"role": "user", "content": "x"}))),
    "many items of one turn": (RESPONSES, lambda n: response(input=many(n, lambda i: {
        "type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]}))),
    "many calls as items": (RESPONSES, lambda n: response(input=many(n, lambda i: {
        "type": "function_call", "call_id": f"c{i}", "name": "f", "arguments": "{}"}))),
    "many references": (RESPONSES, lambda n: response(input=many(n, lambda i: {
        "type": "item_reference", "id": f"msg_{i:036x}"}))),
    "many tools that are left out": (RESPONSES, lambda n: response(tools=many(n, lambda i: {"type": "web_search"}))),
    "many functions of a namespace": (RESPONSES, lambda n: response(tools=[{
        "type": "namespace", "name": "s", "tools": many(n, lambda i: {"type": "function", "name": f"f{i}"})}])),
    "many blocks": (MESSAGES, lambda n: with_blocks(many(n, lambda i: {"type": "text", "text": "x"}))),
    "many blocks of the system": (MESSAGES, lambda n: dumped({
        "messages": [USER], "max_tokens": 1, "system": many(n, lambda i: {"type": "text", "text": "x"})})),
    "many thoughts": (MESSAGES, lambda n: with_blocks(many(n, lambda i: {
        "type": "thinking", "thinking": "x", "signature": "s"}), "assistant")),
    "many uses of tools": (MESSAGES, lambda n: with_blocks(many(n, lambda i: {
        "type": "tool_use", "id": f"c{i}", "name": "f", "input": {}}), "assistant")),
    "many results": (MESSAGES, lambda n: with_blocks(many(n, lambda i: {
        "type": "tool_result", "tool_use_id": f"c{i}", "content": "x"}))),
    "many members of an input": (MESSAGES, lambda n: with_blocks([{
        "type": "tool_use", "id": "c", "name": "f", "input": members(n)}], "assistant")),
    "many custom tools": (MESSAGES, lambda n: dumped({
        "messages": [USER], "max_tokens": 1, "tools": many(n, lambda i: {"name": f"t{i}", "input_schema": {}})})),
    "many later system messages": (MESSAGES, lambda n: dumped({
        "max_tokens": 1, "messages": [USER, *many(n, lambda i: {"role": "system", "content": "x"})]})),
    "counted text": ("/v1/messages/count_tokens", lambda n: dumped({
        "messages": [{"role": "user", "content": "word " * (n // 5)}]})),
    "many calls and results of Ollama": (OLLAMA, lambda n: dumped({"stream": False, "messages": [
        {"role": "assistant", "tool_calls": many(n // 2, lambda i: {"function": {"name": "f", "arguments": {}}})},
        *many(n // 2, lambda i: {"role": "tool", "tool_name": "f", "content": "x"})]})),
    "long text of Ollama": ("/api/generate", lambda n: dumped({
        "prompt": "word " * (n // 5), "stream": False, "options": {"num_predict": 1}})),
    "long raw text of Ollama": ("/api/generate", lambda n: dumped({
        "prompt": "word " * (n // 5), "raw": True, "stream": False, "options": {"num_predict": 1}})),
    "long time of Ollama": ("/api/generate", lambda n: dumped({"prompt": "", "keep_alive": "1h" * (n // 2)})),
    "many inputs": ("/v1/embeddings", lambda n: dumped({"input": ["x"] * (n // 4)})),
    "many tokens to text": ("/detokenize", lambda n: dumped({"tokens": [100] * (n // 4)})),
    # Long.
    "letters": (CHAT, repeated("a")),
    "digits": (CHAT, repeated("7")),
    "spaces": (CHAT, repeated(" ")),
    "lines": (CHAT, repeated("\n")),
    "punctuation": (CHAT, repeated("=")),
    "words": (CHAT, repeated("word ")),
    "combining marks": (CHAT, repeated("\u0301")),
    "other scripts": (CHAT, repeated("漢字かな한글")),
    "emoji joined": (CHAT, repeated("👩\u200d")),
    "control tokens": (CHAT, repeated("<|im_start|>")),
    "half control tokens": (CHAT, repeated("<|im_")),
    "zero bytes": (CHAT, lambda n: raw_content(b"\\u0000" * (n // 6))),
    "invalid UTF-8": (CHAT, lambda n: raw_content(b"\xff" * n)),
    "cut UTF-8": (CHAT, lambda n: raw_content(b"\xf0\x9f" * (n // 2))),
    "lone surrogates": (CHAT, lambda n: raw_content(b"\\ud800" * (n // 6))),
    "escapes": (CHAT, lambda n: raw_content(b"\\u0041" * (n // 6))),
    "quotes in arguments": (CHAT, lambda n: with_calls([call(0, json.dumps({"a": '"\\' * (n // 8)}))])),
    "long role": (CHAT, lambda n: chat(messages=[{"role": "u" * n, "content": "x"}])),
    "long tool name": (CHAT, lambda n: chat(tools=[{"type": "function", "function": {"name": "f" * n}}])),
    "long model name": (CHAT, lambda n: chat(model="m" * n)),
    "long member name": (CHAT, lambda n: b'{"' + b"k" * n + b'":0}'),
    "long metadata": (RESPONSES, lambda n: response(metadata={"a": "x" * n})),
    "long encrypted reasoning": (RESPONSES, lambda n: response(input=[
        {"type": "reasoning", "summary": [], "encrypted_content": "x" * n}, USER])),
    "long name of a call that is demanded": (RESPONSES, lambda n: response(
        tools=[{"type": "function", "name": "f"}], tool_choice={"type": "function", "name": "'messages" * (n // 9)})),
    "long id of a response": (RESPONSES, lambda n: response(previous_response_id="r" * n)),
    "long effort": (CHAT, lambda n: chat(reasoning_effort="low" * (n // 3))),
    "long message that goes on": (CHAT, lambda n: chat(
        messages=[USER, {"role": "assistant", "content": "word " * (n // 5)}], continue_final_message=True,
        add_generation_prompt=False)),
    "long text for a template": ("/apply-template", lambda n: with_content("word " * (n // 5))),
    "long text": ("/tokenize", lambda n: dumped({"prompt": "word 12 " * (n // 8)})),
    "long input": ("/v1/embeddings", lambda n: dumped({"input": "word " * (n // 5)})),
    # Numbers.
    "number of many digits": (CHAT, lambda n: b'{"messages":[],"seed":' + b"9" * n + b"}"),
    "fraction of many digits": (CHAT, lambda n: b'{"messages":[],"temperature":0.' + b"9" * n + b"}"),
    "large exponent": (CHAT, lambda n: b'{"messages":[],"temperature":1e' + b"9" * n + b"}"),
    # Grammars, patterns and schemas made to explode.
    "long grammar": (CHAT, lambda n: chat(grammar="root ::= " + "a | " * (n // 4) + '"x"\na ::= "x"')),
    "grammar with many ways": (CHAT, lambda n: chat(grammar="root ::= " + nested(min(n // 8, 100), "(", '"a"*', ")*"
                                                                              ) + "#" * max(0, n - 900))),
    "grammar that calls itself": (CHAT, lambda n: chat(grammar='root ::= root root | "x"' + " | root" * (n // 7))),
    "grammar that counts": (CHAT, lambda n: chat(grammar='root ::= ("a"{0,1000}){0,1000}' + "#" * n)),
    "pattern that explodes": (CHAT, lambda n: schema({"type": "string", "pattern": "^(a|b)*a" + "(a|b)" * (n // 5) + "$"})),
    "pattern of nested stars": (CHAT, lambda n: schema({"type": "string", "pattern": "^" + nested(n // 3, "(", "a*", ")*") + "$"})),
    "pattern that counts": (CHAT, lambda n: schema({"type": "string", "pattern": "^(a{1000}){1000}$", "title": "x" * n})),
    "choices that multiply": (CHAT, lambda n: schema({"allOf": [
        {"anyOf": [{"properties": {f"p{i}{j}": {}}} for j in range(10)]} for i in range(max(1, n // 400))]})),
    "many choices": (CHAT, lambda n: schema({"enum": many(n, lambda i: f"choice {i}")})),
    "chain of references": (CHAT, lambda n: schema(reference_chain(n))),
    "references that double": (CHAT, lambda n: schema({
        "$ref": "#/$defs/d0", "$defs": {**{f"d{i}": {"type": "object", "properties": {
            "a": {"$ref": f"#/$defs/d{i + 1}"}, "b": {"$ref": f"#/$defs/d{i + 1}"}}} for i in range(max(1, n // 96))},
            f"d{max(1, n // 96)}": {"type": "null"}}})),
    # What is attached to a chat, and what is asked of an index. The server of the suite has both.
    "attached words": (ATTACHMENTS + "a.txt", lambda n: b"word \n" * (n // 6)),
    "attached different words": (ATTACHMENTS + "b.txt", lambda n: b"".join(b"w%d\n" % i for i in range(n // 8))),
    "attached line": (ATTACHMENTS + "c.txt", lambda n: b"x" * n),
    "attached short lines": (ATTACHMENTS + "d.txt", lambda n: b"x\n" * (n // 2)),
    "attached functions": (ATTACHMENTS + "e.c", lambda n: b"".join(b"int f%d(void) { return %d; }\n" % (i, i)
                                                                  for i in range(n // 36))),
    "attached nested markup": (ATTACHMENTS + "f.html", lambda n: b"<div>" * (n // 5)),
    "attached headings": (ATTACHMENTS + "g.md", lambda n: b"# x\n" * (n // 4)),
    "attached zero bytes": (ATTACHMENTS + "h.txt", lambda n: bytes(n)),
    "attached invalid UTF-8": (ATTACHMENTS + "i.txt", lambda n: b"\xff word\n" * (n // 7)),
    "attached PDF that is none": (ATTACHMENTS + "j.pdf", lambda n: b"%PDF-1.7\n" + b"1 0 obj<<" * (n // 9)),
    "attached document that is none": (ATTACHMENTS + "k.docx", lambda n: b"PK\3\4" * (n // 4)),
    "attached under a long name": (ATTACHMENTS + "n" * 2000, lambda n: b"x\n" * (n // 2)),
    "retrieval with many words": (CHAT, lambda n: retrieval(" ".join(f"w{i}" for i in range(n // 7)))),
    "retrieval with one long word": (CHAT, lambda n: retrieval("w" * n)),
    "retrieval of a long project": (CHAT, lambda n: retrieval("x", project="/p" * (n // 2))),
    "retrieval of a long chat": (CHAT, lambda n: retrieval("x", chat="c" * n)),
    "retrieval with many members": (CHAT, lambda n: retrieval("x", **members(n))),
    "rescue of many turns": (CHAT, long_chat),
    "rescue of one long turn": (CHAT, lambda n: chat(messages=[
        {"role": "user", "content": "We met amber. " * (n // 14)}, {"role": "assistant", "content": "I see."}, USER])),
    "MCP query of many words": (MCP, lambda n: mcp_search(" ".join(f"w{i}" for i in range(n // 7)))),
    "MCP query of one word": (MCP, lambda n: mcp_search("w" * n)),
    "MCP nested arguments": (MCP, lambda n: b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' +
                             nested(n // 2, b"[", b"", b"]") + b"}"),
    "MCP many members": (MCP, lambda n: mcp("tools/list", **members(n))),
    "MCP batch": (MCP, lambda n: dumped(many(n, lambda i: {"jsonrpc": "2.0", "id": i, "method": "ping"}))),
    "MCP long method": (MCP, lambda n: mcp("m" * n)),
}
