"""The packaged llama.cpp programs, as the contract tests call them.

Environment, set by CMake: SLIPSTREAM_FIXTURES (the models made into the build tree), TURBO_PLUGIN
(libggml-turbo.so).
"""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = pathlib.Path(os.environ["SLIPSTREAM_FIXTURES"])
NEEDLE_MODEL = CHECKOUT / "tests" / "fixtures" / "needle-4m.gguf"
HAYSTACK = CHECKOUT / "tests" / "fixtures" / "haystack.txt"
THREADS = ["-t", "1"]  # two tests at a time: ctest --preset release


def model(shape):
    path = FIXTURES / f"{shape}.gguf"
    assert path.exists(), f"{path} is missing: build the target 'fixtures'"
    return path


def question(name):
    """A question that the needle model can answer only from the text before it."""
    text = HAYSTACK.read_text()[:1500]
    middle = text.find("\n", len(text) // 2)
    return (f"{text[:middle]}\nWe met {name} today.\n{text[middle:]}\n"
            f"What is the full name of {name.split()[0]}?")


def turbo(scheme, experts=None, prompts=None):
    """The environment in which a packaged program has our device; None: without the plugin.

    experts: memory for those that are streamed, such as "2M"; None: they are resident.
    prompts: "on": our own products.
    """
    plugin = {} if scheme is None else {"GGML_BACKEND_PATH": os.environ["TURBO_PLUGIN"],
                                        "GGML_TURBO_KV": scheme}
    streamed = {} if experts is None else {"GGML_TURBO_EXPERTS": experts}
    products = {} if prompts is None else {"GGML_TURBO_PROMPTS": prompts}
    return {**os.environ, **plugin, **streamed, **products}


def run(program, *arguments, timeout_s=600, scheme=None, experts=None, prompts=None):
    """Runs a packaged program and returns (stdout, stderr); fails with both if it fails."""
    command = [str(word) for word in (program, *arguments)]
    result = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False,
                            stdin=subprocess.DEVNULL, env=turbo(scheme, experts, prompts))
    stdout = result.stdout.decode(errors="replace")
    stderr = result.stderr.decode(errors="replace")
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {result.returncode}\n"
                             f"{stdout[-2000:]}\n{stderr[-4000:]}")
    return stdout, stderr


def said(program, *arguments, patterns, n_tries=8, **settings):
    """Runs a packaged program until its log has every pattern: (their last matches, the log).

    Its logger is a thread of its own and now and then ends with the process before it has written
    the last lines (3 of 100 runs here): then the run is repeated.
    """
    for _ in range(n_tries):
        log = "".join(run(program, *arguments, **settings))
        found = [list(re.finditer(pattern, log)) for pattern in patterns]
        if all(found):
            return [matches[-1] for matches in found], log
    raise AssertionError(f"{n_tries} runs did not say all of {patterns}:\n{log[-2000:]}")


def perplexity(model_path, *arguments):
    """The final estimate of llama-perplexity."""
    (found,), _ = said("llama-perplexity", "-m", model_path, *arguments, *THREADS,
                       patterns=[r"Final estimate: PPL = (\S+)"])
    return float(found[1])


def logits(model_path, path, *arguments, **settings):
    """Writes the log-probabilities of every token of a text, as llama-perplexity keeps them."""
    run("llama-perplexity", "-m", model_path, "--kl-divergence-base", path, "-fa", "on", *arguments,
        **settings)


def kl_divergence(model_path, base, *arguments, **settings):
    """(mean KL divergence, share of equal top tokens) against logits() of the same text."""
    (mean, same), _ = said("llama-perplexity", "-m", model_path, "--kl-divergence-base", base,
                           "--kl-divergence", "-fa", "on", *arguments, **settings,
                           patterns=[r"Mean    KLD:\s+(\S+)", r"Same top p:\s+(\S+)"])
    return float(mean[1]), float(same[1]) / 100


def libexec(program):
    """Programs of the packages that are not on the PATH, such as test-backend-ops."""
    # Of this machine: those of others may be installed beside them.
    found = sorted(pathlib.Path("/usr/libexec").glob(f"{os.uname().machine}-*/*/{program}"))
    assert found, f"{program} is not installed under /usr/libexec"
    return found[0]


class Server:
    """A running packaged llama-server on loopback."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}"

    def post(self, path, body, timeout_s=300):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.load(response)

    def count_tokens(self, text):
        return len(self.post("/tokenize", {"content": text})["tokens"])

    def chat(self, text, **extra):
        body = {"messages": [{"role": "user", "content": text}], "temperature": 0,
                "max_tokens": 64, **extra}
        return self.post("/v1/chat/completions", body)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until_ready(process, url, timeout_s):
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        assert process.poll() is None, f"llama-server ended with {process.returncode}"
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(url + "/health", timeout=2):
                return
        time.sleep(0.05)
    raise AssertionError(f"llama-server was not ready after {timeout_s} s")


@contextlib.contextmanager
def server(model_path, *arguments, log_path=os.devnull, scheme=None, experts=None):
    port = free_port()
    command = ["llama-server", "-m", model_path, "--host", "127.0.0.1", "--port", port, "--no-ui",
               *THREADS, *arguments]
    with open(log_path, "wb") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log,
                                   stderr=subprocess.STDOUT, env=turbo(scheme, experts))
    try:
        running = Server(port)
        wait_until_ready(process, running.url, timeout_s=300)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
