// Installed: the shell opens without the server, answers of the API are never kept.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ANSWER, QUESTION, SERVER_URL, answered, ask, closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

test('the shell and the chats are there without the network', async () => {
  const { page, context, end } = await openApp();
  await page.evaluate(() => navigator.serviceWorker.ready);
  await ask(page, QUESTION);
  await answered(page);
  const kept = await page.evaluate(async () => {
    const paths = [];
    for (const name of await caches.keys()) {
      for (const { url } of await (await caches.open(name)).keys()) paths.push(new URL(url).pathname);
    }
    return paths;
  });
  assert.ok(kept.includes('/') && kept.some((path) => path.startsWith('/assets/')), String(kept));
  assert.deepEqual(kept.filter((path) => /^\/(v1|metrics|slipstream|health)/.test(path)), []);

  await context.setOffline(true);
  await page.reload();
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await ask(page, 'Are you there?');
  await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
  await context.setOffline(false);
  await page.getByRole('button', { name: 'Try again' }).click();
  await answered(page);
  await end();
});

test('a manifest with icons that are there', async () => {
  const manifest = await (await fetch(`${SERVER_URL}/manifest.webmanifest`)).json();
  assert.equal(manifest.display, 'standalone');
  for (const { src, type, sizes } of manifest.icons) {
    const response = await fetch(SERVER_URL + src);
    assert.equal(response.headers.get('content-type'), type);
    const bytes = Buffer.from(await response.arrayBuffer());
    if (type === 'image/png') {
      assert.equal(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, sizes);
    }
  }
});
