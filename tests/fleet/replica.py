"""A replica as the simulation has it: the engine's cache, and its scheduler step by step (src/engine/scheduling)."""

import collections
import dataclasses

CELLS_TO_GROW = 16  # kept free for each that runs


@dataclasses.dataclass
class Request:
    conversation: object
    turn: int
    sent_s: float
    prompt: int
    answer: int
    depth: int = 0        # tokens that are computed
    cached: int = 0
    answered: int = 0
    first_s: float = 0.0


class Cache:
    """Cells of conversations and of the system prompts they begin with; the least recently used leave."""

    def __init__(self, capacity, system_size):
        self.capacity, self.system_size = capacity, system_size
        self.kept = collections.OrderedDict()  # conversation: [system, tokens, is it computed now]
        self.systems = collections.Counter()   # tokens of each system prompt
        self.n_tokens = 0
        self.n_running = 0                     # of conversations that are computed, without system prompts

    def find(self, conversation):
        if conversation.number in self.kept:
            return self.kept[conversation.number][1]
        return self.systems[conversation.system]

    def hold(self, conversation, n_tokens, is_running):
        """The conversation has so many computed tokens."""
        number, system = conversation.number, conversation.system
        entry = self.kept.setdefault(number, [system, 0, False])
        own = [max(0, n - self.system_size) for n in (entry[1], n_tokens)]
        self.n_running += own[1] * is_running - own[0] * entry[2]
        self.n_tokens += own[1] - own[0]
        entry[1:] = n_tokens, is_running
        self.kept.move_to_end(number)
        begun = min(n_tokens, self.system_size)
        if begun > self.systems[system]:
            self.n_tokens += begun - self.systems[system]
            self.systems[system] = begun
        self.make_room()

    def grow(self, conversation):
        """By a token of an answer."""
        self.kept[conversation.number][1] += 1
        self.n_tokens += 1
        self.n_running += 1
        self.make_room()

    def make_room(self):
        while self.n_tokens > self.capacity and self.forget_oldest():
            pass

    def forget_oldest(self):
        number = next((number for number, entry in self.kept.items() if not entry[2]), None)
        if number is None:
            return False
        system, n_tokens, _ = self.kept.pop(number)
        self.n_tokens -= max(0, n_tokens - self.system_size)
        left = max((min(entry[1], self.system_size) for entry in self.kept.values() if entry[0] == system), default=0)
        self.n_tokens -= self.systems[system] - left
        self.systems[system] = left
        return True


class PrefillControl:
    """How many prompt tokens go into a step beside answers: prefill_control.cpp."""
    STRETCH, PROBE_EVERY, TOKENS_MIN, AT_FIRST = 1.75, 32, 2, 16

    def __init__(self, n_max):
        self.n_max, self.n_tokens = n_max, float(min(self.AT_FIRST, n_max))
        self.answers_s, self.n_since_probe = 0.0, 0

    def n_tokens_max(self):
        return 0 if self.n_since_probe >= self.PROBE_EVERY else int(self.n_tokens)

    def observe(self, n_prompt, n_answers, seconds):
        if not n_answers:
            return
        if not n_prompt:
            self.answers_s += (0.25 if self.answers_s else 1) * (seconds - self.answers_s)
            self.n_since_probe = 0
            return
        self.n_since_probe += 1
        if not self.answers_s:
            return
        goal = self.STRETCH * self.answers_s
        if seconds > goal:
            self.n_tokens *= max(goal / seconds, 0.5)
        elif seconds < 0.9 * goal and n_prompt >= int(self.n_tokens):
            self.n_tokens += max(self.n_tokens / 16, 0.5)
        self.n_tokens = min(max(self.n_tokens, self.TOKENS_MIN), self.n_max)


class Replica:
    def __init__(self, steps, system_size, capacity, parallel):
        self.steps, self.parallel = steps, parallel
        self.cache = Cache(capacity, system_size)
        self.control = PrefillControl(steps.piece_max)
        self.waiting, self.running = collections.deque(), []
        self.is_busy = False

    def admit(self):
        """In the order of arrival; who does not fit holds back those behind."""
        while self.waiting and len(self.running) < self.parallel:
            request = self.waiting[0]
            cached = min(self.cache.find(request.conversation), request.prompt - 1)
            to_read = sum(r.prompt - r.depth for r in self.running if not r.answered)
            own = request.prompt - min(cached, self.cache.system_size)
            taken = self.cache.n_running + to_read + CELLS_TO_GROW * len(self.running)
            if self.running and taken + own > self.cache.capacity:
                return
            self.waiting.popleft()
            request.cached = request.depth = cached
            self.cache.hold(request.conversation, cached, True)
            self.running.append(request)

    def pieces(self, prompts, left):
        """[(request, tokens)] of a step: half to the one that was admitted first, the rest to those with the least
        left."""
        pending = [r.prompt - r.depth for r in prompts]
        pending[0] -= min(pending[0], (left + 1) // 2)
        left -= prompts[0].prompt - prompts[0].depth - pending[0]
        for i in sorted(range(len(prompts)), key=pending.__getitem__):
            n = min(pending[i], left)
            pending[i] -= n
            left -= n
        given = [r.prompt - r.depth - n for r, n in zip(prompts, pending)]
        return [(r, n) for r, n in zip(prompts, given) if n]

    def plan(self):
        """The step: (seconds, answers, pieces of prompts)."""
        self.admit()
        answers = [r for r in self.running if r.answered]
        prompts = [r for r in self.running if not r.answered]
        most = self.control.n_tokens_max() if answers else self.steps.piece_max
        pieces = self.pieces(prompts, most) if prompts else []
        return self.steps.step([r.depth for r in answers], [(n, r.depth) for r, n in pieces]), answers, pieces

    def commit(self, answers, pieces, seconds):
        """After the step, which took so long: (who has the first token, who has all)."""
        self.control.observe(sum(n for _, n in pieces), len(answers), seconds)
        for request in answers:
            request.depth += 1
            request.answered += 1
            self.cache.grow(request.conversation)
        begun = []
        for request, n in pieces:
            request.depth += n
            self.cache.hold(request.conversation, request.depth, True)
            if request.depth == request.prompt:
                request.answered = 1
                begun.append(request)
        ended = [r for r in self.running if r.answered >= r.answer]
        for request in ended:
            self.running.remove(request)
            self.cache.hold(request.conversation, request.depth, False)
        return begun, ended
