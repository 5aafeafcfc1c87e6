// Anthropic's own client: messages whole and streamed, tools, counted tokens, errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { ANSWER, KEY, KEYED_URL, MODEL, N_CONTEXT, SERVER_URL, THOUGHT, TOOL_ANSWER, TOOL_QUESTION,
  TOOL_RESULT, UNSEEN_THOUGHTS, all, haystack, question, unlessLlamaServer } from './server.mjs';

const clientOf = (baseURL, apiKey = 'any') => new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const client = clientOf(SERVER_URL);

const asking = (content, rest = {}) => ({
  model: MODEL, max_tokens: 64, temperature: 0, messages: [{ role: 'user', content }], ...rest });

const TOOLS = [{ name: 'lookup_name', description: 'The full name of a person.', input_schema: {
  type: 'object', properties: { first: { type: 'string' } }, required: ['first'] } }];

test('a message finds a planted fact', async () => {
  const message = await client.messages.create(asking(question));
  assert.equal(message.type, 'message');
  assert.equal(message.role, 'assistant');
  assert.equal(message.model, MODEL);
  assert.deepEqual(message.content.map(({ type, text }) => [type, text]), [['text', ANSWER]]);
  assert.equal(message.stop_reason, 'end_turn');
  assert.ok(message.usage.output_tokens > 0);
});

test('a streamed message is the same, its events in order', async () => {
  const events = await all(await client.messages.create({ ...asking(question), stream: true }));
  const names = events.map((event) => event.type)
    .filter((name, i, list) => name !== 'ping' && name !== list[i - 1]);
  assert.deepEqual(names, ['message_start', 'content_block_start', 'content_block_delta',
    'content_block_stop', 'message_delta', 'message_stop']);
  assert.equal(events.filter((event) => event.type === 'content_block_delta')
    .map((event) => event.delta.text).join(''), ANSWER);
  const { usage, delta } = events.find((event) => event.type === 'message_delta');
  assert.equal(delta.stop_reason, 'end_turn');
  assert.ok(usage.output_tokens > 0);
});

test('the client puts a stream together', async () => {
  const stream = client.messages.stream(asking(question));
  assert.equal(await stream.finalText(), ANSWER);
});

test('a tool is called, streamed and whole, and its result is read', async () => {
  const body = asking(TOOL_QUESTION, { tools: TOOLS });
  const streamed = await client.messages.stream(body).finalMessage();
  const whole = await client.messages.create(body);
  for (const message of [streamed, whole]) {
    assert.equal(message.stop_reason, 'tool_use');
    const call = message.content.at(-1);
    assert.deepEqual([call.type, call.name, call.input],
      ['tool_use', 'lookup_name', { first: 'amber' }]);
    const answer = await client.messages.create({ ...body, messages: [
      ...body.messages, { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id,
        content: [{ type: 'text', text: JSON.stringify(TOOL_RESULT) }] }] }] });
    assert.equal(answer.content[0].text, TOOL_ANSWER);
  }
});

test('a call can be demanded', unlessLlamaServer('takes no tool_choice of this API'), async () => {
  const message = await client.messages.create(asking('Say hello.', {
    tools: TOOLS, tool_choice: { type: 'tool', name: 'lookup_name' } }));
  assert.equal(message.content.at(-1).name, 'lookup_name');
});

test('thoughts are blocks with a signature, and come back', UNSEEN_THOUGHTS, async () => {
  const body = asking(question, { thinking: { type: 'enabled', budget_tokens: 1024 } });
  const message = await client.messages.stream(body).finalMessage();
  const [thinking, text] = message.content;
  assert.equal(thinking.type, 'thinking');
  assert.equal(thinking.thinking.trim(), THOUGHT);
  assert.ok(thinking.signature);
  assert.equal(text.text, ANSWER);
  const again = await client.messages.create({ ...body, messages: [
    ...body.messages, { role: 'assistant', content: message.content },
    { role: 'user', content: 'Give me the full name of amber.' }] });
  assert.equal(again.content.at(-1).text, ANSWER);
});

test('a stop sequence is named', unlessLlamaServer('says end_turn'), async () => {
  const message = await client.messages.create(asking(question, { stop_sequences: [' lantern'] }));
  assert.equal(message.content[0].text, 'It is amber');
  assert.deepEqual([message.stop_reason, message.stop_sequence], ['stop_sequence', ' lantern']);
});

test('usage tells what was cached', unlessLlamaServer('does not tell it apart'), async () => {
  const system = [{ type: 'text', text: `${haystack.slice(0, 900)}`,
    cache_control: { type: 'ephemeral' } }];
  const first = await client.messages.create(asking('Who is amber?', { system }));
  const second = await client.messages.create(asking('Who is birch?', { system }));
  const all = (usage) =>
    usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens;
  const { input_tokens } = await client.messages.countTokens({
    model: MODEL, system, messages: [{ role: 'user', content: 'Who is birch?' }] });
  assert.equal(all(second.usage), input_tokens);
  assert.ok(first.usage.cache_creation_input_tokens > 0);
  assert.ok(second.usage.cache_read_input_tokens > 0.9 * input_tokens);
});

test('an answer may be shorter than asked for, a prompt not longer than the context',
  unlessLlamaServer('says it in its own words'), async () => {
    const message = await client.messages.create({ ...asking(question), max_tokens: 16000 });
    assert.equal(message.content[0].text, ANSWER);
    const long = haystack.repeat(Math.ceil(5 * N_CONTEXT / haystack.length) + 1);
    await assert.rejects(client.messages.create(asking(long)), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.match(error.message, /prompt is too long: \d+ tokens > \d+ maximum/);
      return true;
    });
  });

test('errors have their types', unlessLlamaServer('has other ones'), async () => {
  await assert.rejects(client.messages.create({ ...asking('hi'), model: 'none' }),
    Anthropic.NotFoundError);
  await assert.rejects(client.messages.create(asking([{ type: 'image', source: {
    type: 'base64', media_type: 'image/png', data: '' } }])), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.equal(error.error.error.type, 'invalid_request_error');
    return true;
  });
  await assert.rejects(clientOf(KEYED_URL, 'wrong').messages.create(asking('hi')),
    Anthropic.AuthenticationError);
  const message = await clientOf(KEYED_URL, KEY).messages.create(asking(question));
  assert.equal(message.content[0].text, ANSWER);
});
