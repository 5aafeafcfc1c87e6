// Whatever a model writes, the HTML of it does nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toHtml } from '../src/text/markdown.ts';

// Tags and attributes that may come out, and no others.
const TAGS = new Set(['p', 'br', 'a', 'em', 'strong', 's', 'code', 'pre', 'div', 'span', 'button',
  'ul', 'ol', 'li', 'blockquote', 'hr', 'table', 'thead', 'tbody', 'tr', 'th', 'td',
  'h1', 'h2', 'h3', 'h4', 'h5', 'h6']);
const ATTRIBUTES = new Set(['href', 'title', 'target', 'rel', 'class', 'type', 'data-copy', 'tabindex',
  'role', 'aria-label', 'start', 'data-language', 'data-math']);

function check(html: string) {
  for (const [, tag, rest] of html.matchAll(/<\/?([a-z][a-z0-9]*)((?:[^>"]|"[^"]*")*)>/gi)) {
    assert.ok(TAGS.has(tag!.toLowerCase()), `<${tag}> in ${html}`);
    for (const [, name] of rest!.matchAll(/([a-z-]+)(?:="[^"]*")?/gi)) {
      assert.ok(ATTRIBUTES.has(name!), `${name} in ${html}`);
    }
  }
  for (const [, url] of html.matchAll(/href="([^"]*)"/g)) {
    assert.match(url!, /^(https?:|mailto:|#)/i, html);
  }
}

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '<svg/onload=alert(1)>',
  '[x](javascript:alert(1))',
  '[x](JaVaScRiPt:alert(1))',
  '[x](&#106;avascript:alert(1))',
  '[x](java\tscript:alert(1))',
  '[x](data:text/html;base64,PHNjcmlwdD4=)',
  '[x](vbscript:x)',
  '<javascript:alert(1)>',
  '![x](https://tracker.example/pixel.png)',
  '![x" onerror="alert(1)](https://a.example/"onerror="x)',
  '[x](https://a.example "t\\" onmouseover=\\"alert(1)")',
  '```"><script>alert(1)</script>\ncode\n```',
  '```js" onclick="x\n</code></pre><script>alert(1)</script>\n```',
  '| a |\n|:-:|\n| <b onclick=x>y</b> |',
  '[ref]: javascript:alert(1)\n\n[ref]',
  '<https://a.example/"onclick="x>',
  '$<img src=x onerror=alert(1)>$ and $$"><script>alert(1)</script>$$',
  '\\(</span><img src=x onerror=alert(1)>\\)\n\n\\[\n<svg/onload=alert(1)>\n\\]',
  '$$\n<script>alert(1)</script>\n',
  '<style>*{display:none}</style><iframe src=//a.example></iframe>',
];

for (const text of HOSTILE) {
  test(`harmless: ${JSON.stringify(text)}`, () => {
    const html = toHtml(text);
    check(html);
    assert.doesNotMatch(html, /<(script|img|svg|style|iframe|b)\b/i);
  });
}

test('the checker itself sees what it is to see', () => {
  assert.throws(() => check('<p onclick="x">'));
  assert.throws(() => check('<img>'));
  assert.throws(() => check('<a href="javascript:x">'));
});

test('images are links: nothing is fetched by reading', () => {
  assert.equal(toHtml('![A cat](https://a.example/cat.png)'),
    '<p><a href="https://a.example/cat.png" target="_blank" rel="noopener noreferrer">' +
    'Image: A cat</a></p>\n');
});

test('alignment is a class, for the policy forbids styles', () => {
  const html = toHtml('| a | b |\n|--:|---|\n| 1 | 2 |');
  assert.match(html, /<th class="align-right">a<\/th>/);
  assert.match(html, /<td>2<\/td>/);
  assert.doesNotMatch(html, /style/);
});

test('code keeps its text and language and can be copied', () => {
  const html = toHtml('```cpp\nif (a < b && c) "x";\n```');
  assert.match(html, /<span>cpp<\/span><button type="button" class="quiet small" data-copy>/);
  assert.match(html, /<code data-language="cpp">if \(a &lt; b &amp;&amp; c\) &quot;x&quot;;\n<\/code>/);
});

test('a fence that is not closed yet is code already', () => {
  assert.match(toHtml('Look:\n```py\nprint('), /<pre tabindex="0"><code data-language="py">print\(/);
});

test('plain Markdown', () => {
  assert.equal(toHtml('**bold** and `code`\nnext'),
    '<p><strong>bold</strong> and <code>code</code><br>\nnext</p>\n');
  assert.match(toHtml('see https://a.example now'), /href="https:\/\/a.example"/);
});

test('formulas are their TeX with a mark, and prices are none', () => {
  const inline = (tex: string) => `<span class="math" data-math="inline">${tex}</span>`;
  const block = (tex: string) => `<span class="math" data-math="block">${tex}</span>`;
  const of = (text: string) => toHtml(text).replace(/^<p>|<\/p>\n$/g, '');
  assert.equal(of('Let $a_1<b$ be \\(c*d*e\\).'), `Let ${inline('a_1&lt;b')} be ${inline('c*d*e')}.`);
  assert.equal(of('$$\na = b\n- c\n$$'), block('a = b\n- c'));
  assert.equal(of('\\[ a_1 \\]'), block('a_1'));
  assert.equal(of('so $$a$$ is'), `so ${block('a')} is`);
  for (const none of ['$5 and $6', 'from $5-$10', '$HOME/$PATH', 'a $ b $ c', '\\$a\\$', '$a `b$`', '$$', '$ $',
    `$${'a'.repeat(5000)}$`]) {
    assert.doesNotMatch(toHtml(none), /class="math"/, none);
  }
  assert.match(toHtml('- $a$\n  $$\n  b\n  $$\n'), /inline">a<.*block">b</s);
  assert.match(toHtml('| a |\n|---|\n| $x$ |'), /<td><span class="math"/);
});

test('many that open and none that closes are read in time', () => {
  const begin = process.cpuUsage();
  for (const one of ['$a ', '\\(a ', '$$\n', '\\[\n', '$a\n\n', '\\[\n- ']) toHtml(one.repeat(10_000));
  const { user, system } = process.cpuUsage(begin);
  assert.ok(user + system < 5e6, `${user + system} µs`);
});
