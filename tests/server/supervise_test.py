"""`slipstream serve --supervise`: what clients and operators see when the process that serves dies.

Environment: SLIPSTREAM_BIN, the built program.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from serving import FIXTURES, NEEDLE_MODEL, PROGRAM, Serving

STREAMS = 32
LONG = {"prompt": "Once upon a time", "max_tokens": 900, "ignore_eos": True, "stream": True}
SHORT = {"prompt": "Once upon a time", "max_tokens": 4}
DONE = "data: [DONE]\n\n\r\n0\r\n\r\n"


class Supervised(Serving):
    def __init__(self, *arguments, **settings):
        super().__init__("--supervise", *arguments, **settings)

    def child(self):
        """The process that serves now."""
        return int(re.findall(r"event=supervisor\.start .*?pid=(\d+)", self.log())[-1])

    def crash(self, how=signal.SIGSEGV):
        os.kill(self.child(), how)

    def wait_for_lines(self, pattern, n, seconds_max=60):
        end = time.monotonic() + seconds_max
        while len(found := re.findall(pattern, self.log())) < n:
            assert time.monotonic() < end, self.log()
            time.sleep(0.01)
        return found

    def wait_for_restart(self, n):
        self.wait_for_lines(r"event=serve\.ready", n + 1)


def raw(port, body, seconds_max=120, path="/v1/completions"):
    """All that a connection gives, from the request to its end."""
    text = json.dumps(body)
    with socket.create_connection(("127.0.0.1", port), timeout=seconds_max) as client:
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                       f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def in_threads(n, target):
    threads = [threading.Thread(target=target, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    return threads


class Crash(unittest.TestCase):
    def test_under_32_streams_nobody_is_refused_and_a_conversation_goes_on(self):
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            server = Supervised("--kv", "turbo4", "--ctx", "40000", "--parallel", str(STREAMS + 2),
                                "--kv-disk", folder)
            load_s = time.monotonic() - started
            try:
                self.crash_under_streams(server, load_s, folder)
            finally:
                self.assertEqual(server.stop(), 0)

    def crash_under_streams(self, server, load_s, folder):
        streams = [""] * STREAMS

        def stream(i):
            streams[i] = raw(server.port, LONG)

        streaming = in_threads(STREAMS, stream)
        server.wait_for_requests(STREAMS)
        # A conversation of 2,000 tokens, beside them.
        haystack = (FIXTURES / "haystack.txt").read_text()
        messages = [{"role": "user", "content": (haystack + haystack)[:13_000] + "\nWho is amber?"}]
        status, first = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 16})
        self.assertEqual(status, 200, first)
        answered = time.monotonic()
        messages += [first["choices"][0]["message"], {"role": "user", "content": "Are you sure?"}]

        # Clients that connect all through it.
        refusals, probes, is_over = [], [], threading.Event()

        def probe(_):
            while not is_over.is_set():
                try:
                    asked = time.monotonic()
                    answer = raw(server.port, SHORT)
                    probes.append((asked, time.monotonic(), answer))
                except ConnectionRefusedError as error:
                    refusals.append(error)
                except OSError:
                    pass  # it was being answered
                time.sleep(0.02)

        probing = in_threads(4, probe)
        while not list(pathlib.Path(folder).rglob("*.kv")):
            self.assertLess(time.monotonic(), answered + 10, "nothing is on disk")
            time.sleep(0.01)
        on_disk_s = time.monotonic() - answered
        self.assertTrue(all(thread.is_alive() for thread in streaming))
        crashed = time.monotonic()
        server.crash()
        for thread in streaming:
            thread.join()
        ended_s = time.monotonic() - crashed
        status, second = server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 8})
        self.assertEqual(status, 200, second)
        is_over.set()
        for thread in probing:
            thread.join()

        new = [end - crashed for asked, end, answer in probes
               if asked > crashed and answer.startswith("HTTP/1.1 200")]
        usage = second["usage"]
        share = usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]
        with_event = sum('data: {"error":' in text for text in streams)
        # Other threads run on for a moment: what they still send comes behind the end.
        whole = sum("\r\n0\r\n\r\n" in text for text in streams)
        restarts = re.search(r"^slipstream:process_restarts_total (\d+)$",
                             server.ask("GET", "/metrics")[1], re.M)[1]
        print(f"\nload {load_s:.2f} s; first new answer {min(new):.2f} s after the crash; "
              f"{len(refusals)} connections refused of {len(probes) + len(refusals)}\n"
              f"{with_event} of {STREAMS} streams ended with an error event, {whole} as HTTP wants, "
              f"all within {ended_s:.2f} s\n"
              f"conversation on disk {on_disk_s:.2f} s after its answer; afterwards "
              f"{usage['prompt_tokens_details']['cached_tokens']} of {usage['prompt_tokens']} tokens "
              f"cached ({share:.1%}); process_restarts_total {restarts}", flush=True)
        self.assertEqual(refusals, [])
        self.assertLess(min(new), load_s + 2)
        self.assertGreaterEqual(usage["prompt_tokens"], 1900)
        self.assertGreaterEqual(share, 0.95)
        # One that is just being written to can only be cut off.
        self.assertGreaterEqual(with_event, STREAMS - 4)
        self.assertEqual(with_event, whole)
        self.assertEqual(restarts, "1")
        self.assertIn("event=supervisor.crash", server.log())

    def test_a_stream_of_lines_ends_with_a_line(self):
        server = Supervised("--kv", "turbo4", "--ctx", "2048")
        try:
            streams = []
            body = {"prompt": "Once upon a time", "raw": True, "options": {"num_predict": 1900}}
            streaming = in_threads(1, lambda _: streams.append(
                raw(server.port, body, path="/api/generate")))
            server.wait_for_requests(1)
            time.sleep(0.1)  # some of it is sent
            server.crash()
            streaming[0].join()
            # What other threads still send comes behind it.
            errors = re.findall(r'\r\n({"error":.*})\n\r\n0\r\n\r\n', streams[0])
            self.assertEqual(len(errors), 1, streams[0][-300:])
            self.assertIn("ask again", json.loads(errors[0])["error"])
            server.wait_for_restart(1)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_whoever_waits_for_an_answer_gets_an_error_whatever_the_signal(self):
        server = Supervised("--kv", "turbo4", "--ctx", "2048")
        try:
            signals = (signal.SIGABRT, signal.SIGBUS, signal.SIGKILL)
            for n, how in enumerate(signals, start=1):
                answers = []
                waiting = in_threads(1, lambda _: answers.append(
                    raw(server.port, {**LONG, "max_tokens": 1900, "stream": False})))
                server.wait_for_requests(1)
                server.crash(how)
                waiting[0].join()
                if how == signal.SIGKILL:
                    self.assertEqual(answers, [""], "nobody can say anything")
                else:
                    self.assertTrue(answers[0].startswith("HTTP/1.1 503"), answers)
                    body = json.loads(answers[0].split("\r\n\r\n", 1)[1])
                    self.assertIn("ask again", body["error"]["message"])
                server.wait_for_restart(n)
            pauses = re.findall(r"event=supervisor\.pause .*?seconds=(\d+)", server.log())
            self.assertEqual(pauses, ["1", "2"], "the first time at once, then later and later")
        finally:
            self.assertEqual(server.stop(), 0)


class Start(unittest.TestCase):
    def test_what_was_never_ready_is_not_started_again(self):
        for arguments, status, said in (
                (["/nonexistent.gguf"], 1, "/nonexistent.gguf"),
                ([NEEDLE_MODEL, "--ctx", "1", "--host", "nowhere"], 1, "nowhere is no address"),
                ([NEEDLE_MODEL, "--nonsense"], 2, "--nonsense")):
            ended = subprocess.run([PROGRAM, "serve", "--supervise", "--port", "0", *arguments],
                                   capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ended.returncode, status, ended.stderr)
            self.assertIn(said, ended.stderr)
            self.assertLessEqual(ended.stderr.count("event=supervisor.start"), 1)

    def test_a_crash_of_the_first_load_ends_it(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".log") as log:
            process = subprocess.Popen([PROGRAM, "serve", "--supervise", "--port", "0", NEEDLE_MODEL],
                                       stderr=log)
            while not (found := re.search(r"event=supervisor\.start .*?pid=(\d+)",
                                          pathlib.Path(log.name).read_text())):
                time.sleep(0.001)
            os.kill(int(found[1]), signal.SIGKILL)
            self.assertEqual(process.wait(timeout=60), 128 + signal.SIGKILL)

    def test_a_variable_asks_for_it_too(self):
        os.environ["SLIPSTREAM_SUPERVISE"] = "1"
        try:
            server = Serving("--ctx", "512")
        finally:
            del os.environ["SLIPSTREAM_SUPERVISE"]
        self.assertIn("event=supervisor.start", server.log())
        self.assertEqual(server.stop(), 0)


class Stop(unittest.TestCase):
    def test_requests_in_progress_end_and_new_ones_are_refused(self):
        server = Supervised("--kv", "turbo4", "--ctx", "2048", "--drain-timeout", "300")
        answers = []
        waiting = in_threads(1, lambda _: answers.append(raw(server.port, {**LONG, "max_tokens": 300})))
        server.wait_for_requests(1)
        server.process.terminate()
        server.wait_for_line("event=serve.drain")
        time.sleep(0.2)
        with self.assertRaises(ConnectionRefusedError):
            raw(server.port, SHORT)
        waiting[0].join()
        self.assertTrue(answers[0].endswith(DONE), answers[0][-100:])
        self.assertEqual(server.process.wait(timeout=60), 0)
        self.assertNotIn("serve.cut_off", server.log())
        server.stop()

    def test_ctrl_c_is_one_signal(self):
        """A terminal sends it to all processes of its group; a second one would cut requests off."""
        server = Supervised("--kv", "turbo4", "--ctx", "2048", "--drain-timeout", "300",
                            start_new_session=True)
        answers = []
        waiting = in_threads(1, lambda _: answers.append(raw(server.port, {**LONG, "max_tokens": 300})))
        server.wait_for_requests(1)
        os.killpg(server.process.pid, signal.SIGINT)
        waiting[0].join()
        self.assertEqual(server.process.wait(timeout=60), 0)
        self.assertTrue(answers[0].endswith(DONE), answers[0][-100:])
        self.assertNotIn("serve.cut_off", server.log())
        server.stop()

    def test_the_server_dies_with_its_parent(self):
        server = Supervised("--ctx", "512")
        child = server.child()
        server.process.kill()
        server.process.wait()
        end = time.monotonic() + 10
        while pathlib.Path(f"/proc/{child}").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        server.log_file.close()


class ServiceManager(unittest.TestCase):
    def test_hears_of_the_start_and_the_end_from_the_parent(self):
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            path = os.path.join(folder, "notify")
            listener.bind(path)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            listener.settimeout(30)
            os.environ["NOTIFY_SOCKET"] = path
            try:
                server = Supervised("--ctx", "512")
            finally:
                del os.environ["NOTIFY_SOCKET"]

            def hear():
                text, credentials, _, _ = listener.recvmsg(100, 100)
                return text, int.from_bytes(credentials[0][2][:4], "little")

            parent = server.process.pid  # systemd listens to the main process only
            self.assertEqual(hear(), (b"READY=1", parent))
            server.crash()
            server.wait_for_restart(1)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(hear(), (b"STOPPING=1", parent))

    def test_a_socket_that_it_has_opened_is_taken_over(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            process = subprocess.Popen(
                ["sh", "-c", f'exec 3<&{listener.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"',
                 "sh", PROGRAM, "serve", NEEDLE_MODEL, "--ctx", "512", "--port", "1"],
                pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(raw(port, SHORT).startswith("HTTP/1.1 200"), "it waited for the load")
        finally:
            process.terminate()
            self.assertEqual(process.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main()
