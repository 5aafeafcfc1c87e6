// The sources of an answer under the numbers that it gives them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sourcesOf } from '../src/chat/sources.ts';

const cite = (name: string, start = 0, end = 0) =>
  ({ url: `file:///${name}#L1-L2`, title: name, start, end });
const numbered = (content: string, citations: ReturnType<typeof cite>[]) =>
  sourcesOf(content, citations).map(({ title, number }) => [title, number]);

test('sources have the numbers of the text, and each is there once', () => {
  const content = '🌊 It waits [3], and then [1, 2]. So [3].';
  const at = (text: string, from = 0) => {
    const idx = [...content].findIndex((_, i, all) =>
      i >= from && all.slice(i, i + text.length).join('') === text);
    return [idx, idx + text.length] as const;
  };
  const [first, both, again] = [at('[3]'), at('[1, 2]'), at('[3]', 20)];
  assert.deepEqual(first, [11, 14], 'characters, not halves of them');
  assert.deepEqual(numbered(content, [cite('c', ...first), cite('a', ...both), cite('b', ...both),
    cite('c', ...again), cite('e')]), [['a', 1], ['b', 2], ['c', 3], ['e', null]]);
});

test('what the answer does not name has no number', () => {
  assert.deepEqual(numbered('No [1] here', [cite('a'), cite('b')]), [['a', null], ['b', null]]);
  assert.deepEqual(sourcesOf('', []), []);
});

test('of a bracket with other numbers too nothing is guessed', () => {
  assert.deepEqual(numbered('It [9, 1]', [cite('a', 3, 9)]), [['a', null]]);
  assert.deepEqual(numbered('It [9, 1] [1]', [cite('a', 3, 9), cite('a', 10, 13)]), [['a', 1]]);
});
