// Texts continued, and log-probabilities of both kinds of answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL, all, client, greedy, question, unlessLlamaServer } from './server.mjs';

const PROMPT = 'Once upon a time, ü';
const BODY = { model: MODEL, prompt: PROMPT, max_tokens: 12, temperature: 0 };

test('a text is continued, whole and streamed', async () => {
  const whole = await client.completions.create(BODY);
  assert.equal(whole.object, 'text_completion');
  assert.equal(whole.choices[0].finish_reason, 'length');
  assert.equal(whole.usage.completion_tokens, 12);
  assert.ok(whole.choices[0].text.length > 0);
  const chunks = await all(await client.completions.create({ ...BODY, stream: true }));
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.text ?? '').join(''), whole.choices[0].text);
});

test('several prompts, several answers', async () => {
  const { choices } = await client.completions.create({ ...BODY, prompt: [PROMPT, 'The sea'] });
  assert.deepEqual(choices.map((choice) => choice.index), [0, 1]);
  assert.notEqual(choices[0].text, choices[1].text);
});

test('a prompt is echoed', unlessLlamaServer('has no echo'), async () => {
  const { choices: [{ text }] } = await client.completions.create(BODY);
  const echoed = await client.completions.create({ ...BODY, echo: true });
  assert.equal(echoed.choices[0].text, PROMPT + text);
});

const IN_CHAT_FORM = unlessLlamaServer('gives completions log-probabilities in the form of chats');

test('log-probabilities of a completion', IN_CHAT_FORM, async () => {
  const { choices: [{ text, logprobs }], usage } = await client.completions.create({
    ...BODY, logprobs: 2, echo: true });
  const { tokens, token_logprobs: values, top_logprobs: tops, text_offset: offsets } = logprobs;
  assert.equal(tokens.length, usage.total_tokens);
  for (const list of [values, tops, offsets]) assert.equal(list.length, tokens.length);
  // Offsets count characters, not bytes: every token stands where its offset says.
  const characters = [...text];
  tokens.forEach((token, i) => {
    const end = offsets[i + 1] ?? characters.length;
    if (!token.includes('\uFFFD')) assert.equal(characters.slice(offsets[i], end).join(''), token);
  });
  assert.equal(values[0], null, 'nothing comes before the first token');
  assert.ok(values.slice(1).every((value) => value <= 0));
  // Greedy: what was taken is the likeliest.
  const [last, top] = [tokens.at(-1), tops.at(-1)];
  assert.equal(Object.keys(top).length, 2);
  assert.equal(top[last], Math.max(...Object.values(top)));
});

test('log-probabilities of a chat', async () => {
  const { choices: [{ message, logprobs }] } = await client.chat.completions.create({
    ...greedy(question), logprobs: true, top_logprobs: 3 });
  const text = logprobs.content.map((entry) => entry.token).join('');
  assert.ok(text.startsWith(message.content), text);
  for (const { token, logprob, bytes, top_logprobs: top } of logprobs.content) {
    assert.equal(Buffer.from(bytes).toString(), token);
    assert.ok(logprob <= 0);
    assert.equal(top.length, 3);
    assert.deepEqual([top[0].token, top[0].logprob], [token, logprob]);
  }
});
