// OpenAI's client: responses. Its streams are put together by the client itself, which insists on
// the order of events and on their indexes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { ANSWER, MODEL, THOUGHT, TOOL_ANSWER, TOOL_QUESTION, TOOL_RESULT, all, client, question,
  unlessLlamaServer } from './server.mjs';

const STREAMS = unlessLlamaServer('streams events without indexes');
const STORES = unlessLlamaServer('stores no responses');

const ask = (input) => ({ model: MODEL, input, temperature: 0, max_output_tokens: 200 });
const lookup = { type: 'function', name: 'lookup_name', description: 'The full name of a person.',
  strict: false, parameters: { type: 'object', properties: { first: { type: 'string' } },
    required: ['first'] } };
const result = (call) => ({ type: 'function_call_output', call_id: call.call_id,
  output: JSON.stringify(TOOL_RESULT) });

test('a response', async () => {
  const response = await client.responses.create(ask(question));
  assert.equal(response.output_text, ANSWER);
  assert.equal(response.status, 'completed');
  assert.ok(response.usage.input_tokens > 100 && response.usage.output_tokens > 0);
});

test('a stream becomes the same response', STREAMS, async () => {
  const stream = client.responses.stream(ask(question));
  const events = await all(stream);
  const response = await stream.finalResponse();
  assert.equal(response.output_text, ANSWER);
  const deltas = events.filter((event) => event.type === 'response.output_text.delta');
  assert.equal(deltas.map((event) => event.delta).join(''), ANSWER);
  assert.equal(events.at(-1).type, 'response.completed');
});

test('thoughts are reasoning', STREAMS, async () => {
  const thinking = { ...ask(question), reasoning: { effort: 'high' } };
  const response = await client.responses.stream(thinking).finalResponse();
  assert.deepEqual(response.output.map((item) => item.type), ['reasoning', 'message']);
  assert.equal(response.output[0].content[0].text.trim(), THOUGHT);
  assert.equal(response.output_text, ANSWER);
});

test('a tool is called and its result is used', STREAMS, async () => {
  const tools = [lookup, { type: 'web_search' }];
  const first = await client.responses.stream({ ...ask(TOOL_QUESTION), tools }).finalResponse();
  const [call] = first.output;
  assert.equal(call.type, 'function_call');
  assert.deepEqual(JSON.parse(call.arguments), { first: 'amber' });
  const items = [{ role: 'user', content: TOOL_QUESTION }, ...first.output, result(call)];
  const second = await client.responses.stream({ ...ask(items), tools }).finalResponse();
  assert.equal(second.output_text, TOOL_ANSWER);
});

test('a conversation goes on from a stored response', STORES, async () => {
  const tools = [lookup];
  const first = await client.responses.create({ ...ask(TOOL_QUESTION), tools });
  const second = await client.responses.create({ ...ask([result(first.output[0])]), tools,
    previous_response_id: first.id });
  assert.equal(second.output_text, TOOL_ANSWER);
  const { data } = await client.responses.inputItems.list(second.id, { order: 'asc' });
  assert.deepEqual(data.map((item) => item.type), ['message', 'function_call', 'function_call_output']);
  assert.equal((await client.responses.retrieve(first.id)).output[0].call_id, first.output[0].call_id);
  await client.responses.delete(first.id);
  await assert.rejects(client.responses.retrieve(first.id), { status: 404 });
});

test('an answer of a schema', STREAMS, async () => {
  const person = z.object({ name: z.enum(['amber', 'basil']), age: z.int().min(7).max(12) });
  const response = await client.responses.parse({ ...ask('Tell me about amber.'),
    text: { format: zodTextFormat(person, 'person') } });
  assert.ok(['amber', 'basil'].includes(response.output_parsed.name));
});

test('errors are of the types of the client', STORES, async () => {
  await assert.rejects(client.responses.create({ ...ask('x'), previous_response_id: 'resp_0' }),
    { status: 400, code: 'previous_response_not_found' });
  await assert.rejects(client.responses.create({ ...ask('x'), background: true }),
    { status: 400, param: 'background' });
});
