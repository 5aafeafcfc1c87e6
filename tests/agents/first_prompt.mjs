// A long first prompt through the SDKs' own streams; a line of JSON for each API.
//
// Usage: node first_prompt.mjs SERVER_URL N_LINES
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const [url, n_lines] = process.argv.slice(2);

// What the SDKs hide: when headers and events came, and how many of them only kept the client waiting.
function watchedFetch(seen) {
  return async (...request) => {
    const asked = performance.now();
    const response = await fetch(...request);
    let last = performance.now();
    Object.assign(seen, { headers_ms: last - asked, longest_silence_s: 0, text: '' });
    const decoder = new TextDecoder();
    const watch = new TransformStream({
      transform(piece, controller) {
        const now = performance.now();
        seen.first_event_ms ??= now - asked;
        seen.longest_silence_s = Math.max(seen.longest_silence_s, (now - last) / 1000);
        last = now;
        seen.took_s = (now - asked) / 1000;
        seen.text += decoder.decode(piece, { stream: true });
        controller.enqueue(piece);
      },
    });
    return new Response(response.body.pipeThrough(watch), response);
  };
}

// Each API has a text of its own, so that nothing of it is cached.
const textFor = (name) =>
  Array.from({ length: Number(n_lines) }, (_, i) => `${name} line ${i} is long.`).join('\n');
const asked = (name) => [{ role: 'user', content: textFor(name) }];
const options = (seen) => ({ apiKey: 'x', maxRetries: 0, fetch: watchedFetch(seen) });

const APIS = {
  async messages(seen) {
    const client = new Anthropic({ baseURL: url, ...options(seen) });
    const { usage } = await client.messages
      .stream({ model: 'lamp-model', max_tokens: 4, messages: asked('One') }).finalMessage();
    return [usage.input_tokens + usage.cache_read_input_tokens, /^event: ping$/mg];
  },
  async responses(seen) {
    const client = new OpenAI({ baseURL: `${url}/v1`, ...options(seen) });
    const { usage } = await client.responses
      .stream({ model: 'lamp-model', max_output_tokens: 16, input: asked('Two') }).finalResponse();
    return [usage.input_tokens, /^event: response.in_progress$/mg];
  },
  async chat(seen) {
    const client = new OpenAI({ baseURL: `${url}/v1`, ...options(seen) });
    const { usage } = await client.chat.completions.stream({
      model: 'lamp-model', max_tokens: 4, messages: asked('Six'), stream_options: { include_usage: true },
    }).finalChatCompletion();
    return [usage.prompt_tokens, /"delta":{},"logprobs":null,"finish_reason":null/g];
  },
};

for (const [api, ask] of Object.entries(APIS)) {
  const seen = {};
  const [n_prompt, ping] = await ask(seen);
  const { text, ...times } = seen;
  const n_pings = [...text.matchAll(ping)].length - (api === 'responses' ? 1 : 0); // the first is no ping
  console.log(JSON.stringify({ api, n_prompt, n_pings, ...times }));
}
