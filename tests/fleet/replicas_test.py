"""Two replicas behind the shipped configuration of HAProxy: who gets what, and what happens when one goes.

Environment: SLIPSTREAM_BIN, the built program. Skipped without haproxy.
"""

import http.client
import http.server
import json
import os
import signal
import subprocess
import threading
import time
import unittest

import replicas

BUFFER_BYTES = 131072
LONG = {"max_tokens": 1500, "ignore_eos": True, "temperature": 0}


def text_of(n_characters, name):
    return (f"{name}: the weather was fine and we walked home. " * (n_characters // 40 + 1))[:n_characters]


def system(i):
    return {"role": "system", "content": text_of(1500, f"application {i}")}


def user(words):
    return {"role": "user", "content": words}


class Front(unittest.TestCase):
    def setUp(self):
        self.servers = []
        for _ in range(2):
            self.servers.append(replicas.serve("--ctx", "65536", "--parallel", "16"))
            self.addCleanup(replicas.end, self.servers[-1])
        self.front = replicas.Balancer([replicas.address_of(server) for server in self.servers])
        self.addCleanup(self.front.stop)

    def chat(self, messages, key=replicas.KEY, **fields):
        """The replica that answered, while nothing else is in progress."""
        self.front.wait_until_idle()
        status, name, answer = self.front.post(
            "/v1/chat/completions", {"messages": messages, "max_tokens": 4, **fields}, key)
        self.assertEqual(status, 200, answer)
        return name

    def application_on(self, name):
        """A system prompt whose conversations begin on this replica."""
        return next(system(i) for i in range(100) if self.chat([system(i), user("Hello")]) == name)

    def stream(self, messages, **fields):
        """A streamed answer of which the first event has come: (replica, response, connection)"""
        connection = self.front.connection()
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": messages, "stream": True, **LONG, **fields}),
            {"Authorization": f"Bearer {replicas.KEY}"})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        self.assertTrue(response.readline().startswith(b"data: "))
        self.addCleanup(connection.close)
        return response.getheader("x-replica"), response, connection


class Configuration(unittest.TestCase):
    def test_haproxy_takes_it_as_it_is_shipped(self):
        checked = subprocess.run(["haproxy", "-c", "-f", replicas.CONFIGURATION], capture_output=True, text=True,
                                 env={**os.environ, "SLIPSTREAM_API_KEY": "k"}, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertNotIn("[WARNING]", checked.stderr)


class Routes(Front):
    def test_turns_of_a_conversation_and_applications_keep_together(self):
        used = set()
        for i in range(8):
            first = self.chat([system(i), user("Hello")])
            used.add(first)
            for j in range(3):
                messages = [system(i), user(f"Question {j}")]
                names = set()
                for turn in range(3):
                    names.add(self.chat(messages))
                    messages += [{"role": "assistant", "content": f"Answer {turn}"}, user("Go on")]
                self.assertEqual(names, {first})
        self.assertEqual(used, {"a", "b"})

    def test_a_conversation_stays_where_a_busy_replica_sent_it(self):
        application = self.application_on("a")
        streams = [self.stream([application, user(f"Stream {i}")]) for i in range(8)]
        placed = [name for name, _, _ in streams]
        # In a bound of 1.5 shares: six of eight at the most.
        self.assertGreaterEqual(placed.count("b"), 2, placed)
        elsewhere = placed.index("b")
        for _, _, connection in streams:
            connection.close()
        for server in self.servers:
            self.wait_until_idle(server)
        later = [application, user(f"Stream {elsewhere}"), {"role": "assistant", "content": "x"}, user("Go on")]
        self.assertEqual(self.chat(later), "b")
        self.assertEqual(self.chat([application, user("Anew")]), "a")

    def test_conversations_that_begin_with_the_same_words_do_not_pile_up(self):
        names = [self.stream([system(0), user("Start")])[0] for _ in range(8)]
        self.assertGreaterEqual(min(names.count("a"), names.count("b")), 2, names)

    def wait_until_idle(self, server):
        end = time.monotonic() + 20
        while running(server):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_client_that_leaves_ends_its_request(self):
        connection = self.front.connection()
        connection.request("POST", "/v1/chat/completions", json.dumps(
            {"messages": [user("Hello")], **LONG, "max_tokens": 60000}), {"Authorization": "Bearer k1"})
        end = time.monotonic() + 20
        while not any(running(server) for server in self.servers):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        connection.close()
        for server in self.servers:
            self.wait_until_idle(server)


class Bodies(Front):
    """What the beginning of a conversation is, in each API: its turns have one entry in the table."""

    def keep(self, path, bodies_of, answers=200, n_conversations=8):
        """bodies_of(i): the bodies of the turns of conversation i. Returns the replicas of all."""
        used = []
        for i in range(n_conversations):
            names = []
            for body in bodies_of(i):
                status, name, answer = self.front.post(path, body)
                self.assertEqual(status, answers, str(answer)[:500])
                names.append(name)
            self.assertEqual(len(set(names)), 1, names)
            used.append(names[0])
        table = self.front.tell("show table replicas")
        self.assertIn(f"used:{n_conversations}\n", table)
        return used

    def test_chat_with_and_without_a_system_prompt_and_with_parts(self):
        def bodies(i):
            said = [{"type": "text", "text": f"Hello {i}"}] if i % 2 else f"Hello {i}"
            first = [{"role": "user", "content": said}]
            if i >= 4:
                first.insert(0, {"role": "developer", "content": "You are kind."})
            for turns in range(3):
                yield {"messages": first + [{"role": "assistant", "content": "x"}, user("Go on")] * turns,
                       "max_tokens": 4}

        used = self.keep("/v1/chat/completions", bodies)
        self.assertEqual(len(set(used[4:])), 1)

    def test_claude_with_parts_whose_marks_move(self):
        mark = {"cache_control": {"type": "ephemeral"}}

        def part(text, **more):
            return {"type": "text", "text": text, **more}

        def bodies(i):
            head = [part(f"x-anthropic-billing-header: v={i}"), part(text_of(1200, "agent"), **mark)]
            first = [part("<system-reminder>The date.</system-reminder>"), part(f"Hello {i}")]
            marked = [first[0], {**first[1], **mark}]
            yield {"messages": [{"role": "user", "content": marked}], "system": head, "max_tokens": 4}
            yield {"messages": [{"role": "user", "content": first}, {"role": "assistant", "content": "x"},
                                user("Go on")], "system": head, "max_tokens": 4}

        self.assertEqual(len(set(self.keep("/v1/messages", bodies))), 1)

    def test_responses(self):
        def bodies(i):
            yield {"input": f"Hello {i}", "max_output_tokens": 4}
            yield {"input": [user(f"Hello {i}"), {"role": "assistant", "content": "x"}, user("Go on")],
                   "max_output_tokens": 4}

        self.assertEqual(set(self.keep("/v1/responses", bodies)), {"a", "b"})

    def test_a_body_longer_than_the_buffer_is_known_by_its_beginning(self):
        def bodies(i):
            first = [system(i), user(text_of(30000, f"File {i}"))]
            for n_bytes in (0, 2 * BUFFER_BYTES):
                # Too long for the model, so the replica refuses it: it is its place that counts here.
                messages = first + [{"role": "assistant", "content": "x" * n_bytes}, user("Go on")] * bool(n_bytes)
                yield json.dumps({"messages": messages, "model": "no such model"}).encode()

        self.assertEqual(set(self.keep("/v1/chat/completions", bodies, answers=404)), {"a", "b"})

    def test_keys_keep_apart(self):
        names = {self.front.post("/v1/chat/completions", {"messages": [system(0)]}, key=f"other {i}")[1]
                 for i in range(20)}
        self.assertEqual(names, {"a", "b"})


class Ends(Front):
    def test_a_replica_drains(self):
        application = self.application_on("a")
        self.chat([application, user("Who?")])
        name, response, _ = self.stream([application, user("Stream")])
        self.assertEqual(name, "a")
        failed, stop = [], threading.Event()

        def ask():
            turn = [application, user("Who?"), {"role": "assistant", "content": "x"}, user("Go on")]
            while not stop.is_set():
                status, where, answer = self.front.post("/v1/chat/completions",
                                                        {"messages": turn, "max_tokens": 2})
                if status != 200 or (time.monotonic() > drained and where == "a"):
                    failed.append((status, where, answer))

        drained = time.monotonic() + 60
        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(0.2)
        self.servers[0].process.send_signal(signal.SIGTERM)
        drained = time.monotonic() + 0.2
        self.front.wait_for_state("a", "DOWN")
        rest = response.read()  # all that is still to come
        stop.set()
        asking.join()
        self.assertEqual(failed, [])
        self.assertGreater(rest.count(b"data: "), 100)
        self.assertTrue(rest.rstrip().endswith(b"data: [DONE]"), rest[-300:])
        self.assertEqual(self.servers[0].process.wait(timeout=30), 0)

    def test_a_replica_is_killed(self):
        application = self.application_on("a")
        name, response, _ = self.stream([application, user("Stream")])
        self.assertEqual(name, "a")
        answers = []
        # Not streamed: nothing of them has been sent when their replica ends.
        waiting = [threading.Thread(target=lambda i=i: answers.append(self.front.post(
            "/v1/chat/completions", {"messages": [application, user(f"Q{i}")], **LONG, "max_tokens": 600})))
            for i in range(2)]
        for thread in waiting:
            thread.start()
        end = time.monotonic() + 20
        while running(self.servers[0]) < 2:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.servers[0].process.kill()
        with self.assertRaises(http.client.IncompleteRead):
            response.read()
        for thread in waiting:
            thread.join()
        self.assertEqual([(status, where) for status, where, _ in answers], [(200, "b")] * 2)
        self.assertEqual(self.chat([application, user("Who?")]), "b")


class Refusing(http.server.BaseHTTPRequestHandler):
    """A replica that takes nothing, as one that is just ending and of which no check has told yet."""

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.n_refused += 1
        self.answer(503)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Refused(Front):
    def test_what_a_replica_does_not_take_goes_to_another(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as refusing:
            refusing.n_refused = 0
            threading.Thread(target=refusing.serve_forever, daemon=True).start()
            front = replicas.Balancer([replicas.address_of(self.servers[0]),
                                       f"127.0.0.1:{refusing.server_port}"])
            self.addCleanup(front.stop)
            for i in range(16):
                status, name, _ = front.post("/v1/chat/completions",
                                             {"messages": [system(i), user("Hello")], "max_tokens": 4})
                self.assertEqual((status, name), (200, "a"))
            self.assertGreater(refusing.n_refused, 0)
            refusing.shutdown()


def running(server):
    """Requests that a replica computes or has waiting."""
    metrics = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {replicas.KEY}"})[1]
    lines = [line for line in metrics.splitlines() if line.startswith("vllm:num_requests_")]
    return sum(int(line.split()[-1]) for line in lines)


if __name__ == "__main__":
    replicas.skip_without_haproxy()
    unittest.main()
