// Refusals as the client's own types, with the fields that programs look at.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { KEY, KEYED_URL, MODEL, N_CONTEXT, client, clientOf, greedy, haystack, unlessLlamaServer }
  from './server.mjs';

async function errorOf(asked, type) {
  const error = await asked.then(() => null, (reason) => reason);
  assert.ok(error instanceof type, `${error}`);
  return error;
}
const OWN_CODES = unlessLlamaServer('has codes of its own');

test('what does not fit is a BadRequestError with both numbers', async () => {
  const error = await errorOf(client.chat.completions.create(greedy(haystack.repeat(12))),
    OpenAI.BadRequestError);
  const numbers = error.message.match(/\d{4,}/g).map(Number);
  assert.ok(numbers.includes(N_CONTEXT), error.message);
  assert.ok(numbers.some((n) => n > N_CONTEXT), error.message);
});

test('its code is context_length_exceeded', OWN_CODES, async () => {
  const long = haystack.repeat(12);
  const chat = (body) => client.chat.completions.create(body);
  for (const [ask, param] of [
    [() => chat(greedy(long)), 'messages'],
    [() => chat({ ...greedy('x'), max_tokens: N_CONTEXT }), 'max_tokens'],
    [() => client.completions.create({ model: MODEL, prompt: long }), 'prompt']]) {
    const { code, type, param: named } = await errorOf(ask(), OpenAI.BadRequestError);
    assert.deepEqual([code, type, named],
      ['context_length_exceeded', 'invalid_request_error', param]);
  }
});

test('an unknown model is a NotFoundError', unlessLlamaServer('takes any name'), async () => {
  const error = await errorOf(client.chat.completions.create({ ...greedy('x'), model: 'gpt-4' }),
    OpenAI.NotFoundError);
  assert.deepEqual([error.code, error.param], ['model_not_found', 'model']);
  assert.match(error.message, /gpt-4/);
});

test('a field that is wrong is a BadRequestError', async () => {
  await errorOf(client.chat.completions.create({ ...greedy('x'), messages: 'x' }),
    OpenAI.BadRequestError);
});

test('and is named', unlessLlamaServer('names no fields'), async () => {
  const asked = client.chat.completions.create({ ...greedy('x'), temperature: 'hot' });
  const error = await errorOf(asked, OpenAI.BadRequestError);
  assert.equal(error.param, 'temperature');
});

test('no key and a wrong key are an AuthenticationError', async () => {
  for (const options of [{ defaultHeaders: { Authorization: null } }, { apiKey: 'wrong' }]) {
    const error = await errorOf(clientOf(KEYED_URL, options).chat.completions.create(greedy('x')),
      OpenAI.AuthenticationError);
    assert.equal(error.status, 401);
  }
  await clientOf(KEYED_URL, { apiKey: KEY }).chat.completions.create(greedy('x'));
});

test('its code is invalid_api_key', OWN_CODES, async () => {
  const error = await errorOf(clientOf(KEYED_URL).chat.completions.create(greedy('x')),
    OpenAI.AuthenticationError);
  assert.equal(error.code, 'invalid_api_key');
});

const NEVER_FULL = unlessLlamaServer('lets any number wait');
test('a full server is a RateLimitError, and worth another try', NEVER_FULL, async () => {
  const controller = new AbortController();
  const hasty = clientOf(KEYED_URL, { apiKey: KEY });
  await hasty.completions.create({ model: MODEL, prompt: 'x', max_tokens: 8000, ignore_eos: true,
    stream: true }, { signal: controller.signal });
  await errorOf(hasty.chat.completions.create(greedy('x')), OpenAI.RateLimitError);
  // The place is given up only when the second client has been refused once.
  const refusedOnce = async (...asked) => {
    const response = await fetch(...asked);
    if (response.status === 429) controller.abort();
    return response;
  };
  const patient = clientOf(KEYED_URL, { apiKey: KEY, maxRetries: 3, fetch: refusedOnce });
  await patient.chat.completions.create(greedy('x'));
  assert.ok(controller.signal.aborted, 'nobody was refused');
});
