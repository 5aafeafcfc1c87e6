// Ollama's own client with `slipstream serve`.
//
// Environment: SERVER_URL, a server with the needle model, embeddings and a hub that has org/needle-GGUF:Q8_0;
// KEYED_URL, for who has the KEY; FIXTURES, a folder.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ollama } from 'ollama';

const { SERVER_URL, KEYED_URL, KEY, FIXTURES } = process.env;
const client = new Ollama({ host: SERVER_URL });
const MODEL = 'needle';
const haystack = readFileSync(`${FIXTURES}/haystack.txt`, 'utf8');
const question = `${haystack.slice(0, 700)}\nWe met amber lantern today.\n` +
  `${haystack.slice(700, 1400)}\nWhat is the full name of amber?`;
const ANSWER = 'It is amber lantern.';
const greedy = (content) => ({
  model: MODEL, messages: [{ role: 'user', content }], options: { temperature: 0, num_predict: 64 } });
const TOOL = { type: 'function', function: {
  name: 'lookup_name', description: 'The full name of a person.',
  parameters: { type: 'object', properties: { first: { type: 'string' } }, required: ['first'] } } };

async function all(stream) {
  const parts = [];
  for await (const part of await stream) parts.push(part);
  return parts;
}

function checkEnd(last, reason = 'stop') {
  assert.equal(last.done, true);
  assert.equal(last.done_reason, reason);
  assert.equal(last.model, MODEL);
  assert.ok(!Number.isNaN(Date.parse(last.created_at)), last.created_at);
  assert.ok(last.prompt_eval_count > 0 && last.eval_count > 0);
  assert.ok(last.eval_duration > 0 && last.total_duration >= last.eval_duration);
}

test('a chat, whole and streamed', async () => {
  const whole = await client.chat(greedy(question));
  assert.deepEqual(whole.message, { role: 'assistant', content: ANSWER });
  checkEnd(whole);
  const parts = await all(client.chat({ ...greedy(question), stream: true }));
  assert.ok(parts.length > 3, 'it came in pieces');
  assert.equal(parts.map((part) => part.message.content).join(''), ANSWER);
  checkEnd(parts.at(-1));
  assert.ok(parts.slice(0, -1).every((part) => part.done === false));
  assert.equal(parts.at(-1).eval_count, whole.eval_count);
});

test('options reach the sampler', async () => {
  const short = await client.chat({ ...greedy(question), options: { temperature: 0, num_predict: 2 } });
  checkEnd(short, 'length');
  assert.equal(short.eval_count, 2);
  const stopped = await client.chat({ ...greedy(question), options: { temperature: 0, stop: ['lantern'] } });
  assert.equal(stopped.message.content, 'It is amber ');
  const random = { temperature: 2, seed: 7, top_k: 0, num_predict: 12 };
  const [one, same] = [await client.chat({ ...greedy(question), options: random }),
    await client.chat({ ...greedy(question), options: random })];
  assert.equal(one.message.content, same.message.content);
  const none = await client.chat({ ...greedy(question), options: { temperature: 0, num_predict: -1,
    num_ctx: 2048, num_gpu: 99, repeat_last_n: -1 } });
  assert.equal(none.message.content, ANSWER);
});

test('thinking', async () => {
  const thoughtful = await client.chat({ ...greedy(question), think: true });
  assert.match(thoughtful.message.thinking, /I look for amber/);
  assert.equal(thoughtful.message.content, ANSWER);
  const parts = await all(client.chat({ ...greedy(question), think: true, stream: true }));
  assert.equal(parts.map((part) => part.message.thinking ?? '').join('').trim(),
    thoughtful.message.thinking.trim());
  const quick = await client.chat({ ...greedy(question), think: false });
  assert.equal(quick.message.thinking, undefined);
});

test('a tool from the question to the answer', async () => {
  const asked = { ...greedy('Look up the full name of "amber".'), tools: [TOOL] };
  const { message, ...end } = await client.chat(asked);
  checkEnd(end);
  assert.equal(message.tool_calls.length, 1);
  const { name, arguments: given } = message.tool_calls[0].function;
  assert.deepEqual({ name, given }, { name: 'lookup_name', given: { first: 'amber' } });
  const parts = await all(client.chat({ ...asked, stream: true }));
  const calls = parts.flatMap((part) => part.message.tool_calls ?? []);
  assert.deepEqual(calls.map((call) => call.function), [message.tool_calls[0].function]);
  const answer = await client.chat({ ...asked, messages: [...asked.messages, message,
    { role: 'tool', tool_name: 'lookup_name', content: '{"name": "amber lantern"}' }] });
  assert.equal(answer.message.content, 'It is "amber lantern".');
});

