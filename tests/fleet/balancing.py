"""Who gets a request, as HAProxy decides it: for the simulation.

Policies have choose(key, conversation, is_first_turn) -> index, and are told of loads by `served`, the
requests in progress of each server.
"""

import bisect
import hashlib

POINTS = 16  # of a server of weight 1 on HAProxy's ring


def point(*parts):
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=4).digest(), "big")


class RoundRobin:
    def __init__(self, n_servers):
        self.served = [0] * n_servers
        self.last = -1

    def choose(self, key, conversation, is_first_turn):
        self.last = (self.last + 1) % len(self.served)
        return self.last


class LeastConnections(RoundRobin):
    """Of those with the fewest, the one whose turn it is."""

    def choose(self, key, conversation, is_first_turn):
        n = len(self.served)
        self.last = min(((self.last + i) % n for i in range(1, n + 1)), key=lambda server: self.served[server])
        return self.last


class Ring:
    """Consistent hashing with bounded load. factor: of the average, in percent; 0 is without a bound."""

    def __init__(self, n_servers, factor=150):
        self.served = [0] * n_servers
        self.factor = factor
        self.points = sorted((point("server", server, i), server)
                             for server in range(n_servers) for i in range(POINTS))

    def slots(self, server):
        """How many requests a server may have, with the one that is to be placed: a share of all, rounded
        so that the shares add up to it, and at least one."""
        n = len(self.served)
        total = ((sum(self.served) + 1) * self.factor + 99) // 100
        each, rest = divmod(total, n)
        return max(1, each + (server + 1) * rest // n - server * rest // n)

    def place(self, key):
        at = point("key", key)
        after = bisect.bisect_left(self.points, (at,)) % len(self.points)
        # The nearer neighbour, and from there on clockwise.
        if (at - self.points[after - 1][0]) % 2**32 < (self.points[after][0] - at) % 2**32:
            after -= 1
        for i in range(len(self.points)):
            server = self.points[(after + i) % len(self.points)][1]
            if not self.factor or self.served[server] < self.slots(server):
                return server
        return self.points[after][1]

    def choose(self, key, conversation, is_first_turn):
        return self.place(key)


class ByConversation(Ring):
    """The hash of a conversation's beginning and no table."""

    def choose(self, key, conversation, is_first_turn):
        return self.place(conversation)


class ByPrefix(Ring):
    """As shipped: the first turn by the system prompt, with a bound; later ones where it went."""

    def __init__(self, n_servers, factor=150):
        super().__init__(n_servers, factor)
        self.table = {}

    def choose(self, key, conversation, is_first_turn):
        if is_first_turn or conversation not in self.table:
            self.table[conversation] = self.place(key)
        return self.table[conversation]


POLICIES = {"prefix": ByPrefix, "conversation": ByConversation, "system": Ring, "leastconn": LeastConnections,
            "roundrobin": RoundRobin}
