// Files of a chat: attached by the button, by dropping and by pasting, asked for, shown, removed.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import {
  ANSWER, ATTACH_URL, QUESTION, SHOTS, answered, ask, closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

const ROUTE = '/slipstream/attachments';
// The needle model finds the name in prose; the question alone does not have it.
const LETTER = QUESTION.replace(/\nWhat is the full name of amber\?$/, '\n');
const WHO = 'What is the full name of amber?';
const text = (name, content) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(content) });
const chips = (page) => page.getByRole('list', { name: 'Attached files' }).getByRole('listitem');
const attach = (page, ...files) => page.locator('input[type=file]').setInputFiles(files);
const idOf = (page) => page.evaluate(() => location.hash.split('/').at(-1));
const statusOf = (page, path) => page.evaluate(async (one) => (await fetch(one)).status, path);

// Drops or pastes a file as the browser would.
const give = (page, selector, event, name, content) => page.evaluate(
  ([at, kind, file_name, file_content]) => {
    const data = new DataTransfer();
    data.items.add(new File([file_content], file_name, { type: 'text/plain' }));
    const init = { bubbles: true, cancelable: true };
    const made = kind === 'paste'
      ? new ClipboardEvent(kind, { ...init, clipboardData: data })
      : new DragEvent(kind, { ...init, dataTransfer: data });
    document.querySelector(at).dispatchEvent(made);
  }, [selector, event, name, content]);

test('a server without attachments has no button', async () => {
  const { page, end } = await openApp();
  await page.getByLabel('Model').waitFor();
  await page.waitForLoadState('networkidle');
  assert.equal(await page.getByRole('button', { name: 'Attach files' }).count(), 0);
  await give(page, '#composer', 'paste', 'a.txt', 'text');
  assert.equal(await chips(page).count(), 0);
  await end();
});

test('a file is attached, asked for, cited, read, and removed', async () => {
  const { page, context, end } = await openApp({ url: ATTACH_URL });
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await attach(page, text('a letter.txt', LETTER));
  await chips(page).getByText('1 chunk', { exact: true }).waitFor();
  const chat = await idOf(page);
  await ask(page, WHO);
  const answer = await answered(page);
  assert.match(await answer.innerText(), new RegExp(ANSWER));
  const source = answer.getByRole('button', { name: /^a letter\.txt:1-\d+$/ });
  await source.click();
  const dialog = page.getByRole('dialog', { name: /^a letter\.txt:1-/ });
  await dialog.getByText(/as it was attached$/).waitFor();
  await dialog.getByText('We met amber lantern today.').waitFor();
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/attached-source.png` });
  await page.keyboard.press('Escape');

  await page.reload(); // it is kept with the chat
  await chips(page).getByText('a letter.txt').waitFor();
  await page.screenshot({ path: `${SHOTS}/attached.png` });

  // Another chat of the same browser does not have it.
  await page.getByRole('button', { name: 'New chat' }).click();
  assert.equal(await chips(page).count(), 0);
  const [request] = await Promise.all([
    context.waitForEvent('request', (one) => one.url().endsWith('/v1/chat/completions')),
    ask(page, WHO)]);
  assert.equal(request.postDataJSON().retrieval, undefined);
  assert.doesNotMatch(await (await answered(page)).innerText(), /lantern/);

  await page.goto(`${ATTACH_URL}/#/chat/${chat}`);
  await page.getByRole('button', { name: 'Remove a letter.txt' }).click();
  await chips(page).waitFor({ state: 'detached' });
  assert.equal(await statusOf(page, `${ROUTE}/${chat}`), 404);
  const [after_removal] = await Promise.all([
    context.waitForEvent('request', (one) => one.url().endsWith('/v1/chat/completions')),
    ask(page, WHO)]);
  assert.equal(after_removal.postDataJSON().retrieval, undefined);
  await end();
});

