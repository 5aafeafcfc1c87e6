// A tool from the question to the answer, with the model's own call.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TOOL_ANSWER, TOOL_QUESTION, TOOL_RESULT, all, client, greedy } from './server.mjs';

const TOOL = { type: 'function', function: {
  name: 'lookup_name', description: 'The full name of a person.',
  parameters: { type: 'object', properties: { first: { type: 'string' } },
    required: ['first'] } } };
const BODY = { ...greedy(TOOL_QUESTION), tools: [TOOL] };

function checkCall(call) {
  assert.match(call.id, /./);
  assert.equal(call.type, 'function');
  assert.equal(call.function.name, 'lookup_name');
  assert.deepEqual(JSON.parse(call.function.arguments), { first: 'amber' });
}

async function answerAfter(message) {
  const result = { role: 'tool', tool_call_id: message.tool_calls[0].id,
    content: JSON.stringify(TOOL_RESULT) };
  const chat = await client.chat.completions.create({
    ...BODY, messages: [...BODY.messages, message, result] });
  return chat.choices[0].message.content;
}

// As a client without help from its library does it: pieces of a call are told apart by index.
function messageOf(chunks) {
  const calls = [];
  for (const { delta } of chunks.flatMap((chunk) => chunk.choices)) {
    for (const { index, id, type, function: part } of delta.tool_calls ?? []) {
      calls[index] ??= { id, type, function: { name: part.name, arguments: '' } };
      calls[index].function.arguments += part.arguments ?? '';
    }
  }
  return { role: 'assistant', content: null, tool_calls: calls };
}

test('ask, call, result, answer', async () => {
  const [choice] = (await client.chat.completions.create(BODY)).choices;
  assert.equal(choice.finish_reason, 'tool_calls');
  assert.equal(choice.message.content || null, null);
  assert.equal(choice.message.tool_calls.length, 1);
  checkCall(choice.message.tool_calls[0]);
  assert.equal(await answerAfter(choice.message), TOOL_ANSWER);
});

test('the same streamed', async () => {
  const chunks = await all(await client.chat.completions.create({ ...BODY, stream: true }));
  const message = messageOf(chunks);
  assert.equal(message.tool_calls.length, 1);
  checkCall(message.tool_calls[0]);
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
  assert.equal(await answerAfter(message), TOOL_ANSWER);
});

for (const stream of [false, true]) {
  test(`the client runs the tool by itself${stream ? ', streamed' : ''}`, async () => {
    const asked = [];
    const lookup = (given) => { asked.push(given); return JSON.stringify(TOOL_RESULT); };
    const runner = client.chat.completions.runTools({ ...BODY, stream, tools: [
      { type: 'function', function: { ...TOOL.function, parse: JSON.parse, function: lookup } }] });
    assert.equal(await runner.finalContent(), TOOL_ANSWER);
    assert.deepEqual(asked, [{ first: 'amber' }]);
  });
}

test('no tool is called against tool_choice', async () => {
  const [choice] = (await client.chat.completions.create({ ...BODY, tool_choice: 'none' })).choices;
  assert.equal(choice.finish_reason, 'stop');
  assert.ok(!choice.message.tool_calls);
});
