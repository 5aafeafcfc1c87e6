// Answers as they are shown: colours, formulas, what grows, and what a hostile one can do (nothing).
// What is asked is real; the answers are ours, streamed in the page, for no small model writes these.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { SHOTS, answered, ask, axe, closeBrowser, look, openApp, openBrowser, regenerated } from './app.mjs';

before(openBrowser);
after(closeBrowser);

// Answers of this page are `text`, in pieces of so many characters. The page may say "go on" itself.
async function streams(page, text, n_at_once = 4) {
  await page.evaluate(([answer, n]) => {
    const ask = window.fetch;
    window.fetch = async (path, init) => {
      if (path !== '/v1/chat/completions') return ask(path, init);
      const events = new TextEncoder();
      const event = (chunk) => events.encode(`data: ${JSON.stringify(chunk)}\n\n`);
      return new Response(new ReadableStream({
        async start(stream) {
          for (let at = 0; at < answer.length; at += n) {
            stream.enqueue(event({ choices: [{ delta: { content: answer.slice(at, at + n) } }] }));
            // Tasks between pieces, and now and then time to be shown.
            if (at % (128 * n) === 0) await new Promise((shown) => setTimeout(shown, 45));
          }
          stream.enqueue(event({ choices: [{ delta: {}, finish_reason: 'stop' }] }));
          stream.enqueue(events.encode('data: [DONE]\n\n'));
          stream.close();
        },
      }), { headers: { 'Content-Type': 'text/event-stream' } });
    };
  }, [text, n_at_once]);
}

const MIXED = `## A cache

Attention of $q$ over $k_1, \\dots, k_n$ with $\\theta$:

$$
\\frac{\\sum_{i=1}^{n} e^{q \\cdot k_i / \\sqrt{d}} \\, v_i}{\\sum_{i=1}^{n} e^{q \\cdot k_i / \\sqrt{d}}}
$$

1. **Scores** by \\(\\sqrt{d}\\)
2. Weights:
   \`\`\`python
   def softmax(scores):
       return [math.exp(s) for s in scores]  # not "safe"
   \`\`\`
3. Mean

| cache | bytes |
|---|--:|
| f16 | $4096$ |

\`\`\`cpp
template <typename Codec>
float dot(const Codec& codec) { return 0.5f; }  // "text"
\`\`\`

It costs $5 to $6.
`;

test('code has colours and formulas are set, in either theme, narrow and wide', async () => {
  mkdirSync(SHOTS, { recursive: true });
  const { page, end } = await openApp({ reducedMotion: 'reduce' });
  await axe(page);
  await streams(page, MIXED);
  await ask(page, 'How does attention read a cache?');
  const answer = await answered(page);
  await answer.locator('math').nth(5).waitFor();
  assert.deepEqual(await answer.locator('.math').evaluateAll((all) => all.map((one) => one.dataset.math)),
    ['inline', 'inline', 'inline', 'block', 'inline', 'inline']);
  await answer.locator('code[data-language=cpp] .hljs-keyword').first().waitFor();
  await answer.locator('code[data-language=python] .hljs-comment').waitFor();
  assert.equal(await answer.locator('code[data-language=cpp]').innerText(),
    'template <typename Codec>\nfloat dot(const Codec& codec) { return 0.5f; }  // "text"\n');
  await answer.getByText('It costs $5 to $6.', { exact: true }).waitFor();
  const wide = await answer.evaluate((element) => element.scrollWidth > element.clientWidth);
  assert.equal(wide, false);
  await regenerated(page, answer);
  await page.getByRole('group', { name: 'Versions' }).waitFor();
  await answer.locator('math').nth(5).waitFor();
  await look(page, 'rendering');

  // Who has scrolled away and asks again is taken to the end, and stays there while formulas are set.
  const gap = () => page.getByRole('region', { name: 'Conversation' }).evaluate((box) =>
    box.scrollHeight - box.scrollTop - box.clientHeight);
  await page.getByRole('region', { name: 'Conversation' }).evaluate((box) => { box.scrollTop = 0; });
  await page.getByRole('button', { name: 'To the end' }).waitFor();
  await ask(page, 'Once more');
  await page.getByRole('article').nth(3).waitFor();
  await answered(page);
  await page.locator('math').nth(11).waitFor();
  await page.waitForTimeout(100);
  assert.ok(await gap() < 80, `${await gap()} from the end`);

  await page.reload(); // and from what was kept
  await page.locator('math').nth(11).waitFor();
  await page.locator('code[data-language=python] .hljs-comment').nth(1).waitFor();
  await end();
});

