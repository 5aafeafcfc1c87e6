// For everybody: axe finds nothing serious on any page in either theme, narrow and wide; and the app
// is used without a pointer.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import {
  ANSWER, ATTACH_URL, FIXED_FILES_URL, FOLDER, HUB_URL, QUESTION, SHOTS, SIZES, TOOL, answered, ask, axe,
  citeFiles, closeBrowser, look, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

test('every page, narrow and wide, light and dark', async () => {
  mkdirSync(SHOTS, { recursive: true });
  // No fading between themes, of which axe would see the middle.
  const { page, end } = await openApp({ reducedMotion: 'reduce' });
  await axe(page);
  await page.getByLabel('Model').waitFor();
  await look(page, 'welcome');
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await page.getByLabel('Tools').fill(TOOL);
  await page.getByRole('button', { name: 'Save as a preset' }).click();
  await page.getByLabel('Name of the preset').fill('As it is');
  await page.keyboard.press('Enter');
  await page.getByLabel('Preset', { exact: true }).waitFor();
  await look(page, 'chat-settings');
  await page.keyboard.press('Escape');
  await ask(page, 'Look up the full name of "amber".');
  await page.getByLabel('What lookup_name answers').fill('{"name": "amber lantern"}');
  await page.getByRole('button', { name: 'Give result' }).click();
  await page.getByText('It is "amber lantern".', { exact: true }).waitFor();
  await answered(page);
  await look(page, 'chat');
  for (const [key, name] of [['2', 'files-none'], ['3', 'models'], ['4', 'dashboard'], ['5', 'settings']]) {
    await page.keyboard.press(`Alt+${key}`);
    await page.getByRole('heading', { level: 2 }).first().waitFor();
    await look(page, name);
  }
  await page.keyboard.press('Alt+1'); // back to the same chat
  await page.getByText('It is "amber lantern".', { exact: true }).waitFor();
  await page.setViewportSize(SIZES[0]);
  await page.getByRole('button', { name: 'Chats' }).click();
  await look(page, 'chats');
  await end();
});

test('a chat with files that were attached, refused, and are on their way', async () => {
  mkdirSync(SHOTS, { recursive: true });
  const { page, context, end } = await openApp({ url: ATTACH_URL, reducedMotion: 'reduce' });
  await axe(page);
  await page.getByRole('button', { name: 'Attach files' }).waitFor();
  await context.route('**/slipstream/attachments/*/waits.txt', () => undefined);
  await page.locator('input[type=file]').setInputFiles([
    { name: 'letter to amber.txt', mimeType: '', buffer: Buffer.from(QUESTION) },
    { name: 'a picture with a rather long name that does not fit into a chip.png', mimeType: '',
      buffer: Buffer.from([0, 1, 2]) }]);
  await page.getByText('1 chunk', { exact: true }).waitFor();
  await page.getByText(/binary$/).waitFor();
  await ask(page, 'What is the full name of amber?');
  await answered(page);
  await page.locator('input[type=file]').setInputFiles([
    { name: 'waits.txt', mimeType: '', buffer: Buffer.from('text') }]);
  await page.locator('.chip[aria-busy=true]').waitFor();
  await look(page, 'chat-attached');
  await end();
});

test('the models of a server with a hub, while one is pulled', async () => {
  const { page, end } = await openApp({ url: HUB_URL, at: '#/models', reducedMotion: 'reduce' });
  await axe(page);
  await page.getByLabel('Search the hub').fill('gguf');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^Pull org\/large-GGUF Q4_0/ }).click();
  await page.getByText(/ of 64\.0\sMiB, .*\/s$/).waitFor();
  await page.getByRole('button', { name: 'Delete org/none-GGUF:Q2_K' }).click();
  await look(page, 'hub');
  await page.getByRole('button', { name: 'Keep' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('status').getByText('Stopped').waitFor();
  await end();
});

test('files that were found, the lines of one, and sources of an answer', async () => {
  const { page, context, end } = await openApp({ url: FIXED_FILES_URL, at: '#/files', reducedMotion: 'reduce' });
  await axe(page);
  await page.getByText('up to date', { exact: true }).waitFor();
  await page.getByLabel('Search your files').fill('heron river');
  await page.keyboard.press('Enter');
  await page.getByRole('list', { name: 'Places' }).waitFor();
  await look(page, 'files');
  await page.getByRole('button', { name: /^docs\/birds\.md/ }).click();
  await page.getByText('as the file is now').waitFor();
  await look(page, 'file');
  await page.keyboard.press('Escape');
  await citeFiles(context, `${FOLDER}-fixed`);
  await page.keyboard.press('Alt+1');
  await page.getByRole('button', { name: 'Search my files' }).click();
  await ask(page, 'What does the heron do?');
  await page.getByRole('region', { name: 'Sources' }).waitFor();
  await look(page, 'sources');
  await end();
});

test('a theme that was chosen goes before the device\'s', async () => {
  const { page, end } = await openApp({ at: '#/settings', colorScheme: 'light' });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByLabel('Dark').check();
  assert.notEqual(await paper(), light);
  await page.reload();
  assert.notEqual(await paper(), light);
  await page.getByLabel('As the device').check();
  assert.equal(await paper(), light);
  await end();
});

test('keys alone: skip to the content, ask, copy, look at every page', async () => {
  const { page, end } = await openApp();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'composer');
  await page.keyboard.insertText(QUESTION);
  await page.keyboard.press('Enter');
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await answered(page);

  // Backwards from the composer, the buttons of the answer are the next.
  await page.keyboard.press('Shift+Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Regenerate');
  await page.keyboard.press('Shift+Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Copy');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(outline, 'solid', 'the focus is seen');

  for (const [key, title] of [
    ['2', 'Files'], ['3', 'Models'], ['4', 'Dashboard'], ['5', 'Settings']]) {
    await page.keyboard.press(`Alt+${key}`);
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
  }
  await end();
});
