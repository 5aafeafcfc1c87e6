// When the pieces of an answer came, and how fast that was.
import type { Usage } from '../api/chat_stream.ts';
import type { AnswerStats } from './types.ts';

const TOGETHER_MS = 1; // what comes within it came as one

export class Stopwatch {
  readonly #now: () => number;
  readonly #asked: number;
  #first = 0;
  #last = 0;
  #n_pieces = 0;

  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#asked = now();
  }

  note() {
    const now = this.#now();
    if (this.#n_pieces === 0) this.#first = now;
    if (this.#n_pieces === 0 || now - this.#last > TOGETHER_MS) this.#n_pieces += 1;
    this.#last = now;
  }

  // A call may be held back until it is whole: of an answer in one piece only the whole time says
  // anything about its speed.
  stats(usage: Usage): AnswerStats {
    const is_streamed = this.#n_pieces > 1;
    const seconds = (this.#now() - (is_streamed ? this.#first : this.#asked)) / 1000;
    const n_tokens = is_streamed ? usage.n_generated - 1 : usage.n_generated;
    return {
      ...usage,
      first_token_s: this.#n_pieces > 0 ? (this.#first - this.#asked) / 1000 : seconds,
      tokens_per_s: n_tokens > 0 && seconds > 0 ? n_tokens / seconds : null,
    };
  }
}
