// How fast an answer was.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Stopwatch } from '../src/chat/stopwatch.ts';

const usage = { n_prompt: 10, n_cached: 4, n_recomputed: 2, n_generated: 21, n_dropped: 0 };

// Pieces at these milliseconds after the question; the end at the last.
function statsOf(...times: number[]) {
  let now = 1000;
  const watch = new Stopwatch(() => now);
  for (const time of times.slice(0, -1)) {
    now = 1000 + time;
    watch.note();
  }
  now = 1000 + times.at(-1)!;
  return watch.stats(usage);
}

test('a stream has the speed of what came after its first token', () => {
  const stats = statsOf(500, 700, 1500, 2500);
  assert.equal(stats.first_token_s, 0.5);
  assert.equal(stats.tokens_per_s, 10);
  assert.equal(stats.n_cached, 4);
});

test('of an answer that came in one piece the whole time counts', () => {
  assert.equal(statsOf(2000, 2100).tokens_per_s, 10);
  assert.equal(statsOf(2000, 2000.2, 2100).tokens_per_s, 10); // a name and its arguments
});

test('an answer without text has a time all the same', () => {
  const stats = statsOf(500);
  assert.equal(stats.first_token_s, 0.5);
  assert.equal(stats.tokens_per_s, 42);
});
