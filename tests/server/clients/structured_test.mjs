// Answers in the form that was asked for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { TOOL_QUESTION, all, client, greedy, joined } from './server.mjs';

// Nothing that this model would say unasked, and nothing in which it could go on for ever.
const Person = z.object({
  name: z.enum(['basil', 'juniper']),
  age: z.number().int().min(7).max(12),
  tags: z.array(z.enum(['x', 'y'])).min(2).max(3),
});
const BODY = { ...greedy('Who is amber?'), max_tokens: 400,
  response_format: zodResponseFormat(Person, 'person') };

test('an answer of a schema', async () => {
  const chat = await client.chat.completions.parse(BODY);
  assert.equal(chat.choices[0].finish_reason, 'stop');
  Person.parse(chat.choices[0].message.parsed);
});

test('at any temperature, streamed', async () => {
  const chunks = await all(await client.chat.completions.create({
    ...BODY, temperature: 1.5, seed: 5, stream: true }));
  Person.parse(JSON.parse(joined(chunks)));
});

test('any object', async () => {
  const chat = await client.chat.completions.create({
    // Asked for a name, it could go on in a string for ever; here it thinks of a call.
    ...greedy(TOOL_QUESTION), max_tokens: 400, response_format: { type: 'json_object' } });
  assert.equal(chat.choices[0].finish_reason, 'stop');
  const value = JSON.parse(chat.choices[0].message.content);
  assert.ok(typeof value === 'object' && !Array.isArray(value));
});
