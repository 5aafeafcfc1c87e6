// What becomes of a file that is attached, and of a chat that is deleted, without a browser.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

const kept = new Map<string, string>();
class FakeRequest {
  static answer: { status: number; text: string } | 'gone' = { status: 200, text: '{}' };
  static sent: string[] = [];
  static whileReading = () => undefined as void;
  upload = { onload: () => undefined as void };
  status = 0;
  responseText = '';
  onload = () => undefined as void;
  onerror = () => undefined as void;
  onabort = () => undefined as void;
  path = '';
  open(_method: string, path: string) { this.path = path; }
  setRequestHeader() {}
  abort() { this.onabort(); }
  send() {
    FakeRequest.sent.push(this.path);
    const { answer } = FakeRequest;
    queueMicrotask(() => {
      if (answer === 'gone') return this.onerror();
      this.upload.onload();
      FakeRequest.whileReading();
      this.status = answer.status;
      this.responseText = answer.text;
      this.onload();
    });
  }
}
Object.assign(globalThis, {
  window: globalThis, document: { documentElement: { dataset: {} } }, XMLHttpRequest: FakeRequest,
  localStorage: {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value) },
});
const { attachFiles, compareWithServer, dismiss, forget, isAttaching, pending, removeFile, tellDeleted } =
  await import('../src/chat/attaching.ts');
const { add, find } = await import('../src/chat/store.ts');
const { newConversation } = await import('../src/chat/types.ts');

const LIMITS = { bytes: 0, bytes_max: 1e9, file_bytes_max: 100, files_of_chat_max: 32 };
const asked: string[] = [];
let answer = (_method: string) => new Response('{}');
globalThis.fetch = async (path, init) => {
  const method = init?.method ?? 'GET';
  asked.push(`${method} ${String(path)}`);
  return answer(method);
};
const settled = async (chat: string) => {
  for (let i = 0; i < 100 && isAttaching(chat); ++i) await new Promise((done) => setTimeout(done, 1));
};
const whys = (chat: string) => (pending.value.get(chat) ?? []).map(({ name, why }) => [name, why]);
const begun = () => {
  const chat = newConversation('');
  add(chat);
  return chat.id;
};
const ready = (name: string, chunks = 1) => ({ status: 200, text: JSON.stringify({ name, chunks }) });

beforeEach(() => {
  asked.length = 0;
  FakeRequest.sent.length = 0;
  FakeRequest.whileReading = () => undefined;
  kept.clear();
});

test('a file that was read is kept with its chat, once for each name', async () => {
  const chat = begun();
  FakeRequest.answer = ready('a b.txt', 3);
  attachFiles(chat, [new File(['x'], 'a b.txt')], LIMITS);
  assert.ok(isAttaching(chat));
  await settled(chat);
  FakeRequest.answer = ready('a b.txt', 4);
  attachFiles(chat, [new File(['y'], 'a b.txt')], LIMITS);
  await settled(chat);
  assert.deepEqual(find(chat)!.attached, [{ name: 'a b.txt', chunks: 4 }]);
  assert.deepEqual(whys(chat), []);
  assert.equal(FakeRequest.sent[0], `/slipstream/attachments/${chat}/a%20b.txt`);
});

test('what is refused says why and is not kept; what is too large is not sent', async () => {
  const chat = begun();
  FakeRequest.answer = { status: 415, text: '{"error":{"message":"a.bin cannot be attached: binary"}}' };
  attachFiles(chat, [new File(['x'], 'a.bin'), new File(['x'.repeat(101)], 'b.txt')], LIMITS);
  await settled(chat);
  assert.deepEqual(whys(chat), [['a.bin', 'a.bin cannot be attached: binary'], ['b.txt', 'larger than 100\u00a0B']]);
  assert.equal(FakeRequest.sent.length, 1);
  assert.equal(find(chat)!.attached, undefined);
  FakeRequest.answer = 'gone';
  attachFiles(chat, [new File(['x'], 'a.bin')], LIMITS);
  await settled(chat);
  assert.match(whys(chat).at(-1)![1]!, /cannot be reached/);
  for (const one of pending.value.get(chat)!) dismiss(chat, one);
  assert.deepEqual(whys(chat), []);
});

test('what could not be removed stays, and says so', async () => {
  const chat = begun();
  FakeRequest.answer = ready('a.txt');
  attachFiles(chat, [new File(['x'], 'a.txt')], LIMITS);
  await settled(chat);
  answer = () => new Response('{"error":{"message":"busy"}}', { status: 429 });
  await removeFile(chat, 'a.txt');
  assert.deepEqual(whys(chat), [['a.txt', 'it could not be removed: busy']]);
  assert.equal(find(chat)!.attached!.length, 1);
  answer = () => new Response('{}', { status: 404 });
  await removeFile(chat, 'a.txt');
  assert.deepEqual(find(chat)!.attached, [], 'gone already is gone');
});

test('what the server has no longer is told, and what it does not say is not', async () => {
  const chat = begun();
  FakeRequest.answer = ready('a.txt');
  attachFiles(chat, [new File(['x'], 'a.txt')], LIMITS);
  await settled(chat);
  answer = () => new Response('{}', { status: 500 });
  await compareWithServer(chat);
  assert.equal(find(chat)!.attached!.length, 1);
  answer = () => new Response('{}', { status: 404 });
  await compareWithServer(chat);
  assert.deepEqual(find(chat)!.attached, []);
  assert.match(whys(chat)[0]![1]!, /no longer/);
});

test('a deleted chat is told to the server until it knows', async () => {
  const [chat, plain] = [begun(), begun()];
  FakeRequest.answer = ready('a.txt');
  attachFiles(chat, [new File(['x'], 'a.txt')], LIMITS);
  await settled(chat);
  answer = () => new Response('{}', { status: 503 });
  await forget([chat, plain]);
  assert.equal(find(chat), undefined);
  assert.equal(find(plain), undefined);
  const told = `DELETE /slipstream/attachments/${chat}`;
  assert.deepEqual(asked, [told]);
  answer = () => new Response('{}');
  await tellDeleted();
  await tellDeleted();
  assert.deepEqual(asked, [told, told]);
});

test('what is given up while the server reads it is removed when it was read', async () => {
  const [chat, gone] = [begun(), begun()];
  FakeRequest.answer = ready('a.txt');
  answer = () => new Response('{}');
  FakeRequest.whileReading = () => {
    if (isAttaching(chat)) return dismiss(chat, pending.value.get(chat)![0]!);
    void forget([gone]);
  };
  attachFiles(chat, [new File(['x'], 'a.txt')], LIMITS);
  attachFiles(gone, [new File(['x'], 'a.txt')], LIMITS);
  await settled(gone);
  await new Promise((done) => setTimeout(done, 5));
  assert.equal(find(chat)!.attached?.length ?? 0, 0);
  assert.equal(asked[0], `DELETE /slipstream/attachments/${chat}/a.txt`);
  assert.equal(asked.at(-1), `DELETE /slipstream/attachments/${gone}/a.txt`);
});
