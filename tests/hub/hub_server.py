"""A hub for tests: the parts of huggingface.co's API that we use, on loopback.

Two servers: the hub itself, and the "CDN" under another name and port that downloads are redirected
to. Both write down what they are asked. Faults are switched on by attributes of Hub.
"""

import contextlib
import hashlib
import http.server
import json
import re
import socket
import threading
import time
import urllib.parse

PIECE_BYTES = 8 << 10


def git_blob_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repo:
    def __init__(self, files, commit="c0ffee" + "0" * 34, downloads=0):
        self.files = files  # {path: content}
        self.commit = commit
        self.downloads = downloads

    def siblings(self):
        return [{"rfilename": path, "size": len(content), "blobId": "b" * 40,
                 "lfs": {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}}
                for path, content in self.files.items()]


class Hub:
    def __init__(self):
        self.repos = {}
        self.lock = threading.Lock()
        self.requests = []  # (server, path, headers)
        self.served = {}  # content's path: [(begin, end)], as it went out
        # Faults of the hub.
        self.api_status = None  # (status, {header: value}): of every answer
        self.resolve_status = None
        self.change_listing = lambda listing: listing
        self.redirect_to_self = False
        # Faults of the CDN. Lists are used up, one entry for each request.
        self.cdn_statuses = []  # (status, {header: value})
        self.drop_after_bytes = []  # numbers; the connection is closed after so many
        self.ignore_ranges = False
        self.shift_ranges = 0  # added to what Content-Range says
        self.change_content = lambda content: content
        self.piece_seconds = 0.0  # to wait after each piece
        self.servers = [self.start(HubHandler), self.start(CdnHandler)]
        self.endpoint = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.cdn = f"http://localhost:{self.servers[1].server_port}"

    def start(self, handler):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.hub = self
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def stop(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def n_served_bytes(self):
        with self.lock:
            return sum(end - begin for ranges in self.served.values() for begin, end in ranges)

    def n_repeated_bytes(self, path):
        """Bytes that were sent more than once, as often as they were."""
        with self.lock:
            edges = sorted([(begin, 1) for begin, _ in self.served[path]] +
                           [(end, -1) for _, end in self.served[path]])
        n_repeated, n_open, last = 0, 0, 0
        for at, step in edges:
            n_repeated += max(n_open - 1, 0) * (at - last)
            n_open, last = n_open + step, at
        return n_repeated

    def asked(self, server):
        with self.lock:
            return [(path, headers) for name, path, headers in self.requests if name == server]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    name = ""

    def log_message(self, *_):
        pass

    def note(self):
        with self.server.hub.lock:
            self.server.hub.requests.append((self.name, self.path, dict(self.headers)))

    def answer(self, status, headers=None, body=b""):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class HubHandler(Handler):
    name = "hub"

    def do_HEAD(self):  # of a redirect, which has no body
        self.do_GET()

    def do_GET(self):
        self.note()
        hub = self.server.hub
        path, query = urllib.parse.urlsplit(self.path)[2:4]
        if path == "/api/models":
            self.search(hub, urllib.parse.parse_qs(query))
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/main", path):
            self.list(hub, found[1])
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/(refs|tree/.+)", path):
            self.list_for_stock(hub.repos[found[1]], found[2])
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self.resolve(hub, *found.groups())
        else:
            self.answer(404)

    def list(self, hub, repo_id):
        if hub.api_status:
            return self.answer(*hub.api_status)
        if repo_id not in hub.repos:
            return self.answer(404, {"X-Error-Code": "RepoNotFound"})
        repo = hub.repos[repo_id]
        listing = {"id": repo_id, "sha": repo.commit, "siblings": repo.siblings()}
        return self.answer(200, {"Content-Type": "application/json"},
                           json.dumps(hub.change_listing(listing)).encode())

    def search(self, hub, query):
        """As the real one: every word is in the name, the most downloaded first."""
        if hub.api_status:
            return self.answer(*hub.api_status)
        words = query["search"][0].lower().split()
        found = [repo_id for repo_id in hub.repos if all(word in repo_id.lower() for word in words)]
        if query["filter"] != ["gguf"] or query["sort"] != ["downloads"]:
            return self.answer(400)
        found.sort(key=lambda repo_id: -hub.repos[repo_id].downloads)
        answer = [{"id": repo_id, "modelId": repo_id, "downloads": hub.repos[repo_id].downloads}
                  for repo_id in found[:int(query["limit"][0])]]
        return self.answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

    def list_for_stock(self, repo, what):
        """What llama.cpp asks for instead."""
        if what == "refs":
            answer = {"branches": [{"name": "main", "ref": "refs/heads/main",
                                    "targetCommit": repo.commit}]}
        else:
            answer = [{"type": "file", "path": path, "size": len(content), "oid": "b" * 40,
                       "lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}}
                      for path, content in repo.files.items()]
        self.answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

    def resolve(self, hub, repo_id, commit, path):
        if hub.resolve_status:
            return self.answer(*hub.resolve_status)
        repo = hub.repos.get(repo_id)
        if not repo or commit != repo.commit or urllib.parse.unquote(path) not in repo.files:
            return self.answer(404, {"X-Error-Code": "EntryNotFound"})
        target = self.path if hub.redirect_to_self else f"{hub.cdn}/{repo_id}/{path}?signature=s3cret"
        return self.answer(302, {"Location": target})


class CdnHandler(Handler):
    name = "cdn"

    def setup(self):
        # Little in flight: what counts as sent should have arrived.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE_BYTES)
        super().setup()

    def file(self):
        """(path, content)"""
        hub = self.server.hub
        owner, repo, path = urllib.parse.unquote(
            urllib.parse.urlsplit(self.path).path[1:]).split("/", 2)
        return path, hub.change_content(hub.repos[f"{owner}/{repo}"].files[path])

    def do_HEAD(self):
        _, content = self.file()
        self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()

    def do_GET(self):
        self.note()
        hub = self.server.hub
        path, content = self.file()
        with hub.lock:
            fault = hub.cdn_statuses.pop(0) if hub.cdn_statuses else None
            n_bytes_max = hub.drop_after_bytes.pop(0) if hub.drop_after_bytes else len(content)
        if fault:
            return self.answer(*fault)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(content))
        if hub.ignore_ranges or not asked:
            begin, end = 0, len(content)
            self.send_response(200)
        else:
            self.send_response(206)
            shift = hub.shift_ranges
            self.send_header("Content-Range", f"bytes {begin + shift}-{end - 1 + shift}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        with contextlib.suppress(OSError):  # a client that was killed
            self.send(path, content, begin, min(end, begin + n_bytes_max))
        if end - begin > n_bytes_max:
            self.close_connection = True
        return None

    def send(self, path, content, begin, end):
        hub = self.server.hub
        while begin < end:
            piece_end = min(begin + PIECE_BYTES, end)
            self.wfile.write(content[begin:piece_end])
            with hub.lock:
                hub.served.setdefault(path, []).append((begin, piece_end))
            begin = piece_end
            if hub.piece_seconds:
                time.sleep(hub.piece_seconds)
