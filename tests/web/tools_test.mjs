// A tool from the user's JSON to the answer; the user is the tool.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { TOOL, answered, ask, closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

test('a call is a card that takes the result', async () => {
  const { page, end } = await openApp();
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await page.getByLabel('Tools').fill('[{');
  await page.getByText(/^Tools are not JSON/).waitFor();
  await page.getByLabel('Tools').fill(TOOL);
  await page.getByRole('button', { name: 'Close' }).click();

  await ask(page, 'Look up the full name of "amber".');
  const card = page.getByRole('region', { name: 'Tool call: lookup_name' });
  await card.waitFor();
  await answered(page);
  assert.deepEqual(JSON.parse(await card.getByLabel('Arguments').innerText()), { first: 'amber' });
  await card.getByLabel('What lookup_name answers').fill('{"name": "amber lantern"}');
  await card.getByRole('button', { name: 'Give result' }).click();
  await page.getByText('It is "amber lantern".', { exact: true }).waitFor();
  await answered(page);

  await page.reload();
  await page.getByText('It is "amber lantern".', { exact: true }).waitFor();
  assert.deepEqual(JSON.parse(await card.getByLabel('Result').innerText()), { name: 'amber lantern' });
  await end();
});

test('tools that are no JSON are not sent', async () => {
  const { page, requests, end } = await openApp();
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await page.getByLabel('Tools').fill('{}');
  await page.getByRole('button', { name: 'Close' }).click();
  await ask(page, 'Hello');
  await page.getByRole('alert').getByText('Tools must be a JSON array').waitFor();
  assert.equal(requests.filter((url) => url.endsWith('/v1/chat/completions')).length, 0);
  await end();
});
