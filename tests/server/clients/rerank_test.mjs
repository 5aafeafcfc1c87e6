// Documents in the order in which they answer a query.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCohere } from '@ai-sdk/cohere';
import { rerank } from 'ai';
import { CohereClientV2 } from 'cohere-ai';
import { MODEL, RERANK_URL, unlessLlamaServer } from './server.mjs';

const query = 'Who is amber?';
const documents = ['The sea is wide.', 'The guest was amber lantern.', 'Bread is baked.', 'amber'];

const ask = async (path, body) => {
  const response = await fetch(RERANK_URL + path, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
};
// What a client gives back, against what the plain route says.
const expected = async (topN) => {
  const { body } = await ask('/v1/rerank', { model: MODEL, query, documents });
  return body.results.map((result) => result.index).slice(0, topN);
};

test('the AI SDK has the best documents first', unlessLlamaServer('has no meta, which the SDK demands'), async () => {
  const cohere = createCohere({ baseURL: `${RERANK_URL}/v1`, apiKey: 'any' });
  const { ranking } = await rerank({ model: cohere.reranking(MODEL), query, documents, topN: 2 });
  assert.deepEqual(ranking.map((one) => one.originalIndex), await expected(2));
  assert.deepEqual(ranking.map((one) => one.document), ranking.map((one) => documents[one.originalIndex]));
  assert.ok(ranking[0].score >= ranking[1].score);
});

test("Cohere's client", unlessLlamaServer('has no /v2/rerank'), async () => {
  const cohere = new CohereClientV2({ environment: RERANK_URL, token: 'any', maxRetries: 0 });
  const { id, results, meta } = await cohere.rerank({ model: MODEL, query, documents, topN: 3 });
  assert.deepEqual(results.map((one) => one.index), await expected(3));
  assert.ok(id.length > 0);
  assert.ok(meta.tokens.inputTokens > 0);
});

test("Cohere's client sees why a request is refused", unlessLlamaServer('has no /v2/rerank'), async () => {
  const cohere = new CohereClientV2({ environment: RERANK_URL, token: 'any', maxRetries: 0 });
  await assert.rejects(cohere.rerank({ model: MODEL, query, documents: [] }),
    (error) => error.statusCode === 400);
});

test('every name of the route gives the same ranks', async () => {
  const answers = [];
  for (const path of ['/v1/rerank', '/rerank', '/v1/reranking', '/reranking']) {
    const { status, body } = await ask(path, { query, documents });
    assert.equal(status, 200);
    answers.push(body.results.map((result) => result.index));
  }
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
});

test('a plain list, as text-embeddings-inference gives it', async () => {
  const { body } = await ask('/rerank', { query, texts: documents, return_text: true });
  assert.equal(body.length, documents.length);
  body.forEach((one) => assert.equal(one.text, documents[one.index]));
  assert.deepEqual(body.map((one) => one.score), body.map((one) => one.score).sort((a, b) => b - a));
});
