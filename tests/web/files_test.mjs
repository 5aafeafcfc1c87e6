// The index of folders: added, read, searched, and asked in a chat.
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import {
  FILES_URL, FIXED_FILES_URL, FOLDER, answered, ask, citeFiles, closeBrowser, openApp, openBrowser,
} from './app.mjs';

before(openBrowser);
after(closeBrowser);

const calls = (request) => request.url().endsWith('/mcp') && request.postDataJSON();
const toolOf = (request) => calls(request)?.params?.name;

// Answers calls of a tool in the server's place.
const replaceTool = (context, tool, answer) => context.route('**/mcp', (route) =>
  toolOf(route.request()) !== tool ? route.fallback() : route.fulfill({ json: {
    jsonrpc: '2.0', id: 1,
    result: { content: [{ type: 'text', text: '' }], structuredContent: answer(), isError: false } } }));

async function search(page, query) {
  await page.getByLabel('Search your files').fill(query);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Search', exact: true }).and(page.locator(':enabled')).waitFor();
}

test('a server without the index says how to get it, and chats have no switch', async () => {
  const { page, end } = await openApp();
  await page.getByLabel('Model').waitFor();
  await page.waitForLoadState('networkidle');
  assert.equal(await page.getByRole('button', { name: 'Search my files' }).count(), 0);
  await page.getByRole('link', { name: 'Files' }).click();
  assert.equal(await page.getByLabel('Command').innerText(), 'slipstream serve --mcp');
  assert.equal(await page.getByLabel('Search your files').count(), 0);
  assert.equal(await page.getByRole('alert').count(), 0);
  await end();
});

test('a folder is added, read, searched, and followed when it changes', async () => {
  const { page, end } = await openApp({ url: FILES_URL, at: '#/files' });
  await page.getByText('None yet', { exact: true }).waitFor();
  assert.ok(await page.getByLabel('Search your files').isDisabled());
  const add = async (folder) => {
    await page.getByLabel('Add a folder').fill(folder);
    await page.keyboard.press('Enter');
  };
  await add('/etc');
  await page.getByRole('alert').getByText(/^\/etc cannot be a project/).waitFor();
  await add('birds');
  await page.getByRole('alert').getByText(/must be a whole path/).waitFor();
  await add(FOLDER);
  await page.getByRole('status').getByText(`${FOLDER} was added`).waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  const card = page.getByRole('list', { name: 'Folders' }).getByRole('listitem');
  await card.getByText('up to date', { exact: true }).waitFor();
  await card.getByText(/^2 files, /).waitFor();
  await card.getByText('Not read: 1 by name (keys, passwords)').waitFor();

  await search(page, 'where does the heron stand');
  await page.getByText(/^\d places?\. The index is fresh\.$/).waitFor();
  const place = page.getByRole('list', { name: 'Places' }).getByRole('listitem').filter({
    has: page.getByRole('button', { name: 'docs/birds.md:1-3' }) });
  assert.match(await place.locator('pre').innerText(), /The heron stands in the river/);
  assert.deepEqual(await place.locator('mark').allInnerTexts(), ['heron', 'stands']);
  await place.getByRole('button').click();
  const dialog = page.getByRole('dialog', { name: 'birds.md:1-3' });
  await dialog.getByText('Lines 1 to 3 of 3, as the file is now').waitFor();
  assert.equal(await dialog.locator('.cited').count(), 3);
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'docs/birds.md:1-3');

  await search(page, 'zygomorphic flowers');
  await page.getByText(/^Nothing in these files answers this\..* The index is fresh\.$/).waitFor();
  assert.equal(await page.getByRole('list', { name: 'Places' }).count(), 0);

  appendFileSync(`${FOLDER}/docs/birds.md`, '\nA bittern booms at dusk.\n');
  await search(page, 'bittern booms');
  await page.getByRole('button', { name: /^docs\/birds\.md:/ }).waitFor();

  await page.reload();
  await card.getByText('up to date', { exact: true }).waitFor();
  await end();
});

