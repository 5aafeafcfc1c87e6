// Models and chats, whole and streamed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANSWER, MODEL, THINKING, THOUGHT, UNSEEN_THOUGHTS, all, client, greedy, joined, question }
  from './server.mjs';

test('the model is in the list', async () => {
  const models = await all(client.models.list());
  assert.deepEqual(models.map((model) => [model.id, model.object]), [[MODEL, 'model']]);
});

test('a chat finds a planted fact', async () => {
  const chat = await client.chat.completions.create(greedy(question));
  assert.equal(chat.object, 'chat.completion');
  assert.equal(chat.model, MODEL);
  assert.equal(chat.choices.length, 1);
  assert.equal(chat.choices[0].message.role, 'assistant');
  assert.equal(chat.choices[0].message.content, ANSWER);
  assert.equal(chat.choices[0].finish_reason, 'stop');
  assert.ok(chat.usage.prompt_tokens > 100);
  assert.equal(chat.usage.total_tokens, chat.usage.prompt_tokens + chat.usage.completion_tokens);
});

test('a streamed chat is the same, with usage in the end', async () => {
  const whole = await client.chat.completions.create(greedy(question));
  const chunks = await all(await client.chat.completions.create({
    ...greedy(question), stream: true, stream_options: { include_usage: true } }));
  assert.equal(joined(chunks), ANSWER);
  assert.ok(chunks.length > 3, 'it came in pieces');
  assert.equal(chunks[0].choices[0].delta.role, 'assistant');
  assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  const usage = chunks.pop();
  assert.deepEqual(usage.choices, []);
  assert.equal(usage.usage.prompt_tokens, whole.usage.prompt_tokens);
  assert.equal(usage.usage.completion_tokens, whole.usage.completion_tokens);
  const reasons = chunks.map((chunk) => chunk.choices[0].finish_reason).filter(Boolean);
  assert.deepEqual(reasons, ['stop']);
});

test('the client puts a stream together', async () => {
  const stream = client.chat.completions.stream({
    ...greedy(question), stream_options: { include_usage: true } });
  assert.equal(await stream.finalContent(), ANSWER);
  assert.ok((await stream.totalUsage()).completion_tokens > 0);
});

test('a system message and earlier turns are read', async () => {
  const chat = await client.chat.completions.create({ ...greedy(question), messages: [
    { role: 'system', content: 'You answer questions.' },
    { role: 'user', content: [{ type: 'text', text: 'We met amber lantern today.' },
      { type: 'text', text: '\nWho is amber?' }] },
    { role: 'assistant', content: ANSWER },
    { role: 'user', content: 'Give me the full name of amber.' }] });
  assert.equal(chat.choices[0].message.content, ANSWER);
});

test('an answer ends where it must', async () => {
  const short = await client.chat.completions.create({
    ...greedy(question), max_tokens: undefined, max_completion_tokens: 2 });
  assert.equal(short.choices[0].finish_reason, 'length');
  assert.equal(short.usage.completion_tokens, 2);
  const stopped = await client.chat.completions.create({ ...greedy(question), stop: ' lantern' });
  assert.equal(stopped.choices[0].message.content, 'It is amber');
  assert.equal(stopped.choices[0].finish_reason, 'stop');
});

test('one question has several answers', async () => {
  const chat = await client.chat.completions.create({ ...greedy(question), n: 2 });
  assert.deepEqual(chat.choices.map((choice) => [choice.index, choice.message.content]),
    [[0, ANSWER], [1, ANSWER]]);
});

test('thoughts are no content, whole and streamed', UNSEEN_THOUGHTS, async () => {
  const body = { ...greedy(question), ...THINKING };
  const { message } = (await client.chat.completions.create(body)).choices[0];
  assert.equal(message.content, ANSWER);
  assert.equal(message.reasoning_content.trim(), THOUGHT);
  const chunks = await all(await client.chat.completions.create({ ...body, stream: true }));
  assert.equal(joined(chunks), ANSWER);
  assert.equal(joined(chunks, 'reasoning_content'), message.reasoning_content);
});
