// The AI SDK, with its provider for servers of OpenAI's API.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Output, embed, embedMany, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';
import { ANSWER, EMBEDDINGS_URL, MODEL, SERVER_URL, THINKING, THOUGHT, TOOL_ANSWER,
  TOOL_QUESTION, TOOL_RESULT, UNSEEN_THOUGHTS, all, providerOf, question } from './server.mjs';

const model = providerOf(SERVER_URL)(MODEL);
const embeddingModel = providerOf(EMBEDDINGS_URL).embeddingModel(MODEL);
const ask = (prompt) => ({ model, prompt, temperature: 0, maxOutputTokens: 200, maxRetries: 0 });

test('generateText', async () => {
  const { text, finishReason, usage } = await generateText(ask(question));
  assert.equal(text, ANSWER);
  assert.equal(finishReason, 'stop');
  assert.ok(usage.inputTokens > 100 && usage.outputTokens > 0);
});

test('streamText', async () => {
  const result = streamText(ask(question));
  const pieces = await all(result.textStream);
  assert.equal(pieces.join(''), ANSWER);
  assert.ok(pieces.length > 2, 'it came in pieces');
  assert.ok((await result.usage).outputTokens > 0);
});

test('thoughts are reasoning', UNSEEN_THOUGHTS, async () => {
  const thinking = { ...ask(question), providerOptions: { [MODEL]: THINKING } };
  const { text, reasoningText } = await generateText(thinking);
  assert.equal(text, ANSWER);
  assert.equal(reasoningText.trim(), THOUGHT);
  const streamed = streamText(thinking);
  assert.equal(await streamed.text, ANSWER);
  assert.equal(await streamed.reasoningText, reasoningText);
});

function withTool(asked) {
  return { ...ask(TOOL_QUESTION), stopWhen: isStepCount(3), tools: { lookup_name: tool({
    description: 'The full name of a person.',
    inputSchema: z.object({ first: z.string() }),
    execute: async (given) => { asked.push(given); return TOOL_RESULT; },
  }) } };
}

test('a tool is called and its result is used', async () => {
  const asked = [];
  const { text, steps } = await generateText(withTool(asked));
  assert.equal(text, TOOL_ANSWER);
  assert.deepEqual(asked, [{ first: 'amber' }]);
  assert.deepEqual(steps.map((step) => step.finishReason), ['tool-calls', 'stop']);
});

test('the same streamed', async () => {
  const asked = [];
  const result = streamText(withTool(asked));
  assert.equal(await result.text, TOOL_ANSWER);
  assert.deepEqual(asked, [{ first: 'amber' }]);
  assert.equal((await result.steps).length, 2);
});

const Person = z.object({
  name: z.enum(['basil', 'juniper']), age: z.number().int().min(7).max(12) });

test('an output of a schema, whole and streamed', async () => {
  const asked = { ...ask('Who is amber?'), output: Output.object({ schema: Person }) };
  Person.parse((await generateText(asked)).output);
  const streamed = streamText(asked);
  const partial = await all(streamed.partialOutputStream);
  Person.parse(await streamed.output);
  assert.deepEqual(partial.at(-1), await streamed.output);
});

test('embed and embedMany', async () => {
  const { embedding } = await embed({ model: embeddingModel, value: 'amber lantern' });
  const { embeddings } = await embedMany({
    model: embeddingModel, values: ['amber lantern', 'sea'] });
  assert.equal(embeddings.length, 2);
  embedding.forEach((value, i) => assert.ok(Math.abs(value - embeddings[0][i]) < 1e-4));
});
