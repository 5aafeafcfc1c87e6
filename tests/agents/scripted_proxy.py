"""A proxy between a client and the server that decides what the model says.

Each request with tools gets the next text of a script as its grammar, so that the real model, sampler, parser and
writer produce exactly that text; others (a title for the conversation) get a short text. Nothing else is changed:
what comes back is passed on byte by byte. What was asked and answered is kept for the test.
"""

import http.client
import http.server
import json
import threading
import time

FORWARDED = ("authorization", "x-api-key", "content-type", "accept", "anthropic-version", "anthropic-beta")


def grammar_of(text):
    return "root ::= " + json.dumps(text, ensure_ascii=False)


def event_names(text):
    """Of a streamed answer: the names of its events, where an API has names, with repeats as one."""
    names = []
    for event in text.split("\n\n"):
        name = event.split("\n")[0].removeprefix("event: ")
        if event.startswith("event: ") and name not in ("ping", *names[-1:]):
            names.append(name)
    return names


def usage_of(text):
    """(tokens of the prompt, those of them that were cached), from the last event that tells them."""
    found = None
    for line in text.split("\n"):
        if not line.startswith("data: {"):
            continue
        event = json.loads(line[6:])
        usage = event.get("usage") or (event.get("response") or {}).get("usage")
        if usage and "cache_read_input_tokens" in usage:
            cached = usage["cache_read_input_tokens"]
            found = (usage["input_tokens"] + usage["cache_creation_input_tokens"] + cached, cached)
        elif usage and "input_tokens" in usage:
            found = (usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"])
        elif usage:
            found = (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"])
    return found


class ScriptedProxy:
    """Listens on a port of its own choice until it is closed."""

    def __init__(self, server_port, script):
        self.turns = []  # of requests with tools: {"path", "status", "events", "usage", "headers_s", ...}
        self.left = list(script)
        self.server_port = server_port
        self.lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                proxy.pass_on(self)

            do_GET = do_HEAD = do_POST = answer

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def scripted(self, body):
        """The body with what the model is to say, and whether the script has it."""
        request = json.loads(body)
        is_turn = bool(request.get("tools"))
        with self.lock:
            text = (self.left.pop(0) if self.left else "I have nothing more to say.") if is_turn else "A lamp"
        return json.dumps({**request, "grammar": grammar_of(text)}).encode(), is_turn

    def pass_on(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        is_turn = False
        if handler.command == "POST" and "count_tokens" not in handler.path:
            body, is_turn = self.scripted(body)
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=600)
        connection.request(handler.command, handler.path, body or None,
                           {k: v for k, v in handler.headers.items() if k.lower() in FORWARDED})
        response = connection.getresponse()
        headers_s = time.monotonic() - begin
        handler.send_response(response.status)
        for name in ("content-type", "retry-after"):
            if value := response.getheader(name):
                handler.send_header(name, value)
        handler.send_header("connection", "close")
        handler.close_connection = True
        handler.end_headers()
        answer = b""
        while piece := response.read1(65536):
            answer += piece
            handler.wfile.write(piece)
            handler.wfile.flush()
        connection.close()
        if is_turn:
            text = answer.decode()
            self.turns.append({"path": handler.path.split("?")[0], "status": response.status,
                               "events": event_names(text), "usage": usage_of(text),
                               "headers_s": headers_s, "took_s": time.monotonic() - begin,
                               "answer": text})
