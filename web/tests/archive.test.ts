// Chats as a file and back, and files that somebody made to do harm.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ARCHIVE_LIMITS, archiveOf, readArchive } from '../src/chat/archive.ts';
import { PRESETS_MAX, isFull, presetOf, withPreset } from '../src/chat/presets.ts';
import { requestOf } from '../src/chat/request.ts';
import { type Conversation, NO_SAMPLING, newConversation, titleOf } from '../src/chat/types.ts';

const full: Conversation = {
  ...newConversation('needle'), title: 'T', changed_ms: 1000, system: 'Be brief', thinking: 'low', tools: '[]',
  schema: '{"type": "object"}', sampling: { ...NO_SAMPLING, temperature: '0.5', seed: '7' },
  files: { is_on: true, project: '/p', budget: '500' }, attached: [{ name: 'a.txt', chunks: 2 }],
  messages: [
    { id: 'q', role: 'user', content: 'Who?' },
    { id: 'a', role: 'assistant', content: 'It', reasoning: 'Hm', model: 'needle', is_cut: true, note: 'Stopped',
      calls: [{ id: 'c', name: 'f', arguments: '{}' }],
      citations: [{ url: 'file:///a#L1', title: 'a:1', start: 1, end: 2 }],
      stats: { n_prompt: 1, n_cached: 0, n_recomputed: 0, n_dropped: 0, n_generated: 2, n_accepted: 0, first_token_s: 0.5,
        tokens_per_s: null } },
    { id: 't', role: 'tool', content: '{}', call_id: 'c' },
  ],
  branches: [{ after: 'q', number: 0, messages: [{ id: 'b', role: 'assistant', content: 'Other', is_json: true }] }],
};
const PRESET = { name: 'Brief', system: 'Be brief', thinking: 'off' as const, sampling: NO_SAMPLING };

test('what was exported comes back as it was', () => {
  const { conversations, presets, n_known } = readArchive(archiveOf([full], [PRESET]), []);
  assert.deepEqual(conversations, [full]);
  assert.deepEqual(presets, [PRESET]);
  assert.equal(n_known, 0);
});

test('exports of older versions are read', () => {
  const { branches: _branches, schema: _schema, ...old } = full;
  const json = JSON.stringify({ kind: 'slipstream-export', version: 1, settings: { theme: 'dark' }, conversations: [old] });
  const [read] = readArchive(json, []).conversations;
  assert.deepEqual(read, { ...old, schema: '' });
});

test('a chat that is here is not taken again; a newer one of its id becomes another', () => {
  const json = archiveOf([full], []);
  assert.deepEqual(readArchive(json, [full]), { conversations: [], presets: [], n_known: 1 });
  const [copy] = readArchive(archiveOf([{ ...full, changed_ms: 2000 }], []), [full]).conversations;
  assert.notEqual(copy!.id, full.id);
  assert.equal(copy!.attached, undefined, 'the files belong to the other one');
  assert.deepEqual(copy!.messages, full.messages);
  assert.equal(readArchive(JSON.stringify({ kind: 'slipstream-export', version: 1,
    conversations: [full, full] }), []).conversations.length, 1, 'nor twice of one file');
});

const wrapped = (conversations: unknown, more: object = {}) =>
  JSON.stringify({ kind: 'slipstream-export', version: 1, conversations, ...more });

test('what is no export is refused', () => {
  for (const [json, why] of [
    ['', /not JSON/], ['{', /not JSON/], ['[]', /no export/], ['null', /no export/], ['{"kind": "other"}', /no export/],
    [wrapped([], { version: 2 }), /newer version/],
    [wrapped(Array.from({ length: ARCHIVE_LIMITS.conversations_max + 1 }, () => 0)), /more than 10000 chats/],
  ] as [string, RegExp][]) assert.throws(() => readArchive(json, []), why, json.slice(0, 80));
});

const HOSTILE: unknown[] = [
  null, 7, 'text', [], {}, [[]], true,
  { ...full, id: '../../v1/models' }, { ...full, id: { toString: 1 } }, { ...full, id: '__proto__' },
  { ...full, title: { $$typeof: 1, __html: '<b>' }, model: ['a'], system: 7, tools: {}, schema: [] },
  { ...full, messages: [full.messages[0], full.messages[0]] },
  { ...full, messages: 'text' }, { ...full, messages: { length: 1e9 } }, { ...full, messages: [null, 7, [], 'x', {}] },
  { ...full, messages: [{ id: 'a', role: 'system', content: 'x' }, { id: 'a<b>', role: 'user', content: 'x' }] },
  { ...full, messages: [{ id: 'a', role: 'user', content: { toString: 'x', __html: '<img>' } }] },
  { ...full, messages: [{ id: 'a', role: 'assistant', content: 'x', stats: { n_prompt: 'x', tokens_per_s: {} },
    calls: { 0: 1 }, citations: [null, { url: 7, start: -1, end: 1e999 }], note: {}, error: [], reasoning: 7 }] },
  { ...full, branches: [{ after: 'q', number: 0, messages: [] }, { after: 7, number: 'x', messages: [{ id: 'z', role: 'user' }] },
    { after: 'q', number: -5, messages: [{ id: 'y', role: 'user', content: 'y' }] },
    { after: 'q', number: 0, messages: [{ id: 'w', role: 'user', content: 'w' }] }] },
  { ...full, sampling: { temperature: '1e999', top_p: '<b>', top_k: 5, seed: '12; x' }, thinking: '__proto__' },
  { ...full, files: { is_on: 'yes', project: {}, budget: {} }, attached: [{ name: {}, chunks: 'x' }, null] },
  { ...full, changed_ms: 1e300 }, { ...full, changed_ms: 'soon' },
  JSON.parse('{"__proto__": {"polluted": 1}, "id": "p", "messages": [{"id": "m", "role": "user", "content": "x", "__proto__": {"polluted": 1}}]}'),
];

