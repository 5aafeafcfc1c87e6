// Models, of a server without --hub and of one that has a hub of its own (tests/hub).
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import {
  ANSWER, FIRST_URL, HUB_URL, QUESTION, SHOTS, answered, ask, closeBrowser, openApp, openBrowser } from './app.mjs';

before(openBrowser);
after(closeBrowser);

const NAME = 'org/needle-GGUF:Q8_0';

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

test('search, a pull with progress, load, chat, unload', async () => {
  const { page, end } = await openApp({ url: HUB_URL });
  const goTo = (name) => page.getByRole('link', { name }).click();
  await goTo('Models');
  await page.getByText(/^Does not fit: .*GGUF/).waitFor(); // an installed file that is no model
  const card = page.getByRole('listitem').filter({
    has: page.getByRole('heading', { name: NAME }) }).filter({ hasText: 'Q8_0 ·' });
  assert.equal(await card.count(), 0);

  await page.getByLabel('Search the hub').fill('needle gguf');
  await page.keyboard.press('Enter');
  await page.getByText('12,345 downloads').waitFor();
  await page.getByRole('button', { name: 'Pull org/needle-GGUF Q8_0, 8.6 MiB' }).click();
  const values = await page.evaluate(() => new Promise((resolve) => {
    const seen = new Set(); // what the ring shows until it is full
    const look = () => {
      const now = Number(document.querySelector('[role=progressbar]')?.ariaValueNow ?? 0);
      seen.add(now);
      if (now === 100) resolve([...seen]);
      else requestAnimationFrame(look);
    };
    look();
  }));
  assert.ok(values.filter((value) => value > 0 && value < 100).length >= 2, `${values}`);
  await page.getByRole('status').getByText('Installed').waitFor();

  await card.getByText('on disk', { exact: true }).waitFor();
  await card.getByText(/^Fits with 4,096 tokens of context, KV turbo8v4$/).waitFor();
  await card.getByRole('button', { name: 'Load' }).click();
  await card.getByText('loaded', { exact: true }).waitFor();
  await card.getByRole('button', { name: 'Chat' }).click();
  await ask(page, QUESTION);
  await (await answered(page)).getByText(ANSWER).waitFor();
  await goTo('Models');
  await card.getByRole('button', { name: 'Unload' }).click();
  await card.getByText('idle', { exact: true }).waitFor();

  // What a model was pulled for is over: its files go, after a question.
  const remove = card.getByRole('button', { name: `Delete ${NAME}` });
  await remove.click();
  await card.getByText('Delete its files from the server\'s disk? That frees 8.6\u00a0MiB.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Keep');
  await page.keyboard.press('Enter');
  await remove.click();
  await card.getByRole('button', { name: 'Yes, delete' }).click();
  await card.waitFor({ state: 'detached' });
  await end();
});

test('a server without a model recommends one, pulls it and chats', async () => {
  const { page, end } = await openApp({ url: FIRST_URL });
  await page.getByRole('heading', { name: 'For this machine' }).waitFor(); // nobody asked for this page
  const first = page.getByRole('listitem').filter({ hasText: 'start with this one' });
  await first.getByRole('heading', { name: 'Qwen/Qwen3-0.6B-GGUF:Q8_0' }).waitFor();
  await page.getByText(/does not fit: .*GiB/).waitFor();
  assert.ok(await page.getByRole('button', { name: /^Pull Qwen\/Qwen3-8B-GGUF:Q4_K_M/ }).isDisabled());
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/first-run.png` });
  await first.getByRole('button', { name: /^Pull/ }).click();
  await page.getByRole('status').getByText('Installed').waitFor();
  await page.getByRole('button', { name: 'Chat', exact: true }).first().click();
  await ask(page, QUESTION);
  await (await answered(page)).getByText(ANSWER).waitFor();
  await end();
});

test('a pull that fails says why, and one that is stopped goes on later', async () => {
  const { page, end } = await openApp({ url: HUB_URL });
  await page.getByRole('link', { name: 'Models' }).click();
  const search = page.getByLabel('Search the hub');
  await search.fill('damaged');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /^Pull org\/damaged-GGUF Q4_0/ }).click();
  await page.getByText(/should have .* the download was removed/).waitFor();

  await search.fill('large');
  await page.keyboard.press('Enter');
  const pull = page.getByRole('button', { name: /^Pull org\/large-GGUF Q4_0/ });
  await pull.click();
  await page.getByText(/ of 64\.0\sMiB, .*\/s$/).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('status').getByText('Stopped').waitFor();
  await pull.click();
  await page.getByText(/ of 64\.0\sMiB, .*\/s$/).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('status').getByText('Stopped').waitFor();
  await end();
});
