// An answer that grows is shown as the whole is, and no character costs more than those before it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Change, GrowingMarkdown } from '../src/text/growing_markdown.ts';
import { codeBlock, toHtml } from '../src/text/markdown.ts';

// What a page would have, as HTML.
class Page {
  #settled = '';
  #list: { open: string; close: string; items: string } | null = null;
  #code: { language: string; text: string } | null = null;
  #tail = { items: '', blocks: '', line: '' };
  n_cleared = 0;

  do(changes: Change[]) {
    for (const change of changes) {
      if (change.kind === 'clear') {
        this.#settled = '';
        this.#list = this.#code = null;
        this.n_cleared += 1;
      } else if (change.kind === 'blocks') {
        this.#settled += (this.#list ? this.#list.open + this.#list.items + this.#list.close : '') + change.html;
        this.#list = null;
      } else if (change.kind === 'list') {
        const [open, close] = change.html.split('\n') as [string, string];
        this.#list = { open: `${open}\n`, close: `${close}\n`, items: '' };
      } else if (change.kind === 'items') {
        this.#list!.items += change.html;
      } else if (change.kind === 'drop list') {
        this.#list = null;
      } else if (change.kind === 'code') {
        this.#code = { language: change.language, text: '' };
      } else if (change.kind === 'lines') {
        this.#code!.text += change.text;
      } else if (change.kind === 'end code') {
        this.#settled += codeBlock(this.#code!.text, this.#code!.language);
        this.#code = null;
      } else {
        this.#tail = change;
      }
    }
  }