test('of 8,000 tokens each costs as much as the first, and what stands is not made again', async () => {
  const { page, context, end } = await openApp();
  const section = MIXED.replaceAll('$', '').replaceAll('\\', ''); // other tests set formulas
  const n_chars = 32_000;
  const text = section.repeat(Math.ceil(n_chars / section.length)).slice(0, n_chars);
  await streams(page, text);
  // Elements that were added to the answer, by quarters of it; and whether its first heading stays.
  await page.evaluate((n) => {
    window.added = [0, 0, 0, 0];
    new MutationObserver((records) => {
      const rich = document.querySelector('.answer > .rich');
      if (!rich) return;
      const headings = window.first ? [] : rich.querySelectorAll('h2');
      if (headings.length > 1) window.first = headings[0]; // by now it is settled
      const quarter = Math.min(3, Math.floor(4 * rich.textContent.length / n));
      for (const { addedNodes, target } of records) {
        if (!rich.contains(target)) continue;
        for (const node of addedNodes) {
          window.added[quarter] += node.nodeType === 1 ? 1 + node.querySelectorAll('*').length : 0;
        }
      }
    }).observe(document.body, { childList: true, subtree: true });
  }, n_chars * 0.93); // of Markdown so much is text
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  await ask(page, 'Tell me all');
  const answer = await answered(page);
  const { metrics } = await session.send('Performance.getMetrics');
  const seconds = metrics.find(({ name }) => name === 'ScriptDuration').value;
  const added = await page.evaluate(() => window.added);
  const n_elements = await answer.locator('.rich *').count();
  console.log(`elements added by quarters of the answer: ${added}; it has ${n_elements}; scripts: ${seconds.toFixed(2)} s`);
  assert.ok(await page.evaluate(() => window.first.isConnected), 'the first heading is still the first');
  assert.ok(added[3] < 2.5 * added[0] + 200, String(added));
  // Anew with each of some 60 pictures would be 30 times as many as there are.
  const n_added = added.reduce((sum, n) => sum + n, 0);
  assert.ok(n_added < 6 * n_elements, `${n_added} added for ${n_elements}`);
  await end();
});

const HOSTILE = `<img src=x onerror="window.hacked = 1"> <script>window.hacked = 1</script>

\`\`\`html
<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>
\`\`\`

\`\`\`js"onmouseover="window.hacked=1
</code></pre><script>window.hacked = 1</script>
\`\`\`

$\\href{javascript:window.hacked=1}{x}$ and $</span><img src=x onerror="window.hacked=1">$ and
$\\text{<img src=x onerror="window.hacked=1">}$ and $\\class{a" onclick="b}{x}$

$$
\\includegraphics{https://tracker.example/x.png} \\style{background:url(https://tracker.example/y)}{x}
$$

$$${'{'.repeat(1500)}x${'}'.repeat(1500)}$$

[x](javascript:window.hacked=1) ![y](https://tracker.example/pixel.png)

\`\`\`python
${'('.repeat(3000)}
\`\`\`
`;

test('an answer that wants to do harm is text', async () => {
  const { page, end } = await openApp();
  await streams(page, HOSTILE, 16);
  await ask(page, 'Do harm');
  const answer = await answered(page);
  await answer.locator('code[data-language=html] .hljs-tag').first().waitFor();
  await answer.locator('.math.set').first().waitFor();
  assert.equal(await answer.locator('img, script, iframe, [onerror], [onclick], [onmouseover], [style*=url]').count(), 0);
  const links = await answer.locator('a').evaluateAll((all) => all.map(({ href }) => href));
  assert.deepEqual(links, ['https://tracker.example/pixel.png']);
  for (const link of await answer.locator('math [href], math [src]').all()) assert.fail(await link.innerHTML());
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await end(); // which sees violations of the policy and requests to other hosts
});
