// Requests to /mcp, and what their answers become.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setApiKey } from '../src/api/http.ts';
import { addFolder, readLines, searchFiles, toolNames } from '../src/api/mcp.ts';

const fetched = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = fetched;
  setApiKey('');
});

interface Sent {
  path: string;
  headers: Headers;
  body: { method: string; params: Record<string, unknown> };
}

// A server that answers everything with this; gives what was sent to it.
function serve(status: number, answer: unknown): Sent[] {
  const sent: Sent[] = [];
  globalThis.fetch = async (path, init) => {
    sent.push({ path: String(path), headers: new Headers(init?.headers),
      body: JSON.parse(String(init?.body)) });
    return new Response(JSON.stringify(answer), { status });
  };
  return sent;
}

const result = (structuredContent: object) => ({ jsonrpc: '2.0', id: 1,
  result: { content: [{ type: 'text', text: 'in words' }], structuredContent, isError: false } });

test('a call stands for itself: revision, method, name and key go with it', async () => {
  const sent = serve(200, result({ places: [], index: { is_fresh: true, note: '' } }));
  setApiKey('a-key');
  assert.deepEqual((await searchFiles('heron', '/home/ann/birds')).places, []);
  const [{ path, headers, body }] = sent as [Sent];
  assert.equal(path, '/mcp');
  assert.equal(headers.get('MCP-Protocol-Version'), '2026-07-28');
  assert.equal(headers.get('Mcp-Method'), 'tools/call');
  assert.equal(headers.get('Mcp-Name'), 'search');
  assert.equal(headers.get('Authorization'), 'Bearer a-key');
  assert.equal(body.method, 'tools/call');
  assert.equal(body.params.name, 'search');
  assert.deepEqual(body.params.arguments, { query: 'heron', project: '/home/ann/birds' });
  const meta = body.params._meta as Record<string, unknown>;
  assert.equal(meta['io.modelcontextprotocol/protocolVersion'], '2026-07-28');
  assert.deepEqual(meta['io.modelcontextprotocol/clientCapabilities'], {});
});

test('all folders are meant where none is named', async () => {
  const sent = serve(200, result({ places: [], index: { is_fresh: true, note: '' } }));
  await searchFiles('heron', '');
  assert.deepEqual(sent[0]!.body.params.arguments, { query: 'heron' });
});

test('a server without the index is no failure, others are', async () => {
  serve(404, { jsonrpc: '2.0', id: null, error: { code: 404, message: 'There is no /mcp' } });
  assert.equal(await toolNames(), null);
  serve(429, { jsonrpc: '2.0', id: null, error: { code: 429, message: 'Too many ask' } });
  await assert.rejects(toolNames(), { status: 429, message: 'Too many ask' });
  serve(200, { jsonrpc: '2.0', id: 1, result: { tools: [{ name: 'search' }] } });
  assert.deepEqual(await toolNames(), ['search']);
});

test('what a tool refuses is told in its words', async () => {
  serve(200, { jsonrpc: '2.0', id: 1, result: {
    content: [{ type: 'text', text: '/etc cannot be a project' }], isError: true } });
  await assert.rejects(addFolder('/etc'), { message: '/etc cannot be a project' });
  serve(200, { jsonrpc: '2.0', id: 1, error: { code: -32602, message: 'Unknown tool' } });
  await assert.rejects(readLines('/a', 1, 2), { message: 'Unknown tool' });
});
