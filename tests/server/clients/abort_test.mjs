// A client that goes in the middle of its answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { ANSWER, MODEL, SERVER_KIND, SERVER_URL, client, greedy, question } from './server.mjs';

const [RUNNING, GENERATED] = {
  slipstream: ['vllm:num_requests_running', 'vllm:generation_tokens_total'],
  'llama-server': ['llamacpp:requests_processing', 'llamacpp:tokens_predicted_total'],
}[SERVER_KIND];
const LONG = { model: MODEL, prompt: 'Once upon a time', max_tokens: 8000, temperature: 0,
  ignore_eos: true };

async function metric(name) {
  const text = await (await fetch(`${SERVER_URL}/metrics`)).text();
  return Number(text.match(new RegExp(`^${name}(?:{.*})? (\\S+)$`, 'm'))[1]);
}
// llama-server looks for the client of a whole answer only after a second without other requests.
const PAUSE_MS = SERVER_KIND === 'llama-server' ? 1500 : 10;
async function waitForRunning(n) {
  while (await metric(RUNNING) !== n) await sleep(PAUSE_MS);
}

// Judged by what was computed: a busy machine may take its time, but no server may do the work.
async function checkGivenUp(n_before) {
  await waitForRunning(0);
  const n_generated = await metric(GENERATED) - n_before;
  assert.ok(n_generated < LONG.max_tokens, 'it was computed to its end');
}

async function checkAnswers() {
  const chat = await client.chat.completions.create(greedy(question));
  assert.equal(chat.choices[0].message.content, ANSWER);
}

test('a stream is given up, others are answered', async () => {
  const n_before = await metric(GENERATED);
  const controller = new AbortController();
  const stream = await client.completions.create({ ...LONG, stream: true },
    { signal: controller.signal });
  let n_chunks = 0;
  for await (const _ of stream) {
    assert.ok(++n_chunks < 1000, 'the client hears it to its end');
    if (n_chunks !== 3) continue;
    await checkAnswers();
    await waitForRunning(1);  // the answered one may still be counted; the long one goes on
    controller.abort();
  }
  await checkGivenUp(n_before);
  await checkAnswers();
});

test('so is an answer that was to come whole', async () => {
  const n_before = await metric(GENERATED);
  const controller = new AbortController();
  const refused = assert.rejects(client.completions.create(LONG, { signal: controller.signal }),
    OpenAI.APIUserAbortError);
  await waitForRunning(1);
  controller.abort();
  await refused;
  await checkGivenUp(n_before);
});
