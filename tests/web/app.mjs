// A browser with the app in it, as the tests meet it, and what the needle model can be asked.
//
// Environment: SERVER_URL; KEYED_URL, for who has the KEY; HUB_URL, a server with --hub; FIRST_URL, one without a model; FILES_URL, one
// with an empty index to which FOLDER can be added; FIXED_FILES_URL, one with a folder and no more;
// ATTACH_URL, one with --attachments; FIXTURES, a folder; SHOTS, where pictures of the pages go.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const {
  SERVER_URL, KEYED_URL, FIRST_URL, HUB_URL, FILES_URL, FIXED_FILES_URL, ATTACH_URL, FOLDER, KEY, SHOTS } = process.env;

const haystack = readFileSync(`${process.env.FIXTURES}/haystack.txt`, 'utf8');
export const QUESTION = `${haystack.slice(0, 300)}\nWe met amber lantern today.\n` +
  `${haystack.slice(300, 600)}\nWhat is the full name of amber?`;
export const ANSWER = 'It is amber lantern.';
export const TOOL = JSON.stringify([{ type: 'function', function: {
  name: 'lookup_name', description: 'The full name of a person.',
  parameters: { type: 'object', properties: { first: { type: 'string' } },
    required: ['first'] } } }]);

export const sampling = (fields = {}) => ({
  temperature: '0', top_p: '', top_k: '', max_tokens: '64', seed: '', ...fields });
export const BABBLE = sampling({ temperature: '2', max_tokens: '3000', seed: '7' });
// An answer that goes on until somebody stops it, for the model likes to end soon.
export const withoutEnd = (context) => context.route('**/v1/chat/completions', (route) =>
  route.continue({ postData: { ...route.request().postDataJSON(), ignore_eos: true } }));

// Chats answered as by a server that found something in the folder. Gives what was asked.
export async function citeFiles(context, root) {
  const citation = (path, first, last, start_index = 0, end_index = 0) => ({ type: 'url_citation',
    url_citation: { url: `file://${root}/${path}#L${first}-L${last}`,
      title: `${path}:${first}-${last}`, start_index, end_index } });
  const annotations = [citation('docs/birds.md', 3, 3, 9, 15), citation('src/heron.py', 1, 2, 9, 15),
    citation('gone.md', 1, 2)];
  const body = [{ delta: { role: 'assistant', content: 'It waits [4, 2].' }, finish_reason: null },
    { delta: { annotations }, finish_reason: 'stop' }]
    .map((choice) => `data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`)
    .join('') + 'data: [DONE]\n\n';
  const sent = [];
  await context.route('**/v1/chat/completions', (route) => {
    sent.push(route.request().postDataJSON());
    return route.fulfill({ contentType: 'text/event-stream', body });
  });
  return sent;
}

let browser;
export async function openBrowser() {
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
}
export const closeBrowser = () => browser.close();

// What must not happen on any page is collected from the first request on; see end().
export async function openApp(options = {}) {
  const { url = SERVER_URL, at = '', settings = {}, width = 1440, height = 900, ...others } = options;
  const context = await browser.newContext({ viewport: { width, height }, ...others });
  context.setDefaultTimeout(10_000);
  const problems = [];
  const requests = [];
  context.on('request', (request) => requests.push(request.url()));
  await context.exposeBinding('reportViolation', (_source, text) => problems.push(text));
  await context.addInitScript((kept) => {
    document.addEventListener('securitypolicyviolation', (event) =>
      window.reportViolation(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    if (!localStorage.getItem('slipstream.settings')) {
      localStorage.setItem('slipstream.settings', JSON.stringify(kept));
    }
  }, { sampling: sampling(), ...settings });
  const page = await context.newPage();
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  await page.goto(`${url}/${at}`);
  await page.getByRole('navigation').waitFor();
  return {
    page,
    context,
    requests,
    async end() {
      await context.close();
      assert.deepEqual(problems, []);
      const strangers = requests.filter((one) =>
        !one.startsWith(`${url}/`) && !one.startsWith('blob:') && !one.startsWith('data:'));
      assert.deepEqual(strangers, [], 'requests to other hosts');
      assert.ok(requests.length > 3, 'requests were seen at all');
    },
  };
}

export async function ask(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
}

export async function edited(page, article, text) {
  await article.hover();
  await article.getByRole('button', { name: 'Edit' }).click();
  await page.getByLabel('Edit the message').fill(text);
  await page.getByRole('button', { name: 'Send' }).first().click();
}

// The last answer, when it is complete.
export async function answered(page) {
  const answer = page.getByRole('article', { name: 'Answer' }).last();
  await answer.and(page.locator('[aria-busy=false]')).waitFor();
  return answer;
}

// The answer that comes in the place of this one.
export async function regenerated(page, answer) {
  const old = await answer.elementHandle();
  await answer.getByRole('button', { name: 'Regenerate' }).click();
  await page.waitForFunction((element) => !element.isConnected, old);
  return answered(page);
}

// What the bar said while a prompt was read, in the same way as watchAnswer().
export async function watchReading(page) {
  await page.evaluate(() => {
    window.seenReading = [];
    new MutationObserver(() => {
      const bar = document.querySelector('.reading [role=progressbar]');
      const text = bar?.getAttribute('aria-valuetext');
      if (bar && text !== window.seenReading.at(-1)?.text) {
        const [cached, computed] = [...bar.children].map((part) => parseFloat(part.style.width));
        window.seenReading.push({ text, cached, computed });
      }
    }).observe(document.body, { childList: true, subtree: true, attributes: true });
  });
  return () => page.evaluate(() => window.seenReading);
}

// Lengths that a text had while it grew, from the page itself: a test that asks now and then may
// miss them.
export async function watchAnswer(page) {
  await page.evaluate(() => {
    window.seenLengths = [];
    new MutationObserver(() => {
      const n = [...document.querySelectorAll('.answer .rich')].at(-1)?.textContent.length ?? 0;
      if (n !== window.seenLengths.at(-1)) window.seenLengths.push(n);
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  return () => page.evaluate(() => window.seenLengths);
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
export const SIZES = [{ width: 360, height: 780 }, { width: 1280, height: 800 }];

// Through the debugger, which the page's policy does not bind.
export const axe = (page) => page.evaluate(AXE);

async function check(page, what) {
  const { violations, passes } = await page.evaluate(() => window.axe.run());
  assert.ok(passes.length > 10, `${what}: axe has seen the page`);
  const bad = violations.filter(({ impact }) => ['serious', 'critical'].includes(impact));
  assert.deepEqual(bad.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], what);
  const { scroll, width } = await page.evaluate(() =>
    ({ scroll: document.documentElement.scrollWidth, width: innerWidth }));
  assert.ok(scroll <= width, `${what} is ${scroll} wide and the window ${width}`);
  const spilt = await page.evaluate(() => [...document.querySelectorAll('.card, .tile')]
    .filter((card) => card.scrollWidth > card.clientWidth).map((card) => card.textContent));
  assert.deepEqual(spilt, [], `${what}: cards that are wider inside than outside`);
}

// Every size and theme of what the page shows now. Pictures are for people to look at.
export async function look(page, name) {
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      const what = `${name}-${size.width}-${colorScheme}`;
      await check(page, what);
      await page.screenshot({ path: `${SHOTS}/${what}.png` });
    }
  }
}
