// Presets, how much a model thinks, answers by a schema, the meter of the context, and files with chats.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  ANSWER, QUESTION, answered, ask, closeBrowser, openApp, openBrowser, regenerated } from './app.mjs';

before(openBrowser);
after(closeBrowser);

const openSettings = (page) => page.getByRole('button', { name: 'Settings of this chat' }).click();
const sent = async (page, act) => {
  const [request] = await Promise.all([page.waitForRequest('**/v1/chat/completions'), act()]);
  return request.postDataJSON();
};

test('a preset is kept by name, chosen for another chat, and deleted', async () => {
  const { page, end } = await openApp();
  await openSettings(page);
  await page.getByLabel('System prompt').fill('Answer in one sentence');
  await page.getByLabel('Thinking').selectOption('A little');
  await page.getByLabel('Top p').fill('0.5');
  await page.getByRole('button', { name: 'Save as a preset' }).click();
  await page.keyboard.type('One sentence');
  await page.keyboard.press('Enter');
  assert.equal(await page.getByLabel('Preset', { exact: true }).inputValue(), 'One sentence');
  await page.keyboard.press('Escape');
  await page.reload();
  await page.getByLabel('Model').waitFor(); // keys work by now
  await page.keyboard.press('Control+Shift+O');
  await openSettings(page);
  assert.equal(await page.getByLabel('System prompt').inputValue(), '');
  await page.getByLabel('Preset', { exact: true }).selectOption('One sentence');
  assert.equal(await page.getByLabel('System prompt').inputValue(), 'Answer in one sentence');
  await page.getByRole('button', { name: 'Close' }).click();
  const request = await sent(page, () => ask(page, QUESTION));
  assert.deepEqual(request.messages[0], { role: 'system', content: 'Answer in one sentence' });
  assert.deepEqual([request.reasoning_effort, request.top_p], ['low', 0.5]);
  await answered(page);
  await openSettings(page);
  await page.getByRole('button', { name: 'Delete the preset One sentence' }).click();
  assert.equal(await page.getByLabel('Preset', { exact: true }).count(), 0);
  assert.equal(await page.getByLabel('System prompt').inputValue(), 'Answer in one sentence', 'the chat keeps it');
  await end();
});

test('answers meet a schema, and are shown as the JSON that they are', async () => {
  const { page, end } = await openApp();
  await openSettings(page);
  const field = page.getByLabel('Answers as JSON');
  await field.fill('{');
  await page.getByText(/^The schema is not JSON/).waitFor();
  await field.fill('{"type": "object", "properties": {"name": {"enum": ["amber", "copper"]}}, "required": ["name"]}');
  await page.getByRole('button', { name: 'Close' }).click();
  await ask(page, QUESTION);
  const answer = await answered(page);
  const code = answer.locator('code[data-language=json]');
  assert.ok(['amber', 'copper'].includes(JSON.parse(await code.innerText()).name));
  await code.locator('.hljs-attr').waitFor();
  assert.equal(await answer.getByRole('button', { name: 'Continue' }).count(), 0);
  await end();
});

test('a meter shows how full the context is', async () => {
  const { page, end } = await openApp();
  await page.getByLabel('Model').waitFor();
  await ask(page, QUESTION);
  await answered(page);
  const meter = page.getByRole('meter', { name: 'Context' });
  const [n, n_max] = await meter.evaluate(({ ariaValueNow, ariaValueMax }) => [ariaValueNow, ariaValueMax].map(Number));
  assert.ok(n > 100 && n < 1000 && n_max === 4096, `${n} of ${n_max}`);
  await ask(page, 'x '.repeat(1800));
  await answered(page);
  assert.match(await meter.getAttribute('aria-valuetext'), /^2,\d+ of 4,096 tokens of the context/);
  await end();
});

const file = (content) => ({ name: 'chats.json', mimeType: 'application/json', buffer: Buffer.from(content) });

test('chats go into a file and come back from it, with their versions', async () => {
  const first = await openApp();
  await ask(first.page, QUESTION);
  await answered(first.page);
  await regenerated(first.page, await answered(first.page));
  await openSettings(first.page);
  const [one] = await Promise.all([
    first.page.waitForEvent('download'), first.page.getByRole('button', { name: 'Export this chat' }).click()]);
  const json = Buffer.concat(await (await one.createReadStream()).toArray()).toString();
  await first.end();

  const { page, end } = await openApp({ at: '#/settings' });
  const choose = (content) => page.locator('input[type=file]').setInputFiles(file(content));
  await choose(json);
  await page.getByRole('status').getByText('Imported 1 chat', { exact: true }).waitFor();
  await choose(json);
  await page.getByText('Imported 0 chats; 1 was here already', { exact: true }).waitFor();
  await page.reload();
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await page.getByRole('list', { name: 'Chats' }).getByRole('link').click();
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Version before' }).click();
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await end();
});

test('a file that wants to do harm does none', async () => {
  const { page, end } = await openApp({ at: '#/settings' });
  const choose = (content) => page.locator('input[type=file]').setInputFiles(file(content));
  const status = page.locator('p[role=status]');
  await choose('{"kind": "other"}');
  await status.getByText('The file is no export of this app').waitFor();
  await choose('[[[[');
  await status.getByText(/^The file is not JSON/).waitFor();
  const html = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
  const message = (id, role, more) => ({ id, role, content: html, ...more });
  await choose(JSON.stringify({ kind: 'slipstream-export', version: 1,
    settings: { api_key: 'stolen', theme: 'dark' },
    presets: [{ name: html, system: { toString: 1 }, thinking: 'x', sampling: { temperature: html } }],
    conversations: [null, 7, [], { id: '../../x', title: html, model: html, system: {}, tools: html, schema: 7,
      messages: [message('a', 'user'), message('b', 'assistant', { reasoning: html, note: html, error: html, model: html,
        citations: [{ url: 'javascript:window.hacked=1', title: html }], calls: [{ id: 1, name: html, arguments: html }],
        stats: { n_prompt: html, tokens_per_s: {} } }), message('c', 'system'), { id: 'd' }],
      branches: [{ after: 'a', number: 'x', messages: [message('e', 'assistant', { stats: 7 })] }, { after: {}, messages: 7 }],
      attached: [{ name: html, chunks: {} }], files: { is_on: 1, project: {} } }] }));
  await status.getByText('Imported 1 chat and 1 preset').waitFor();
  await page.getByRole('link', { name: 'Chat', exact: true }).click();
  await page.getByRole('list', { name: 'Chats' }).getByRole('link').click();
  const answer = await answered(page);
  await answer.getByText('window.hacked=1').last().waitFor();
  await page.getByRole('button', { name: 'Next version' }).or(page.getByRole('button', { name: 'Version before' })).first().waitFor();
  await openSettings(page);
  await page.getByLabel('Preset', { exact: true }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: html }).waitFor();
  assert.equal(await page.locator('main img[src=x], main script').count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const kept = JSON.parse(await page.evaluate(() => localStorage.getItem('slipstream.settings')));
  assert.notEqual(kept.api_key, 'stolen');
  assert.notEqual(kept.theme, 'dark');
  await end();
});
