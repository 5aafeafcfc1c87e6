"""A link with a delay, for kernels without netem: forwards one address to another and holds each piece
of data for a time in each direction.

    slow_link.py LISTEN_PORT HOST:PORT DELAY_MS

Threads, not asyncio: its timers count whole milliseconds.
"""

import collections
import socket
import sys
import threading
import time


def hold(source, target, delay_s):
    """Reads at once, and writes when the time has come."""
    queue, has_more = collections.deque(), threading.Condition()

    def write():
        while True:
            with has_more:
                while not queue:
                    has_more.wait()
                due, data = queue.popleft()
            # Sleeping takes some 60 us longer than asked for: the rest is waited for awake.
            while (left := due - time.perf_counter()) > 0:
                if left > 2e-4:
                    time.sleep(left - 1.5e-4)
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)

    threading.Thread(target=write, daemon=True).start()
    while True:
        data = source.recv(1 << 20)
        with has_more:
            queue.append((time.perf_counter() + delay_s, data))
            has_more.notify()
        if not data:
            return


def main():
    port, (host, host_port), delay_s = int(sys.argv[1]), sys.argv[2].split(":"), float(sys.argv[3]) / 1e3
    sys.setswitchinterval(1e-4)
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        client, _ = listener.accept()
        server = socket.create_connection((host, int(host_port)))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=hold, args=(source, target, delay_s), daemon=True).start()


if __name__ == "__main__":
    main()
