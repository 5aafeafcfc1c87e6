// Chats with the needle model.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import {
  ANSWER, BABBLE, QUESTION, SHOTS, answered, ask, closeBrowser, openApp, openBrowser,
  regenerated, watchAnswer, watchReading, withoutEnd,
} from './app.mjs';

before(openBrowser);
after(closeBrowser);

test('a fact is found, and its figures stand under the answer', async () => {
  const { page, end } = await openApp();
  await ask(page, QUESTION);
  const answer = await answered(page);
  assert.equal((await answer.locator('.rich').innerText()).trim(), ANSWER);
  assert.match(await answer.locator('.stats').innerText(),
    /^\d+ tokens.*tokens\/s.*to first token.*\d+ of \d+ prompt tokens cached$/s);
  assert.equal(await page.getByRole('status').first().innerText(), 'The answer is complete');
  // The same again: its prompt is in the cache.
  const again = await regenerated(page, answer);
  assert.equal((await again.locator('.rich').innerText()).trim(), ANSWER);
  const [, n_cached] = /(\d+) of \d+ prompt/.exec(await again.locator('.stats').innerText());
  assert.ok(Number(n_cached) > 50, `${n_cached} tokens cached`);
  assert.equal(await page.getByRole('article', { name: 'Answer' }).count(), 1);
  await end();
});

test('an answer is shown while it grows, Esc stops it, and it can be had again', async () => {
  const { page, context, end } = await openApp({ settings: { sampling: BABBLE } });
  await withoutEnd(context);
  const lengths = await watchAnswer(page);
  await ask(page, 'Tell me about packages');
  await page.waitForFunction(() => window.seenLengths.length > 4);
  await page.getByRole('button', { name: 'Stop' }).waitFor();
  await page.keyboard.press('Escape');
  const answer = await answered(page);
  assert.equal(await answer.locator('footer .tag').innerText(), 'Stopped');
  const seen = await lengths();
  assert.ok(seen.length > 4 && seen.at(0) < seen.at(-1), String(seen));
  const text = await answer.locator('.rich').innerText();
  await page.waitForTimeout(300);
  assert.equal(await answer.locator('.rich').innerText(), text, 'nothing comes after a stop');

  await answer.getByRole('button', { name: 'Regenerate' }).click();
  await page.getByRole('button', { name: 'Stop' }).click();
  await answered(page);
  assert.equal(await page.getByRole('article', { name: 'Answer' }).count(), 1);
  await end();
});

test('a bar shows how much of a long prompt is read, and what of it was cached', async () => {
  const { page, end } = await openApp();
  const seen = await watchReading(page);
  const counts = ({ text }) => /: ([\d,]+) of ([\d,]+) tokens(?:, ([\d,]+) cached)?$/.exec(text)
    .slice(1).map((n) => Number((n ?? '0').replaceAll(',', '')));
  const text = Array.from({ length: 300 }, (_, i) => `Line ${i} is long.`).join('\n');
  await ask(page, text.slice(0, 3000));
  await answered(page);
  const first = await seen();
  assert.ok(first.length > 0, 'a bar was seen');
  for (const one of first) {
    const [n_done, n_prompt, n_cached] = counts(one);
    assert.ok(n_done > 0 && n_done < n_prompt, one.text);
    assert.ok(n_cached < 64, one.text);
    assert.ok(Math.abs(one.cached + one.computed - 100 * n_done / n_prompt) < 0.1, JSON.stringify(one));
  }
  assert.equal(await page.locator('.reading').count(), 0, 'it goes when the answer begins');
  // Edited at its end: the beginning is cached and shown apart.
  const you = page.getByRole('article', { name: 'You' }).first();
  await you.hover();
  await you.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Edit the message').fill(text);
  await page.getByRole('button', { name: 'Send' }).first().click();
  await page.waitForFunction((n) => window.seenReading.length > n, first.length); // it may be gone again
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/reading.png` });
  await answered(page);
  const second = (await seen()).slice(first.length);
  const [, , n_cached] = counts(second.at(-1));
  assert.ok(n_cached > 500, second.at(-1).text);
  assert.ok(second.at(-1).cached > 10, JSON.stringify(second.at(-1)));
  await end();
});

test('chats are kept, found, renamed and deleted', async () => {
  const { page, end } = await openApp();
  await ask(page, QUESTION);
  await answered(page);
  await page.reload();
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await page.keyboard.press('Control+Shift+O');
  await ask(page, 'Who is nobody?');
  await answered(page);

  const chats = page.getByRole('list', { name: 'Chats' }).getByRole('listitem');
  assert.equal(await chats.count(), 2);
  // Who types at once loses no letter: the focus is there before the next painting.
  assert.equal(await page.evaluate(() => {
    dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }));
    return document.activeElement.ariaLabel;
  }), 'Search chats');
  await page.keyboard.type('AMBER lantern');
  await page.waitForFunction(() => document.querySelectorAll('.side .entry').length === 1);
  await chats.first().hover();
  assert.equal(await chats.first().getByRole('button', { name: /^Rename/ }).evaluate(async (button) => {
    button.click();
    await new Promise((rendered) => setTimeout(rendered));
    return document.activeElement.ariaLabel;
  }), 'New name of the chat');
  await page.keyboard.type('A lantern');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'A lantern' }).click();
  await page.getByRole('heading', { name: 'A lantern' }).waitFor();
  await page.getByLabel('Search chats').fill('');
  await page.reload();
  await page.getByRole('heading', { name: 'A lantern' }).waitFor();

  await chats.filter({ hasText: 'A lantern' }).hover();
  await page.getByRole('button', { name: 'Delete A lantern' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll('.side .entry').length === 1);
  await page.reload();
  await page.getByRole('link', { name: 'Who is nobody?' }).waitFor();
  assert.equal(await chats.count(), 1);
  await end();
});

test('thoughts are folded, and open by key', async () => {
  const { page, end } = await openApp();
  await page.getByRole('button', { name: 'Settings of this chat' }).click();
  await page.getByLabel('Thinking').selectOption('Think first');
  await page.keyboard.press('Escape');
  await ask(page, QUESTION);
  const answer = await answered(page);
  const thoughts = answer.locator('details');
  const text = thoughts.getByText('I look for amber.');
  assert.equal(await text.isVisible(), false);
  await thoughts.locator('summary').focus();
  await page.keyboard.press('Enter');
  await text.waitFor();
  assert.equal((await answer.locator('> .rich').innerText()).trim(), ANSWER);
  await end();
});
