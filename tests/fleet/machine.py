"""The clock of a simulation and its machines: work that shares cores takes longer."""

import heapq
import itertools


class Clock:
    """What happens when. Equal times: in the order of `at`."""

    def __init__(self):
        self.events, self.order = [], itertools.count()

    def at(self, time_s, what, *arguments):
        heapq.heappush(self.events, (time_s, next(self.order), what, arguments))

    def run(self):
        """Until nothing is left to happen. Returns the time of the last event."""
        now = 0.0
        while self.events:
            now, _, what, arguments = heapq.heappop(self.events)
            what(now, *arguments)
        return now


class Machine:
    """Threads share its cores evenly, as the kernel lets them (processor sharing).

    n_beside: threads of other programs that always compute.
    """

    def __init__(self, clock, n_cores, n_beside=0):
        self.clock, self.n_cores, self.n_beside = clock, n_cores, n_beside
        self.threads, self.order = [], itertools.count()  # (what it has when it ends, order, what then)
        self.had_s = 0.0     # seconds of a core that a thread has had that was always there
        self.since_s = 0.0   # when had_s was right
        self.version = 0
        self.busy_s = 0.0    # of all cores, without what others compute

    def rate(self):
        return min(1.0, self.n_cores / (len(self.threads) + self.n_beside))

    def advance(self, now):
        if self.threads:
            self.had_s += (now - self.since_s) * self.rate()
            self.busy_s += (now - self.since_s) * len(self.threads) * self.rate()
        self.since_s = now

    def compute(self, now, work_s, what, *arguments):
        """what(now, *arguments) when a thread has computed for so long."""
        self.advance(now)
        heapq.heappush(self.threads, (self.had_s + work_s, next(self.order), what, arguments))
        self.plan(now)

    def plan(self, now):
        self.version += 1
        if self.threads:
            left = max(0.0, self.threads[0][0] - self.had_s)
            self.clock.at(now + left / self.rate(), self.end, self.version)

    def end(self, now, version):
        if version != self.version:
            return  # another thread has come meanwhile
        self.advance(now)
        self.had_s, _, what, arguments = heapq.heappop(self.threads)
        self.plan(now)
        what(now, *arguments)
