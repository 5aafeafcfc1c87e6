"""Asks a model from Python, through libslipstream.so and nothing else.

complete.py MODEL.gguf "Once upon a time"         continues a text
complete.py MODEL.gguf --chat "Who is amber?"     asks a question
"""

import ctypes
import itertools
import json
import os
import sys
import threading

CONTENT, REASONING, CALL_BEGIN, CALL_ARGUMENTS, CALL_END, END = range(6)


class Event(ctypes.Structure):
    _fields_ = [("request", ctypes.c_int64), ("kind", ctypes.c_int32), ("call", ctypes.c_int32),
                ("text", ctypes.c_char_p), ("n_text_bytes", ctypes.c_size_t),
                ("error", ctypes.c_char_p), ("n_prompt", ctypes.c_int32),
                ("n_cached", ctypes.c_int32), ("n_generated", ctypes.c_int32)]


OnEvent = ctypes.CFUNCTYPE(None, ctypes.POINTER(Event), ctypes.c_void_p)


def load(path=os.environ.get("LIBSLIPSTREAM", "libslipstream.so.0")):
    library = ctypes.CDLL(path)
    for name, result, arguments in (
            ("open", ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]),
            ("generate", ctypes.c_int64,
             [ctypes.c_void_p, ctypes.c_char_p, OnEvent, ctypes.c_void_p]),
            ("cancel", None, [ctypes.c_void_p, ctypes.c_int64]),
            ("close", None, [ctypes.c_void_p]),
            ("last_error", ctypes.c_char_p, []),
            ("version", ctypes.c_char_p, [])):
        function = getattr(library, f"slipstream_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Engine:
    def __init__(self, model, library=None, **options):
        self.library = library or load()
        self.numbers = itertools.count(1)
        self.listeners = {}  # of requests that run
        self.on_event = OnEvent(self.take)  # one for all: it must live as long as the engine
        self.handle = self.library.slipstream_open(model.encode(), json.dumps(options).encode())
        if not self.handle:
            raise RuntimeError(self.library.slipstream_last_error().decode())

    def take(self, event, number):
        event = event.contents
        listener = self.listeners.pop(number) if event.kind == END else self.listeners[number]
        listener(event.kind, event.text.decode(), event)

    def generate(self, request, on_event):
        """Begins a request. on_event(kind, text, event) is called on the engine's thread."""
        number = next(self.numbers)
        self.listeners[number] = on_event
        identity = self.library.slipstream_generate(self.handle, json.dumps(request).encode(),
                                                    self.on_event, number)
        if identity < 0:
            self.listeners.pop(number)
            raise ValueError(self.library.slipstream_last_error().decode())
        return identity

    def ask(self, request, show=lambda text: None):
        """The whole answer, and how it ended."""
        texts, ending, has_ended = [], {}, threading.Event()

        def on_event(kind, text, event):
            if kind == CONTENT:
                texts.append(text)
                show(text)
            elif kind == END:
                ending.update(reason=text, error=event.error.decode(), n_prompt=event.n_prompt,
                              n_cached=event.n_cached, n_generated=event.n_generated)
                has_ended.set()

        self.generate(request, on_event)
        has_ended.wait()
        return "".join(texts), ending

    def cancel(self, identity):
        self.library.slipstream_cancel(self.handle, identity)

    def close(self):
        self.library.slipstream_close(self.handle)
        self.handle = None


def main():
    model, *chat, text = sys.argv[1:]
    request = {"messages": [{"role": "user", "content": text}]} if chat else {"prompt": text}
    engine = Engine(model)
    _, ending = engine.ask({**request, "max_tokens": 64, "temperature": 0},
                           lambda part: print(part, end="", flush=True))
    print(f"\n{ending}", file=sys.stderr)
    engine.close()


if __name__ == "__main__":
    main()