test('the state is asked for while a folder is read, and no longer', async () => {
  const { page, context, end } = await openApp({ url: FILES_URL });
  let percent = 20;
  let n_asked = 0;
  await replaceTool(context, 'index_status', () => {
    n_asked += 1;
    const state = percent < 100 ? { state: 'being read', percent_done: percent } : { state: 'complete' };
    return { projects: [{ project: '/home/ann/project', files: 7, bytes: 700, refused: {}, ...state }],
      index: { is_fresh: percent === 100, note: percent < 100 ? 'It is being read.' : '' } };
  });
  await page.getByRole('link', { name: 'Files' }).click();
  const bar = page.getByRole('progressbar', { name: 'Reading project' });
  await bar.and(page.locator('[aria-valuenow="20"]')).waitFor();
  const height = await page.locator('.folder').evaluate((card) => card.offsetHeight);
  percent = 60;
  await bar.and(page.locator('[aria-valuenow="60"]')).waitFor();

  const hide = (is_hidden) => page.evaluate((value) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, is_hidden);
  await hide(true);
  await page.waitForTimeout(300); // what was asked before is answered
  const n_hidden = n_asked;
  await page.waitForTimeout(2500);
  assert.equal(n_asked, n_hidden, 'a page that is not seen asks nothing');
  percent = 100;
  await hide(false);
  await page.getByText('up to date', { exact: true }).waitFor();
  assert.equal(n_asked, n_hidden + 1);
  assert.equal(await page.locator('.folder').evaluate((card) => card.offsetHeight), height);
  await page.waitForTimeout(2500);
  assert.equal(n_asked, n_hidden + 1, 'nothing changes by waiting');
  await end();
});

test('where folders cannot be added from here, it is said how', async () => {
  const { page, end } = await openApp({ url: FIXED_FILES_URL, at: '#/files' });
  await page.getByText('slipstream index add FOLDER').waitFor();
  await page.getByText('--mcp-allow-add').waitFor();
  assert.equal(await page.getByLabel('Add a folder').count(), 0);
  assert.ok(await page.getByLabel('Search your files').isEnabled());
  await end();
});

test('a chat asks with the files, and its sources open', async () => {
  const { page, context, end } = await openApp({ url: FIXED_FILES_URL });
  const sent = await citeFiles(context, `${FOLDER}-fixed`);
  const composer = page.getByLabel('Message', { exact: true });
  await composer.fill('What does the heron do?');
  const toggle = page.getByRole('button', { name: 'Search my files' });
  await toggle.click();
  assert.equal(await toggle.getAttribute('aria-pressed'), 'true');
  assert.equal(await composer.inputValue(), 'What does the heron do?', 'what was written is kept');
  await composer.press('Enter');
  await answered(page);
  await page.getByLabel('Folder to search').selectOption('birds-fixed');
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await page.getByLabel('Tokens of my files, at most').fill('300');
  await page.getByRole('button', { name: 'Close' }).click();
  await ask(page, 'And then?');
  await page.getByRole('article').nth(3).waitFor();
  await answered(page);
  await toggle.click();
  await ask(page, 'Without them?');
  await page.getByRole('article').nth(5).waitFor();
  await answered(page);
  assert.deepEqual(sent.map(({ retrieval }) => retrieval),
    [{}, { project: `${FOLDER}-fixed`, budget: 300 }, { project: `${FOLDER}-fixed`, budget: 0 }]);

  await page.reload(); // sources are kept with the chat
  const sources = page.getByRole('article', { name: 'Answer' }).first()
    .getByRole('region', { name: 'Sources' });
  await sources.waitFor();
  assert.deepEqual(await sources.getByRole('listitem').allInnerTexts(),
    ['[2]\nsrc/heron.py:1-2', '[4]\ndocs/birds.md:3-3', 'gone.md:1-2']);
  await sources.getByRole('button', { name: 'src/heron.py:1-2' }).click();
  const dialog = page.getByRole('dialog', { name: 'heron.py:1-2' });
  await dialog.getByText('def wade_slowly').waitFor();
  assert.equal(await dialog.locator('.cited').count(), 2);
  await page.keyboard.press('Escape');
  await sources.getByRole('button', { name: 'gone.md:1-2' }).click();
  await page.getByRole('dialog', { name: 'gone.md:1-2' }).getByRole('alert').waitFor();
  await end();
});
