// A server with an API key: the shell opens, a wrong key is told, the right one works.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  ANSWER, KEY, KEYED_URL, QUESTION, SERVER_URL, answered, ask, closeBrowser, openApp, openBrowser,
} from './app.mjs';

before(openBrowser);
after(closeBrowser);

test('no key, a wrong key, the right key', async () => {
  const { page, end } = await openApp({ url: KEYED_URL });
  await page.getByText('The server asks for an API key').waitFor();
  await ask(page, 'Hello');
  const problem = page.getByRole('article').getByRole('alert');
  await problem.getByText('The server asks for an API key').waitFor();

  await problem.getByRole('link').click();
  await page.getByLabel('API key').fill('a wrong one');
  await page.getByRole('button', { name: 'Save' }).click();
  for (const name of ['Models', 'Dashboard']) {
    await page.getByRole('link', { name }).click();
    await page.getByText('The server does not accept this API key').waitFor();
  }

  await page.getByRole('link', { name: 'Settings', exact: true }).click();
  await page.getByLabel('API key').fill(KEY);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await page.getByLabel('Model').waitFor(); // the list came
  await ask(page, QUESTION);
  const answer = await answered(page);
  assert.equal((await answer.locator('.rich').innerText()).trim(), ANSWER);
  await end();
});

test('an export has the chats and no key; deleting leaves nothing', async () => {
  const { page, end } = await openApp({ settings: { api_key: 'a-secret' } });
  await ask(page, 'We met amber lantern today. Who is amber?');
  await answered(page);
  await page.getByRole('link', { name: 'Settings', exact: true }).click();
  const [file] = await Promise.all([
    page.waitForEvent('download'), page.getByRole('button', { name: 'Export' }).click()]);
  const chunks = await (await file.createReadStream()).toArray();
  const text = Buffer.concat(chunks).toString();
  assert.equal(JSON.parse(text).conversations[0].messages.length, 2);
  assert.ok(!text.includes('a-secret'));

  await page.getByRole('button', { name: 'Delete all data' }).click();
  await page.getByRole('button', { name: 'Yes, delete' }).click();
  await page.getByText('Deleted', { exact: true }).waitFor();
  assert.ok(!(await page.evaluate(() => localStorage.getItem('slipstream.settings'))).includes('secret'));
  await page.goto(`${SERVER_URL}/#/chat`);
  await page.reload();
  await page.getByText('Chats stay on this device', { exact: true }).waitFor();
  await end();
});
