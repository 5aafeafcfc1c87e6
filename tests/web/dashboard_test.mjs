// The dashboard moves when the server works.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BABBLE, SERVER_URL, closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

async function load(seconds) {
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    const body = { messages: [{ role: 'user', content: `Hello ${Date.now()}` }], seed: 1,
      temperature: Number(BABBLE.temperature), max_tokens: 300 };
    const response = await fetch(`${SERVER_URL}/v1/chat/completions`, {
      method: 'POST', body: JSON.stringify(body) });
    assert.equal(response.status, 200);
    await response.arrayBuffer();
  }
}

test('throughput, latency, KV memory and prefixes', async () => {
  const { page, end } = await openApp({ at: '#/dashboard' });
  const figure = (name) => page.getByRole('region', { name }).locator('[data-figure]');
  await figure('Generated').waitFor();
  await Promise.all([load(5), page.waitForFunction(() => {
    const tile = document.querySelector('[aria-label="Generated"]');
    const line = tile.querySelector('.chart-line').getAttribute('d');
    return parseFloat(tile.querySelector('[data-figure]').textContent) > 1 && line.includes('L');
  })]);
  assert.match(await figure('First token').innerText(), /^[\d.]+\sm?s$/);
  assert.match(await figure('Between tokens').innerText(), /^[\d.]+\sm?s$/);
  assert.match(await figure('Prefix hits').innerText(), /^\d+ %$/);

  // As the server itself forecasts it, by scheme and context. Of turbo8v4 and 4,096 cells: keys of 8.5 bits, values of
  // 4.13, and 4 of 64 chunks of values in 8.13 bits as well: 6.57 of 16.
  const kv = await page.getByRole('region', { name: 'KV memory' }).innerText();
  assert.match(kv, /turbo8v4/);
  const [, ratio] = /f16 would take .*: ([\d.]+) times as much/.exec(kv);
  assert.ok(Math.abs(Number(ratio) - 16 / 6.57) < 0.03, kv);
  await end();
});
