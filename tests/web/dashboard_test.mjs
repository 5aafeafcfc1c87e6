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

  // As the server itself forecasts it: 1.91 to 5.12 times smaller by scheme, this one turbo8v4.
  const kv = await page.getByRole('region', { name: 'KV memory' }).innerText();
  assert.match(kv, /turbo8v4/);
  const [, ratio] = /f16 would take .*: ([\d.]+) times as much/.exec(kv);
  assert.ok(Math.abs(Number(ratio) - 2.53) < 0.05, kv);
  await end();
});
