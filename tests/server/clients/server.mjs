// The server under test, as a client meets it, and what the needle model can be asked.
//
// Environment: SERVER_KIND, slipstream or llama-server; SERVER_URL, with N_CONTEXT tokens;
// EMBEDDINGS_URL; RERANK_URL; KEYED_URL, with room for one request of who has the KEY; FIXTURES, a folder.
import { readFileSync } from 'node:fs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import OpenAI from 'openai';

export const { SERVER_KIND, SERVER_URL, EMBEDDINGS_URL, RERANK_URL, KEYED_URL, KEY } = process.env;
export const N_CONTEXT = Number(process.env.N_CONTEXT);
export const MODEL = 'needle';

// Errors are what is tested, so none is tried again.
export const clientOf = (url, options = {}) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0, ...options });
export const client = clientOf(SERVER_URL);
export const providerOf = (url) => createOpenAICompatible({
  name: MODEL, baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true });

// For what llama-server does not do, or does in its own way: options of a test.
export const unlessLlamaServer = (reason) =>
  ({ skip: SERVER_KIND === 'llama-server' && `llama-server ${reason}` });

export const UNSEEN_THOUGHTS =
  unlessLlamaServer('takes <think> for content where the template does not write it');

export const haystack = readFileSync(`${process.env.FIXTURES}/haystack.txt`, 'utf8');
export const question = `${haystack.slice(0, 700)}\nWe met amber lantern today.\n` +
  `${haystack.slice(700, 1400)}\nWhat is the full name of amber?`;
export const ANSWER = 'It is amber lantern.';
export const THOUGHT = 'I look for amber.';
export const THINKING = { chat_template_kwargs: { enable_thinking: true } };

export const TOOL_QUESTION = 'Look up the full name of "amber".';
export const TOOL_RESULT = { name: 'amber lantern' };
export const TOOL_ANSWER = 'It is "amber lantern".';

export const greedy = (content) => ({
  model: MODEL, messages: [{ role: 'user', content }], temperature: 0, max_tokens: 64 });

export async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

// A text of a streamed chat: 'content' or 'reasoning_content'.
export const joined = (chunks, field = 'content') =>
  chunks.map((chunk) => chunk.choices[0]?.delta[field] ?? '').join('');
