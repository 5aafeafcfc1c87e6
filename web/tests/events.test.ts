// The reader of streamed answers, whatever pieces they come in.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readChat } from '../src/api/chat_stream.ts';
import { readEvents } from '../src/api/events.ts';

function streamOf(text: string, n_bytes: number, onCancel?: () => void) {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at += n_bytes));
    },
    ...(onCancel && { cancel: onCancel }),
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const chunk = (delta: object, rest = {}) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`;

test('events survive being cut anywhere, also within a character', async () => {
  const text = ': a comment\n\ndata: grüße 🌊\n\ndata: two\ndata: lines\r\n\r\ndata: [DONE]\n\n';
  for (let n_bytes = 1; n_bytes < 20; ++n_bytes) {
    assert.deepEqual(await all(readEvents(streamOf(text, n_bytes))),
      ['grüße 🌊', 'two\nlines', '[DONE]'], `in pieces of ${n_bytes}`);
  }
});

test('content, reasoning, calls and usage are told apart', async () => {
  const text = chunk({ role: 'assistant', content: '' }) +
    chunk({}, { prompt_progress: { total: 9, cache: 2, processed: 5, time_ms: 3 } }) +
    chunk({ reasoning_content: 'I look.' }) +
    chunk({ content: 'It is' }) +
    chunk({ tool_calls: [{ index: 1, id: 'c', function: { name: 'f', arguments: '' } }] }) +
    chunk({ tool_calls: [{ index: 1, function: { arguments: '{"a"' } }] }) +
    `data: ${JSON.stringify({ choices: [{ delta: {}, finish_reason: 'tool_calls' }] })}\n\n` +
    `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 4,
      prompt_tokens_details: { cached_tokens: 7, recomputed_tokens: 1, dropped_turns: 3 } } })}\n\n` +
    'data: [DONE]\n\n';
  assert.deepEqual(await all(readChat(streamOf(text, 11))), [
    { kind: 'progress', progress: { n_prompt: 9, n_cached: 2, n_done: 5 } },
    { kind: 'reasoning', text: 'I look.' },
    { kind: 'content', text: 'It is' },
    { kind: 'call', index: 1, arguments: '', id: 'c', name: 'f' },
    { kind: 'call', index: 1, arguments: '{"a"' },
    { kind: 'finish', reason: 'tool_calls' },
    { kind: 'usage', usage: { n_prompt: 9, n_cached: 7, n_recomputed: 1, n_generated: 4, n_dropped: 3 } },
  ]);
});

test('guessed tokens are counted if there were some', async () => {
  const end = (timings: object) => `data: ${JSON.stringify({ choices: [], timings,
    usage: { prompt_tokens: 9, completion_tokens: 8 } })}\n\ndata: [DONE]\n\n`;
  const usage = { n_prompt: 9, n_cached: 0, n_recomputed: 0, n_generated: 8, n_dropped: 0 };
  assert.deepEqual(await all(readChat(streamOf(end({ draft_n: 6, draft_n_accepted: 4 }), 30))),
    [{ kind: 'usage', usage: { ...usage, n_accepted: 4 } }]);
  assert.deepEqual(await all(readChat(streamOf(end({ prompt_n: 9 }), 30))), [{ kind: 'usage', usage }]);
});

test('citations come with the end', async () => {
  const cite = (url: string, more = {}) => ({ type: 'url_citation', url_citation: { url, ...more } });
  const end = (annotations: object[]) => `data: ${JSON.stringify({ choices: [
    { index: 0, delta: { annotations }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;
  const [a, b] = ['file:///p/a.md#L1-L3', 'file:///p/b.c#L7-L7'];
  const text = chunk({ content: 'It [1]' }) + end([
    cite(a, { title: 'a.md:1-3', start_index: 3, end_index: 6 }), { type: 'file_citation' }, cite(b)]);
  assert.deepEqual(await all(readChat(streamOf(text, 9))), [
    { kind: 'content', text: 'It [1]' },
    { kind: 'citations', citations: [
      { url: a, title: 'a.md:1-3', start: 3, end: 6 }, { url: b, title: b, start: 0, end: 0 }] },
    { kind: 'finish', reason: 'stop' },
  ]);
  assert.deepEqual(await all(readChat(streamOf(end([]), 9))), [{ kind: 'finish', reason: 'stop' }]);
});

test('a stream that breaks off is no complete answer', async () => {
  await assert.rejects(all(readChat(streamOf(chunk({ content: 'It' }), 8))), /ended before/);
});

test('an error within a stream is the answer\'s error', async () => {
  const text = chunk({ content: 'It' }) + 'data: {"error": {"message": "out of cells"}}\n\n';
  await assert.rejects(all(readChat(streamOf(text, 8))), /out of cells/);
});

test('who stops reading closes the stream', async () => {
  let is_cancelled = false;
  const text = chunk({ content: 'a' }).repeat(1000);
  for await (const _ of readChat(streamOf(text, 64, () => { is_cancelled = true; }))) break;
  assert.ok(is_cancelled);
});
