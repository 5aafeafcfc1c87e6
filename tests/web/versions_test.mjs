// Versions of a question and of an answer, and an answer that goes on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  ANSWER, BABBLE, QUESTION, answered, ask, closeBrowser, edited, openApp, openBrowser, regenerated, sampling,
  withoutEnd } from './app.mjs';

before(openBrowser);
after(closeBrowser);

const textOf = async (answer) => (await answer.locator('.rich').innerText()).trim();
const versions = (article) => article.getByRole('group', { name: 'Versions' });

test('an edited question and its answer stay as a version, also after a reload', async () => {
  const { page, end } = await openApp();
  await ask(page, QUESTION);
  await answered(page);
  await ask(page, 'Something else');
  await page.getByRole('article').nth(3).waitFor();
  await answered(page);
  const first = page.getByRole('article', { name: 'You' }).first();
  assert.equal(await versions(first).count(), 0);
  await edited(page, first, 'We met copper willow today. Who is copper?');
  await answered(page);
  assert.equal(await page.getByRole('article').count(), 2);
  assert.match(await versions(first).innerText(), /2 \/ 2/);

  await page.reload();
  await versions(first).getByRole('button', { name: 'Version before' }).click();
  await page.getByText(ANSWER, { exact: true }).first().waitFor();
  assert.equal(await page.getByRole('article').count(), 4);
  assert.match(await versions(first).innerText(), /1 \/ 2/);
  assert.ok(await versions(first).getByRole('button', { name: 'Version before' }).isDisabled());
  await versions(first).getByRole('button', { name: 'Next version' }).focus();
  await page.keyboard.press('Enter');
  await first.getByText('copper willow today').waitFor();
  assert.equal(await page.getByRole('article').count(), 2);
  // The focus goes on where it was: at the end the other arrow has it.
  await page.waitForFunction(() => document.activeElement.ariaLabel === 'Version before');
  assert.equal(await page.getByRole('status').first().innerText(), 'Version 2 of 2');
  // A word of a version that is not shown finds its chat.
  await page.getByLabel('Search chats').fill('amber lantern');
  assert.equal(await page.getByRole('list', { name: 'Chats' }).getByRole('listitem').count(), 1);
  await end();
});

test('an answer had again is another version, and each can be had back', async () => {
  const { page, end } = await openApp({ settings: { sampling: sampling({ temperature: '2', max_tokens: '12' }) } });
  await ask(page, 'Tell me about packages');
  const first = await textOf(await answered(page));
  const second = await textOf(await regenerated(page, await answered(page)));
  assert.notEqual(second, first);
  const answer = page.getByRole('article', { name: 'Answer' });
  await versions(answer).getByRole('button', { name: 'Version before' }).click();
  assert.equal(await textOf(answer), first);
  await versions(answer).getByRole('button', { name: 'Next version' }).click();
  assert.equal(await textOf(answer), second);
  await end();
});

test('an answer that ended at the limit goes on from there', async () => {
  const { page, end } = await openApp({ settings: { sampling: sampling({ max_tokens: '3' }) } });
  await ask(page, QUESTION);
  const answer = await answered(page);
  const begun = await textOf(answer);
  assert.ok(ANSWER.startsWith(begun) && begun.length < ANSWER.length, begun);
  const [request] = await Promise.all([
    page.waitForRequest('**/v1/chat/completions'), answer.getByRole('button', { name: 'Continue' }).click()]);
  const { messages, continue_final_message } = request.postDataJSON();
  assert.deepEqual([messages.at(-1).role, continue_final_message], ['assistant', true]);
  for (let i = 0; i < 20 && (await textOf(await answered(page))) !== ANSWER; ++i) {
    await page.waitForTimeout(100);
    const button = answer.getByRole('button', { name: 'Continue' });
    if (await button.isVisible() && await button.isEnabled()) await button.click();
  }
  assert.equal(await textOf(await answered(page)), ANSWER);
  assert.equal(await page.getByRole('article', { name: 'Answer' }).count(), 1);
  assert.match(await answer.locator('.stats').innerText(), /^\d+ tokens/);
  await end();
});

test('an answer that was stopped goes on, and keeps what it has if the server is gone', async () => {
  const { page, context, end } = await openApp({ settings: { sampling: BABBLE } });
  await withoutEnd(context);
  await ask(page, 'Tell me about packages');
  await page.waitForFunction(() => document.querySelector('.answer .rich')?.textContent.length > 20);
  await page.keyboard.press('Escape');
  const answer = await answered(page);
  const begun = await textOf(answer);
  await answer.getByRole('button', { name: 'Continue' }).click();
  await page.waitForFunction((n) => document.querySelector('.answer .rich').textContent.length > n + 20, begun.length);
  await page.keyboard.press('Escape');
  await answered(page);
  const more = await textOf(answer);
  assert.ok(more.startsWith(begun.slice(0, -1)) && more.length > begun.length, `${begun} | ${more}`);
  await context.unroute('**/v1/chat/completions');
  await context.route('**/v1/chat/completions', (route) => route.abort());
  await answer.getByRole('button', { name: 'Continue' }).click();
  await answer.getByText(/^It did not go on: The server cannot be reached/).waitFor();
  assert.equal(await textOf(answer), more);
  assert.ok(await answer.getByRole('button', { name: 'Continue' }).isEnabled());
  await end();
});

test('where an answer fails the one before is still there', async () => {
  const { page, context, end } = await openApp();
  await ask(page, QUESTION);
  const answer = await answered(page);
  await context.route('**/v1/chat/completions', (route) => route.abort());
  await regenerated(page, answer);
  await page.getByRole('alert').getByText('The server cannot be reached').waitFor();
  await page.getByRole('button', { name: 'Version before' }).click();
  await page.getByText(ANSWER, { exact: true }).waitFor();
  await end();
});