  get html() {
    const { items, blocks, line } = this.#tail;
    return this.#settled + (this.#list ? this.#list.open + this.#list.items + items + this.#list.close : '') +
      (this.#code ? codeBlock(this.#code.text + line, this.#code.language) : '') + blocks;
  }
}

// Between a line of code and the end of its block HTML has a line break more or less.
const even = (html: string) => html.replace(/\s+<\/code>/g, '</code>').replaceAll('</div>\n', '</div>');

function grown(text: string, n_at_once: number) {
  const markdown = new GrowingMarkdown();
  const page = new Page();
  for (let end = n_at_once; end < text.length; end += n_at_once) page.do(markdown.grow(text.slice(0, end)));
  page.do(markdown.finish(text));
  return { html: page.html, n_cleared: page.n_cleared, n_parsed: markdown.n_chars_parsed };
}

const TEXTS = {
  paragraphs: 'One\ntwo\n\nThree\n\n\nFour **b**\n',
  headings: '# A\ntext\n## B\nmore\nC\n===\nD\n---\n\n---\n\nE #no\n#no\n',
  'tight list': 'Look:\n- a\n- b **c**\n  - d\n  - e\n- f\n\nEnd\n',
  'loose list': '1. a\n\n   more\n2. b\n\n3. c\n\nEnd',
  'late loose list': '- a\n- b\n- c\n\n- d\n- e\n',
  'list from seven': '7. a\n8. b\n9. c\n\ntext\n\n1. d\n',
  'lists side by side': '- a\n- b\n* c\n* d\n1. e\n2. f\n',
  'list with code': '1. One:\n   ```js\n   let a;\n\n   - b\n   ```\n2. Two\n\n   text\n3. Three\n',
  code: 'Text\n```py\nprint(1)\n\n- no list\n# no heading\n```\nafter\n\n~~~\n```\nx\n~~~~\n\nend',
  'open code': 'Text\n\n```\nfirst\nsecond',
  'code that is empty': '```\n```\n\n```js\n```',
  'code in a line': '```a``` b\nc\n',
  'code that moved in': '  ```\n  a\n  ```\nb\n\n    c\n    d\n\ne\n',
  table: 'a\n\n| a | b |\n|--:|---|\n| 1 | $2$ |\n| 3 | 4 |\n\nend\n',
  quote: '> a\n> - b\n> - c\nlazy\n\nd\n',
  formulas: 'Let $a_1$ be\n$$\na = b\n- c\n# d\n$$\nand \\(b\\), \\[c\\] and\n\\[\nd\n\\]\nend $5 and $6.\n',
  'a formula that is open': 'a\n\n$$\nx\n- y\n',
  'math in a list': '- a $b$\n- c\n  $$\n  d\n  $$\n- e\n',
  'links before their use': '[a]: https://a.example/long "T"\n\nsee [a] and [a][].\n\nmore [a]\n',
  hostile: '<b>x</b>\n\n- <i>y\n- [z](javascript:1)\n\n```"><script>\n<b>\n```\n',
  nothing: '\n\n  \n',
};

for (const [name, text] of Object.entries(TEXTS)) {
  test(`as the whole, without being made anew: ${name}`, () => {
    for (const n_at_once of [1, 2, 3, 7, 1000]) {
      const { html, n_cleared } = grown(text, n_at_once);
      assert.equal(even(html), even(toHtml(text)), `${n_at_once} at once`);
      assert.equal(n_cleared, 0, `${n_at_once} at once`);
    }
  });
}

test('a definition at the end changes the beginning', () => {
  const text = 'see [a]\n\nmore\n\n[a]: https://a.example\n';
  const { html, n_cleared } = grown(text, 1);
  assert.equal(html, toHtml(text));
  assert.match(html, /href="https:\/\/a.example"/);
  assert.equal(n_cleared, 1);
});

test('whatever is put together, the end is right', () => {
  let seed = 1;
  const random = (n: number) => {
    seed = (seed * 48271) % 0x7fffffff;
    return seed % n;
  };
  const pieces = ['- ', '* ', '1. ', '2) ', '  ', '    ', '\n', '\n\n', '# ', '> ', '```', '```js\n', '~~~\n', '$', '$$\n',
    '\\[', '\\]\n', '| a | b |\n|---|---|\n', '| c |', '---\n', '===\n', 'word ', '**', '`', '[a]', '[a]: /b\n', '\t', '<b>'];
  let n_cleared = 0;
  for (let i = 0; i < 3000; ++i) {
    const text = Array.from({ length: 1 + random(24) }, () => pieces[random(pieces.length)]).join('');
    const result = grown(text, 1 + random(5));
    assert.equal(even(result.html), even(toHtml(text)), JSON.stringify(text));
    n_cleared += result.n_cleared;
  }
  assert.ok(n_cleared < 300, `${n_cleared} of 3000 were made anew`);
});

// As answers of models are: sections with text, lists, code and formulas.
const SECTION = `## A section\n\nSome words that explain what follows, with \`code\`, **weight** and $a_1 + b$.\n\n` +
  '1. **First**: a few words more about it\n2. Second\n   - inner\n   - inner\n3. Third\n\n' +
  '```python\ndef f(a):\n    return a + 1\n\nprint(f(2))\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n';
const CHARS_PER_TOKEN = 4;
const ANSWERS = {
  'an answer with all kinds of things': SECTION,
  'a program': '', // see below
  'one list': '- An item with some words in it, and **more** of them\n',
  'one paragraph': 'words that go on without an end, ',
};

for (const [name, piece] of Object.entries(ANSWERS)) {
  test(`8,000 tokens cost the last as much as the first: ${name}`, () => {
    const n_chars = 8000 * CHARS_PER_TOKEN;
    const text = (name === 'a program' ? '```js\n' + 'let a = 1; // what it is\n'.repeat(2000) : piece.repeat(2000))
      .slice(0, n_chars);
    const markdown = new GrowingMarkdown();
    const costs: number[] = []; // by thousand tokens: characters parsed for a token
    for (let n = 1; n <= 8000; ++n) {
      markdown.grow(text.slice(0, n * CHARS_PER_TOKEN));
      if (n % 1000 === 0) costs.push(markdown.n_chars_parsed / 1000 - costs.reduce((a, b) => a + b, 0));
    }
    markdown.finish(text);
    const whole = 8000 * n_chars / 2 / 8000; // what rendering all of it each time parses for a token
    console.log(`${name}: characters parsed for a token, by thousands: ${costs.map(Math.round)}; ` +
      `everything each time: ${whole}`);
    const is_flat = name !== 'one paragraph';
    assert.ok(Math.max(...costs) < (is_flat ? 1000 : 4500), String(costs));
    if (is_flat) assert.ok(costs.at(-1)! < 1.5 * costs[0]! + 10, String(costs));
  });
}
