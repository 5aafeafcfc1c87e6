// From a question to what is kept of its answer, without a browser: chats then live in memory alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';

Object.assign(globalThis, { window: globalThis, document: { documentElement: { dataset: {} } } });
// What they import reads these at once.
const { say } = await import('../src/chat/answering.ts');
const { add, find } = await import('../src/chat/store.ts');
const { newConversation } = await import('../src/chat/types.ts');

test('what an answer cites is kept with it, and the files that were searched with the chat', async () => {
  const sent: { retrieval?: object }[] = [];
  globalThis.fetch = async (_path, init) => {
    sent.push(JSON.parse(String(init?.body)));
    const annotations = [{ type: 'url_citation', url_citation: {
      url: 'file:///p/a.md#L1-L3', title: 'a.md:1-3', start_index: 0, end_index: 2 } }];
    return new Response([
      { choices: [{ delta: { content: 'It waits.' } }] },
      { choices: [{ delta: { annotations }, finish_reason: 'stop' }] },
    ].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('') + 'data: [DONE]\n\n');
  };
  const files = { is_on: true, project: '/p', budget: '' };
  const chat = { ...newConversation('needle'), files };
  add(chat);
  await say(chat.id, 'What does it do?');
  assert.deepEqual(sent[0]!.retrieval, { project: '/p' });
  const kept = find(chat.id)!;
  assert.deepEqual(kept.files, files);
  assert.equal(kept.messages[1]!.content, 'It waits.');
  assert.deepEqual(kept.messages[1]!.citations, [
    { url: 'file:///p/a.md#L1-L3', title: 'a.md:1-3', start: 0, end: 2 }]);
});
