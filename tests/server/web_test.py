"""What a browser gets at /, over plain HTTP: in any build, with the web app or without it."""

import re
import unittest

from serving import Serving

KEY = "a-key-of-the-test"


class WebApp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Serving("--ctx", "512", "--api-key", KEY)
        status, cls.page, cls.headers = cls.server.ask("GET", "/")
        assert status == 200, status

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def shell(self):
        """Every path that the page names, or the service worker, or the manifest."""
        paths = {"/"} | set(re.findall(r'(?:src|href)="(/[^"]+)"', self.page))
        if len(paths) > 1:
            _, worker, _ = self.server.ask("GET", "/service_worker.js")
            paths |= {"/service_worker.js"} | set(re.findall(r'"(/[^"]*)"', worker))
        return sorted(paths)

    def test_what_is_built_in(self):
        if "SLIPSTREAM_WEB" in self.page:  # the page that says how to build the app
            self.assertEqual(self.headers["Content-Type"], "text/plain; charset=utf-8")
            self.assertEqual(self.shell(), ["/"])
        else:
            self.assertEqual(self.headers["Content-Type"], "text/html; charset=utf-8")
            self.assertGreater(len(self.shell()), 6)
            self.assertNotRegex(self.page, r"<script>|<style| on[a-z]+=| style=")

    def test_the_shell_wants_no_key_and_says_how_it_may_be_used(self):
        for path in self.shell():
            with self.subTest(path):
                status, _, headers = self.server_bytes(path)
                self.assertEqual(status, 200)
                policy = headers["Content-Security-Policy"]
                self.assertIn("default-src 'self'", policy)
                self.assertIn("frame-ancestors 'none'", policy)
                self.assertNotIn("unsafe", policy)
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Referrer-Policy"], "no-referrer")
                is_hashed = path.startswith("/assets/")
                self.assertEqual("immutable" in headers["Cache-Control"], is_hashed)

    def server_bytes(self, path, headers=None):
        connection = self.server.connection()
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body, dict(response.getheaders())

    def test_what_the_browser_has_is_not_sent_again(self):
        for path in self.shell():
            with self.subTest(path):
                _, body, headers = self.server_bytes(path)
                self.assertGreater(len(body), 0)
                status, again, same = self.server_bytes(path, {"If-None-Match": headers["ETag"]})
                self.assertEqual((status, again), (304, b""))
                self.assertEqual(same["ETag"], headers["ETag"])
                status, whole, _ = self.server_bytes(path, {"If-None-Match": '"another"'})
                self.assertEqual((status, whole), (200, body))

    def test_everything_else_still_wants_the_key(self):
        for path in ("/v1/models", "/metrics", "/ready", "/slipstream/models", "/assets/", "/assets",
                     "/index.html", "//", "/.", "/assets/../v1/models", "/service_worker.js/"):
            with self.subTest(path):
                status, answer, _ = self.server.ask("GET", path)
                self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
        status, _, _ = self.server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
        self.assertEqual(status, 200)

    def test_only_get(self):
        for method in ("POST", "PUT", "DELETE"):
            status, answer, _ = self.server.ask(method, "/", "x")
            self.assertEqual((status, answer["error"]["message"]), (405, "/ wants GET"))

    def test_strangers_get_no_page_either(self):
        status, answer, _ = self.server.ask("GET", "/", headers={"Host": "evil.example"})
        self.assertEqual(status, 403, answer)
        status, answer, _ = self.server.ask("GET", "/", headers={"Origin": "http://evil.example"})
        self.assertEqual(status, 403, answer)

    def test_requests_are_counted_under_one_name(self):
        _, text, _ = self.server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
        self.assertRegex(text, r'slipstream:http_requests_total\{path="web",status="200"\} [1-9]')
        self.assertNotIn('path="/assets', text)

    def test_f16_is_what_compression_is_told_against(self):
        _, text, _ = self.server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
        kv = re.search(r'kv_cache_bytes\{.*kv_scheme="(.*)"\} (\S+)', text)
        f16 = re.search(r"kv_cache_f16_bytes\{.*\} (\S+)", text)
        # 4 layers, 2 heads of 128, keys and values, 2 bytes each, 512 tokens.
        self.assertEqual(float(f16[1]), 4 * 2 * 128 * 2 * 2 * 512)
        self.assertLessEqual(float(kv[2]), float(f16[1]))


if __name__ == "__main__":
    unittest.main()
