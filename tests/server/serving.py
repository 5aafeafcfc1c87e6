"""A running `slipstream serve` for tests, and a client that shows what came back.

Environment: SLIPSTREAM_BIN, the built program; SLIPSTREAM_THREADS, those it computes with (2). With the
thread sanitizer 1: it does not see how OpenMP's threads wait for each other.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

PROGRAM = os.environ["SLIPSTREAM_BIN"]
THREADS = os.environ.get("SLIPSTREAM_THREADS", "2")
FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures"
NEEDLE_MODEL = str(FIXTURES / "needle-4m.gguf")


class Serving:
    """A process on a port of its own choice."""

    def __init__(self, *arguments, model=NEEDLE_MODEL, **settings):
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *([model] if model else []), "--port", "0", "--threads", THREADS,
             *arguments],
            stdout=subprocess.DEVNULL, stderr=self.log_file, **settings)
        self.port = int(self.wait_for_line(r"event=serve\.ready .*:(\d+)\n")[1])

    def log(self):
        return pathlib.Path(self.log_file.name).read_text()

    def wait_for_line(self, pattern, seconds_max=60):
        end = time.monotonic() + seconds_max
        while time.monotonic() < end:
            if found := re.search(pattern, self.log()):
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"no {pattern} in the log:\n{self.log()}")

    def memory(self, key):
        """VmRSS, or VmHWM, the most it ever was, in bytes."""
        lines = pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(key)).split()[1]) << 10

    def forget_peak(self):
        """VmHWM begins anew."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def n_requests(self):
        """In progress or in the queue."""
        metrics = self.ask("GET", "/metrics")[1]
        found = re.findall(r"^vllm:num_requests_(?:running|waiting)\{.*?\} (\d+)$", metrics, re.M)
        assert len(found) >= 2, metrics
        return sum(map(int, found))

    def wait_for_requests(self, n, seconds_max=60):
        end = time.monotonic() + seconds_max
        while time.monotonic() < end:
            if self.n_requests() >= n:
                return
            time.sleep(0.02)
        raise AssertionError(f"no {n} requests in {seconds_max} s:\n{self.log()}")

    def connection(self, timeout_s=300):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def ask(self, method, path, body=None, headers=None):
        """(status, body as JSON where it is, headers)"""
        connection = self.connection()
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, data, headers or {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        with contextlib.suppress(json.JSONDecodeError):
            text = json.loads(text)
        return response.status, text, dict(response.getheaders())

    def post(self, path, body, headers=None):
        status, answer, _ = self.ask("POST", path, body, headers)
        return status, answer

    def events(self, path, body):
        """The data of a streamed answer's events, without the last, which must be [DONE]."""
        status, text, _ = self.ask("POST", path, {**body, "stream": True})
        assert status == 200, text
        lines = [line for line in text.split("\n\n") if line]
        assert all(line.startswith("data: ") for line in lines), text
        assert lines[-1] == "data: [DONE]", text
        return [json.loads(line[6:]) for line in lines[:-1]]

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(timeout=60)
        self.log_file.close()
        return status


class LlamaServing(Serving):
    """Stock llama-server instead."""

    def __init__(self, *arguments, model=NEEDLE_MODEL):
        # One thread: more of them wait for each other where a machine is busy.
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")
        self.process = subprocess.Popen(
            ["llama-server", "-m", model, "--port", "0", "--threads", "1", "--offline",
             "--alias", "needle", *arguments], stdout=subprocess.DEVNULL, stderr=self.log_file)
        self.port = int(self.wait_for_line(r"listening on http://.*:(\d+)\n")[1])
