// Versions of a conversation, made, shown and kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { branched, everyMessage, switched, versionsOf } from '../src/chat/branches.ts';
import { type Conversation, type Message, newConversation } from '../src/chat/types.ts';

const message = (id: string, role: Message['role'] = 'assistant', more: Partial<Message> = {}): Message =>
  ({ id, role, content: `text of ${id}`, ...more });
const chat = (...messages: Message[]): Conversation => ({ ...newConversation(''), messages });
const ids = ({ messages }: Conversation) => messages.map(({ id }) => id).join(' ');
const change = (of: Conversation, by: Partial<Conversation> | null): Conversation => {
  assert.ok(by);
  return { ...of, ...by };
};
const shownAt = (of: Conversation, id: string) => {
  const versions = versionsOf(of).get(id);
  return versions ? `${versions.shown + 1}/${versions.n}` : '';
};

test('an answer had again, and all versions of it in their order', () => {
  let now = chat(message('q', 'user'), message('a'));
  assert.equal(versionsOf(now).size, 0);
  now = change(now, branched(now, 'q', [message('b')]));
  now = change(now, branched(now, 'q', [message('c')]));
  assert.equal(ids(now), 'q c');
  assert.equal(shownAt(now, 'c'), '3/3');
  now = change(now, switched(now, 'c', -1));
  assert.equal(ids(now), 'q b');
  assert.equal(shownAt(now, 'b'), '2/3');
  now = change(now, switched(now, 'b', -1));
  assert.equal(shownAt(now, 'a'), '1/3');
  assert.equal(switched(now, 'a', -1), null);
  // One more comes last, wherever it was made.
  now = change(now, branched(now, 'q', [message('d')]));
  assert.equal(shownAt(now, 'd'), '4/4');
  now = change(now, switched(now, 'd', -1));
  assert.equal(ids(now), 'q c');
  now = change(now, switched(now, 'c', 1));
  assert.equal(ids(now), 'q d');
  assert.equal(switched(now, 'd', 1), null);
});

test('what followed stays with its version, and versions lie within versions', () => {
  let now = chat(message('q1', 'user'), message('a1'), message('q2', 'user'), message('a2'));
  now = change(now, branched(now, 'q2', [message('a3')]));
  now = change(now, branched(now, '', [message('r1', 'user'), message('b1')])); // the first question edited
  assert.equal(ids(now), 'r1 b1');
  assert.equal(shownAt(now, 'r1'), '2/2');
  now = change(now, switched(now, 'r1', -1));
  assert.equal(ids(now), 'q1 a1 q2 a3');
  assert.equal(shownAt(now, 'a3'), '2/2');
  now = change(now, switched(now, 'a3', -1));
  assert.equal(ids(now), 'q1 a1 q2 a2');
  assert.deepEqual(everyMessage(now).map(({ id }) => id).sort(), ['a1', 'a2', 'a3', 'b1', 'q1', 'q2', 'r1']);
});

test('an answer that failed without a word is no version', () => {
  const failed = message('a', 'assistant', { content: '', error: 'The server cannot be reached' });
  let now = chat(message('q', 'user'), failed);
  now = change(now, branched(now, 'q', [message('b')]));
  assert.equal(versionsOf(now).size, 0);
  const cut = message('c', 'assistant', { error: 'The connection ended' });
  now = change(now, branched(now, 'q', [cut]));
  now = change(now, branched(now, 'q', []));
  assert.equal(now.branches!.length, 2);
});

test('what is not there cannot be switched', () => {
  assert.equal(switched(chat(message('a')), 'z', 1), null);
  assert.equal(switched(chat(message('a')), 'a', 1), null);
});

test('walking at random loses nothing', () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 48271) % 0x7fffffff) % n;
  let now = chat(message('m0', 'user'));
  let n_made = 1;
  for (let i = 0; i < 500; ++i) {
    const at = random(now.messages.length + 1);
    if (random(2) === 0) {
      const after = at === 0 ? '' : now.messages[at - 1]!.id;
      const tail = Array.from({ length: 1 + random(3) }, () => message(`m${n_made++}`, 'user'));
      now = change(now, branched(now, after, tail));
    } else if (at < now.messages.length) {
      now = { ...now, ...switched(now, now.messages[at]!.id, random(2) === 0 ? 1 : -1) };
    }
    assert.equal(new Set(everyMessage(now).map(({ id }) => id)).size, n_made);
    assert.equal(everyMessage(now).length, n_made);
  }
  // From the top, each version is reached.
  const first = () => now.messages[0]!.id;
  while (switched(now, first(), -1)) now = change(now, switched(now, first(), -1));
  let n = 1;
  while (switched(now, first(), 1)) {
    now = change(now, switched(now, first(), 1));
    n += 1;
  }
  assert.equal(n, versionsOf(now).get(first())!.n);
});