test('what is refused says why, and a message waits for what is being read', async () => {
  const { page, context, end } = await openApp({ url: ATTACH_URL });
  let go_on;
  const held = new Promise((resolve) => { go_on = resolve; });
  await context.route(`**${ROUTE}/*/slow.txt`, async (route) => {
    await held;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await attach(page, { name: 'noise.bin', mimeType: '', buffer: Buffer.from([0, 1, 2]) },
    text('.env', 'A=1\n'), text('slow.txt', 'The heron stands.\n'));
  await chips(page).filter({ hasText: 'noise.bin' }).getByText(/binary$/).waitFor();
  await chips(page).filter({ hasText: '.env' }).getByText(/keys or passwords/).waitFor();
  const slow = chips(page).filter({ hasText: 'slow.txt' });
  await slow.and(page.locator('[aria-busy=true]')).waitFor();
  await page.getByLabel('Message', { exact: true }).fill('What stands?');
  assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
  await page.screenshot({ path: `${SHOTS}/attached-states.png` });
  go_on();
  await slow.getByText('1 chunk').waitFor();
  assert.ok(await page.getByRole('button', { name: 'Send' }).isEnabled());
  await page.getByRole('button', { name: 'Remove noise.bin' }).click();
  assert.equal(await chips(page).count(), 2);
  await end();
});

test('a file that is too large is not even sent', async () => {
  const { page, context, requests, end } = await openApp({ url: ATTACH_URL });
  await context.route(`**${ROUTE}`, async (route) => {
    const limits = await (await route.fetch()).json();
    await route.fulfill({ json: { ...limits, file_bytes_max: 1024 } });
  });
  await page.reload();
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await attach(page, text('huge.txt', 'x'.repeat(1025)));
  await chips(page).getByText(/larger than 1\.0/).waitFor();
  assert.ok(!requests.some((url) => url.endsWith('huge.txt')));
  await end();
});

test('files are dropped and pasted; a file of the same name takes the place of the old one', async () => {
  const { page, end } = await openApp({ url: ATTACH_URL });
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await give(page, '.stage', 'dragover', 'dropped.md', '# One\n');
  await page.getByText('Drop files to attach them to this chat').waitFor();
  await give(page, '.stage', 'drop', 'dropped.md', '# One\n');
  await chips(page).getByText('dropped.md').waitFor();
  assert.equal(await page.getByText('Drop files to attach them').count(), 0);
  await give(page, '#composer', 'paste', 'pasted.txt', 'two\n');
  await chips(page).filter({ hasText: 'pasted.txt' }).getByText('1 chunk').waitFor();
  await give(page, '#composer', 'paste', 'pasted.txt', 'three\n');
  await page.waitForFunction(async (path) => {
    const answer = await fetch(path);
    return answer.ok && (await answer.json()).text === 'three\n';
  }, `${ROUTE}/${await idOf(page)}/pasted.txt`);
  assert.equal(await chips(page).count(), 2);
  await end();
});

test('a chat that is deleted takes its files along, once the server is there', async () => {
  const { page, context, end } = await openApp({ url: ATTACH_URL });
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await attach(page, text('one.txt', 'one\n'));
  await chips(page).getByText('1 chunk').waitFor();
  const first = await idOf(page);
  const remove = async () => {
    await page.getByRole('button', { name: /^Delete New chat/ }).first().click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
  };
  await remove();
  await page.waitForFunction(async (path) => (await fetch(path)).status === 404, `${ROUTE}/${first}`);

  await attach(page, text('two.txt', 'two\n'));
  await chips(page).getByText('1 chunk').waitFor();
  const second = await idOf(page);
  await context.route(`**${ROUTE}/${second}`, (route) => route.abort());
  await remove();
  await chips(page).waitFor({ state: 'detached' });
  await context.unroute(`**${ROUTE}/${second}`);
  assert.equal(await statusOf(page, `${ROUTE}/${second}`), 200, 'it could not be told');
  await page.reload();
  await page.waitForFunction(async (path) => (await fetch(path)).status === 404, `${ROUTE}/${second}`);
  await end();
});

test('what the server has forgotten is said', async () => {
  const { page, end } = await openApp({ url: ATTACH_URL });
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await attach(page, text('old.txt', 'old\n'));
  await chips(page).getByText('1 chunk').waitFor();
  await page.evaluate((path) => fetch(path, { method: 'DELETE' }), `${ROUTE}/${await idOf(page)}`);
  await page.reload();
  await chips(page).getByText(/the server has it no longer/).waitFor();
  await end();
});
