// Vectors of texts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EMBEDDINGS_URL, MODEL, clientOf } from './server.mjs';

const client = clientOf(EMBEDDINGS_URL);
const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
const embed = (input, options) => client.embeddings.create({ model: MODEL, input, ...options });

test('the same text has the same vector, of length 1', async () => {
  const { data, usage } = await embed(['amber lantern', 'the sea', 'amber lantern']);
  assert.deepEqual(data.map((item) => item.index), [0, 1, 2]);
  const [first, other, again] = data.map((item) => item.embedding);
  assert.ok(Math.abs(dot(first, first) - 1) < 1e-3);
  assert.ok(dot(first, again) > 0.9999);
  assert.ok(dot(first, other) < 0.999);
  assert.ok(usage.prompt_tokens > 0);
});

test('as numbers and as base64 they are the same', async () => {
  const numbers = (await embed('amber lantern', { encoding_format: 'float' })).data[0].embedding;
  const text = (await embed('amber lantern', { encoding_format: 'base64' })).data[0].embedding;
  assert.equal(typeof text, 'string');
  const bytes = Buffer.from(text, 'base64');
  assert.equal(bytes.length, numbers.length * 4);
  numbers.forEach((value, i) => assert.ok(Math.abs(value - bytes.readFloatLE(i * 4)) < 1e-5));
});

test('a text may come as tokens', async () => {
  const { data } = await embed([[5, 6, 7], [8, 9]]);
  assert.equal(data.length, 2);
});