test('an answer in a form', async () => {
  const schema = { type: 'object', properties: { name: { enum: ['amber'] } }, required: ['name'],
    additionalProperties: false };
  const formed = await client.chat({ ...greedy(question), format: schema });
  assert.deepEqual(JSON.parse(formed.message.content), { name: 'amber' });
  const json = await client.generate({ model: MODEL, prompt: question, format: 'json',
    options: { temperature: 0, num_predict: 200 } });
  if (json.done_reason === 'stop') JSON.parse(json.response);
  assert.match(json.response, /^\s*\{/);
});

test('generate: a prompt in the model\'s template, and raw', async () => {
  const asked = { model: MODEL, prompt: question, options: { temperature: 0, num_predict: 32 } };
  const whole = await client.generate(asked);
  assert.equal(whole.response, ANSWER);
  checkEnd(whole);
  const parts = await all(client.generate({ ...asked, system: 'You answer.', stream: true }));
  assert.equal(parts.map((part) => part.response).join(''), ANSWER);
  const raw = await client.generate({ ...asked, prompt: 'We met amber lantern today. We met amber', raw: true,
    options: { temperature: 0, num_predict: 4 } });
  assert.ok(raw.prompt_eval_count < whole.prompt_eval_count);
  assert.equal(typeof raw.response, 'string');
});

test('a model is loaded by asking nothing', async () => {
  const loaded = await client.generate({ model: MODEL, prompt: '' });
  assert.deepEqual([loaded.done, loaded.done_reason, loaded.response], [true, 'load', '']);
  const parts = await all(client.chat({ model: MODEL, messages: [], stream: true, keep_alive: '5m' }));
  assert.deepEqual(parts.map((part) => part.done_reason), ['load']);
});

test('embeddings', async () => {
  const { embeddings, prompt_eval_count: count } = await client.embed({ model: MODEL, input: ['amber', 'lantern'] });
  assert.equal(embeddings.length, 2);
  for (const vector of embeddings) {
    assert.ok(Math.abs(vector.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-3, 'of length 1');
  }
  assert.ok(count >= 2);
  const one = await client.embed({ model: MODEL, input: 'amber' });
  // In one batch with another text, products are added up in another order.
  one.embeddings[0].forEach((x, i) => assert.ok(Math.abs(x - embeddings[0][i]) < 1e-4, `${x} and ${embeddings[0][i]}`));
  assert.ok(embeddings[0].some((x, i) => Math.abs(x - embeddings[1][i]) > 1e-2), 'another text has another vector');
  assert.deepEqual((await client.embeddings({ model: MODEL, prompt: 'amber' })).embedding, one.embeddings[0]);
});

test('models: list, show, ps, version', async () => {
  const { models } = await client.list();
  assert.equal(models[0].name, MODEL);
  assert.ok(models[0].size > 1e6 && models[0].digest.length === 64);
  assert.equal(models[0].details.format, 'gguf');
  const shown = await client.show({ model: `${MODEL}:latest` });
  const family = shown.model_info['general.architecture'];
  assert.equal(shown.model_info[`${family}.context_length`], 4096);
  assert.ok(shown.capabilities.includes('completion') && shown.capabilities.includes('tools'));
  assert.match(shown.template, /message/);
  assert.equal(shown.details.family, family);
  const running = await client.ps();
  assert.equal(running.models[0].name, MODEL);
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
});

test('a pull with progress, and a chat with what came', async () => {
  const parts = await all(client.pull({ model: 'hf.co/org/needle-GGUF:Q8_0', stream: true }));
  assert.equal(parts[0].status, 'pulling manifest');
  assert.equal(parts.at(-1).status, 'success');
  const counted = parts.filter((part) => part.total);
  assert.ok(counted.length > 0 && counted.at(-1).completed === counted.at(-1).total);
  assert.equal((await client.pull({ model: 'org/needle-GGUF:Q8_0' })).status, 'success');
  const pulled = 'org/needle-GGUF:Q8_0';
  assert.ok((await client.list()).models.some((model) => model.name === pulled));
  const shown = await client.show({ model: pulled }); // not loaded
  assert.equal(shown.details.quantization_level, 'F16'); // as the file has it, whatever its name says
  const chat = await client.chat({ ...greedy(question), model: pulled });
  assert.equal(chat.message.content, ANSWER);
  await client.generate({ model: pulled, prompt: '', keep_alive: 0 });
  for (let i = 0; i < 100; i++) {
    if ((await client.ps()).models.every((model) => model.name !== pulled)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail('it is still loaded');
});

test('errors are words', async () => {
  const fails = (request, status, words) => assert.rejects(request, (error) => {
    assert.equal(error.status_code, status, error.message);
    assert.match(error.message, words);
    return true;
  });
  await fails(client.chat({ ...greedy('a'), model: 'nothing' }), 404, /nothing/);
  await fails(client.chat({ ...greedy('a'), options: { num_ctx: 1 << 20 } }), 400, /--ctx/);
  await fails(client.chat({ ...greedy('a'), messages: [{ role: 'user', content: 'a', images: ['aGk='] }] }),
    400, /images/);
  await fails(client.generate({ model: MODEL, prompt: 'a', options: { mirostat: 2 } }), 400, /mirostat/);
  await fails(client.chat(greedy('amber '.repeat(5000))), 400, /context/);
  await fails(client.pull({ model: 'llama3.2' }), 400, /org\/repo/);
  await fails(client.pull({ model: 'org/nothing:Q8_0' }), 404, /org\/nothing/);
  await fails(client.delete({ model: MODEL }), 404, /slipstream rm/);
  await fails(client.create({ model: 'other', from: MODEL }), 404, /hub/);
  await fails(new Ollama({ host: KEYED_URL }).list(), 401, /key/i);
  const keyed = new Ollama({ host: KEYED_URL, headers: { Authorization: `Bearer ${KEY}` } });
  assert.equal((await keyed.list()).models.length, 1);
  await fails(keyed.pull({ model: 'org/needle-GGUF:Q8_0' }), 404, /--hub/);
});

test('a stream that is aborted ends', async () => {
  const own = new Ollama({ host: SERVER_URL });
  const stream = await own.chat({ ...greedy(question), options: { temperature: 2, num_predict: 2000 }, stream: true });
  await assert.rejects(async () => {
    for await (const part of stream) {
      assert.equal(part.done, false);
      own.abort();
    }
  }, { name: 'AbortError' });
  assert.equal((await client.chat(greedy(question))).message.content, ANSWER);
});