test('whatever a file has, a chat of it has the right kinds, and can be asked', () => {
  for (const one of HOSTILE) {
    const { conversations } = readArchive(wrapped([one]), []);
    for (const read of conversations) {
      assert.match(read.id, /^[\w-]{1,64}$/);
      for (const field of ['title', 'model', 'system', 'tools', 'schema', 'thinking'] as const) {
        assert.equal(typeof read[field], 'string', field);
      }
      assert.ok(read.changed_ms >= 0 && read.changed_ms <= Date.now());
      const ids = new Set<string>();
      for (const message of [...read.messages, ...(read.branches ?? []).flatMap(({ messages }) => messages)]) {
        assert.match(message.id, /^[\w-]{1,64}$/);
        assert.ok(!ids.has(message.id));
        ids.add(message.id);
        assert.equal(typeof message.content, 'string');
        for (const value of Object.values(message.stats ?? {})) assert.ok(value === null || Number.isFinite(value));
      }
      titleOf(read);
      requestOf({ ...read, tools: '', schema: '' }, NO_SAMPLING);
    }
  }
  assert.equal(({} as { polluted?: number }).polluted, undefined);
});

test('whatever a file has in place of presets, they are presets', () => {
  for (const presets of [null, 7, {}, [null, 7, {}, { name: 7 }, { name: ' ' }, { name: 'x'.repeat(1000), system: {}, thinking: 1, sampling: 7 }],
    Array.from({ length: 500 }, (_, idx) => ({ name: `n${idx}` }))]) {
    const read = readArchive(wrapped([], { presets }), []).presets;
    assert.ok(read.length <= PRESETS_MAX);
    for (const { name, system, thinking, sampling } of read) {
      assert.ok(name.length > 0 && name.length <= 60);
      assert.deepEqual([system, thinking, sampling], ['', '', NO_SAMPLING]);
    }
  }
});

test('as long as it may be, and one more', () => {
  const message = (n: number) => ({ id: `m${n}`, role: 'user', content: 'x' });
  const many = Array.from({ length: ARCHIVE_LIMITS.messages_max + 1 }, (_, n) => message(n));
  const begin = process.cpuUsage();
  const [read] = readArchive(wrapped([{ ...full, branches: [], messages: many }]), []).conversations;
  assert.equal(read!.messages.length, ARCHIVE_LIMITS.messages_max);
  const [deep] = readArchive(wrapped([{ ...full, messages: many.slice(0, 6000),
    branches: [{ after: 'm1', number: 0, messages: Array.from({ length: 6000 }, (_, n) => message(10_000 + n)) }] }]), []).conversations;
  assert.equal(deep!.messages.length + deep!.branches![0]!.messages.length, ARCHIVE_LIMITS.messages_max);
  const chats = Array.from({ length: ARCHIVE_LIMITS.conversations_max }, (_, n) =>
    ({ id: `c${n}`, messages: [message(0)] }));
  assert.equal(readArchive(wrapped(chats), []).conversations.length, ARCHIVE_LIMITS.conversations_max);
  const long = 'y'.repeat(ARCHIVE_LIMITS.text_chars_max + 1);
  const [text] = readArchive(wrapped([{ ...full, messages: [{ id: 'a', role: 'user', content: long }] }]), []).conversations;
  assert.equal(text!.messages[0]!.content.length, ARCHIVE_LIMITS.text_chars_max);
  assert.throws(() => readArchive(`${'['.repeat(200_000)}`, []), /not JSON/);
  const { user, system } = process.cpuUsage(begin);
  assert.ok(user + system < 5e6, `${user + system} µs`);
});

test('presets are replaced by name, and no more than may be', () => {
  const chat = { ...newConversation(''), system: 'Be kind' };
  let presets = withPreset([], presetOf(' B ', chat));
  presets = withPreset(presets, presetOf('A', chat));
  presets = withPreset(presets, presetOf('B', { ...chat, system: 'Be brief' }));
  assert.deepEqual(presets.map(({ name, system }) => [name, system]), [['A', 'Be kind'], ['B', 'Be brief']]);
  const many = Array.from({ length: PRESETS_MAX }, (_, n) => presetOf(`n${n}`, chat));
  assert.ok(isFull(many, 'new'));
  assert.ok(!isFull(many, 'n5'));
  assert.equal(withPreset(many, presetOf('new', chat)).length, PRESETS_MAX);
});
