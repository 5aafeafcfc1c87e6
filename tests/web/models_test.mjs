// Models. The routes under /slipstream/ are not the real server's here: they are answered by the
// test, as the contract has them (docs/web.md).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

const LOCAL = {
  name: 'qwen3-4b', path: '/srv/models/qwen3-4b-q4_k_m.gguf', bytes: 2.5e9, quant: 'Q4_K_M',
  state: 'on disk', fit: { fits: true, n_ctx: 32768, kv: 'turbo8v4', why: '' } };
const TOO_LARGE = {
  ...LOCAL, name: 'qwen3-235b', fit: { fits: false, n_ctx: 0, kv: '', why: '132 GiB are wanted' } };
const RESULTS = [{ repo: 'org/qwen3-4b-GGUF', downloads: 12345,
  files: [{ quant: 'Q4_K_M', bytes: 2.5e9 }, { quant: 'Q8_0', bytes: 4.3e9 }] }];

const json = (route, body) => route.fulfill({ json: body });
const event = (data) => `data: ${JSON.stringify(data)}\n\n`;

test('a server without these routes shows what it serves, and no more', async () => {
  const { page, end } = await openApp();
  await page.getByRole('link', { name: 'Models' }).click();
  await page.getByRole('heading', { name: 'needle' }).waitFor();
  await page.getByText('loaded', { exact: true }).waitFor();
  await page.getByText('Context of 4,096 tokens').waitFor();
  await page.waitForLoadState('networkidle');
  assert.equal(await page.getByRole('heading', { name: 'Installed' }).count(), 0);
  assert.equal(await page.getByLabel('Search the hub').count(), 0);
  await end();
});

test('load, unload, search, and a pull with progress', async () => {
  const { page, context, end } = await openApp({ serviceWorkers: 'block' });
  const asked = [];
  let state = 'on disk';
  await context.route('**/slipstream/models', (route) =>
    json(route, { models: [{ ...LOCAL, state }, TOO_LARGE] }));
  await context.route('**/slipstream/models/*', (route) => {
    asked.push([route.request().url().split('/').at(-1), route.request().postDataJSON()]);
    state = state === 'loaded' ? 'idle' : 'loaded';
    return json(route, {});
  });
  await context.route('**/slipstream/hub/search?*', (route) =>
    json(route, { results: route.request().url().endsWith('q=qwen3%204b') ? RESULTS : [] }));
  // Interception gives a body whole; for one that comes in pieces the page's own fetch is replaced.
  await page.evaluate(() => {
    const real = window.fetch;
    window.pulled = [];
    window.fetch = (url, init) => {
      if (url !== '/slipstream/hub/pull') return real(url, init);
      window.pulled.push(JSON.parse(init.body));
      const encoder = new TextEncoder();
      const body = new ReadableStream({
        start(controller) {
          window.sendEvent = (text) => controller.enqueue(encoder.encode(text));
          window.endEvents = () => controller.close();
        },
      });
      return Promise.resolve(new Response(body, { headers: { 'Content-Type': 'text/event-stream' } }));
    };
  });
  await page.getByRole('link', { name: 'Models' }).click();
  const card = page.getByRole('listitem').filter({ hasText: 'qwen3-4b' }).first();
  await card.getByText('Fits with 32,768 tokens of context, KV turbo8v4').waitFor();
  await page.getByText('Does not fit: 132 GiB are wanted').waitFor();
  await card.getByRole('button', { name: 'Load' }).click();
  await card.getByText('loaded', { exact: true }).waitFor();
  await card.getByRole('button', { name: 'Unload' }).click();
  await card.getByText('idle', { exact: true }).waitFor();
  assert.deepEqual(asked, [['load', { name: 'qwen3-4b' }], ['unload', { name: 'qwen3-4b' }]]);

  await page.getByLabel('Search the hub').fill('qwen3 4b');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^Pull org\/qwen3-4b-GGUF Q4_K_M/ }).click();
  const ring = page.getByRole('progressbar');
  const percent = (n) => ring.and(page.locator(`[aria-valuenow="${n}"]`)).waitFor();
  const send = (data) => page.evaluate((text) => window.sendEvent(text), event(data));
  await percent(0);
  await send({ bytes: 1e9, bytes_all: 2.5e9, bytes_per_s: 5e7 });
  await percent(40);
  await page.getByText('953.7 MiB of 2.3 GiB, 47.7 MiB/s').or(
    page.getByText('954 MiB of 2.3 GiB, 47.7 MiB/s')).waitFor();
  await send({ bytes: 2e9, bytes_all: 2.5e9, bytes_per_s: 5e7 });
  await percent(80);
  await send({ done: true });
  await page.getByText('Installed', { exact: true }).nth(1).waitFor();
  assert.deepEqual(await page.evaluate(() => window.pulled),
    [{ repo: 'org/qwen3-4b-GGUF', quant: 'Q4_K_M' }]);

  await page.getByRole('button', { name: /^Pull org\/qwen3-4b-GGUF Q8_0/ }).click();
  await send({ error: 'No space left on the disk' });
  await page.getByText('No space left on the disk').waitFor();
  await end();
});
