"""A server that speaks as much of OpenAI's API as a chat needs, and says what a test wants it to say."""

import http.server
import json
import threading
import time


class FakeOpenAi:
    """Answers each chat with the next of `answers`: lists of deltas, or (status, body).

    After the deltas of an endless one the last is repeated until the client leaves.
    """

    def __init__(self, answers=(), key=None):
        self.answers = list(answers)
        self.key = key
        self.requests = []
        self.is_endless = False
        self.clients_gone = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.fake = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def is_allowed(self):
        key = self.server.fake.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.answer(401, {"error": {"message": "wrong key"}})
        return False

    def do_GET(self):
        if self.is_allowed():
            self.answer(200, {"object": "list", "data": [{"id": "first", "owned_by": "test"},
                                                         {"id": "second", "owned_by": "test"}]})

    def do_POST(self):
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.is_allowed():
            return
        fake.requests.append(body)
        answer = fake.answers.pop(0)
        if isinstance(answer, tuple):
            self.answer(*answer)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.stream(fake, answer)
        except OSError:
            fake.clients_gone += 1
        self.close_connection = True

    def stream(self, fake, deltas):
        for delta in deltas:
            self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        while fake.is_endless:
            self.event({"choices": [{"index": 0, "delta": deltas[-1], "finish_reason": None}]})
            time.sleep(0.02)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.event({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 5,
                                             "prompt_tokens_details": {"cached_tokens": 7}}})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data):
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()
