// Colours and formulas: what the libraries make of whatever a model writes is a tree of a few kinds, of
// the same text, or nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Tree, parseMarkup, textOf } from '../src/text/markup.ts';
import { nameOf, paint } from '../src/text/paint_worker.ts';

const code = (language: string, text: string) => paint({ kind: 'code', language, text });
const math = (text: string, is_block = true) => paint({ kind: 'math', text, is_block });
const tags = (trees: Tree[]): string[] => trees.flatMap((tree) =>
  (typeof tree === 'string' ? [] : [tree.tag, ...tags(tree.children)]));

test('code has colours and keeps its text', async () => {
  for (const [language, text] of [['py', 'def f(a):\n    return "<b>" # & more\n'], ['C++', 'if (a < b && c) "x";\n'],
    ['html', '<script>alert("1")</script><img src=x onerror=alert(1)>'], ['json', '{"a": [1, null]}']] as const) {
    const trees = await code(language, text);
    assert.ok(trees, language);
    assert.equal(textOf(trees), text);
    assert.ok(tags(trees).length > 1 && tags(trees).every((tag) => tag === 'span'), language);
  }
});

test('every language that is offered can be had', async () => {
  for (const language of ['bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'dockerfile', 'go', 'ini', 'java', 'javascript',
    'json', 'kotlin', 'lua', 'makefile', 'markdown', 'php', 'python', 'r', 'ruby', 'rust', 'sql', 'swift', 'typescript',
    'xml', 'yaml']) assert.ok(await code(language, 'a = 1 # "b"\n'), language);
});

test('of other languages nothing is made', async () => {
  for (const language of ['', 'text', 'klingon', '__proto__', 'constructor', 'toString', '../core']) {
    assert.equal(nameOf(language), null);
    assert.equal(await code(language, 'a'), null);
  }
  assert.equal(nameOf('TypeScript'), 'typescript');
});

test('formulas are MathML', async () => {
  const trees = (await math('\\frac{a}{b} + \\sqrt{x_1}'))!;
  assert.deepEqual(tags(trees).slice(0, 3), ['math', 'mrow', 'mfrac']);
  assert.equal((trees[0] as Exclude<Tree, string>).attributes.display, 'block');
  for (const tex of ['\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}', '\\begin{aligned}a&=b\\\\c&=d\\end{aligned}',
    '\\sum_{i=0}^n i', '\\text{if } x \\in \\mathbb{R}', '\\int_0^\\infty e^{-x^2}\\,dx', '\\boxed{x}\\tag{1}']) {
    assert.ok(await math(tex), tex);
  }
});

test('what is no formula, or wants more than one may, stays as it is', async () => {
  for (const tex of ['\\frac{', '\\nosuchthing', '\\href{javascript:alert(1)}{x}', '\\class{a}{b}', '\\id{a}{b}',
    '\\style{color:red}{x}', '\\includegraphics{https://a.example/x.png}', '{'.repeat(2000) + 'x' + '}'.repeat(2000),
    '\\def\\a{\\a\\a}\\a']) {
    const trees = await math(tex);
    if (trees) assert.doesNotMatch(JSON.stringify(trees), /javascript|a\.example|"(?:href|src|id|onclick)"/, tex);
  }
  assert.equal(await math('\\frac{'), null);
});

test('markup is read strictly', () => {
  assert.deepEqual(parseMarkup('a &lt;b&gt; &amp;amp;<span class="x">c</span>'),
    ['a <b> &amp;', { tag: 'span', attributes: { class: 'x' }, children: ['c'] }]);
  for (const wrong of ['<span>', '</span>', '<span></b>', '<span class=x></span>', '<span onclick=\'a\'></span>', '<!-- -->',
    '<span class="a"b="c"></span>', 'a < b', '<SPAN></SPAN>', '<span class="<b>"></span>']) {
    assert.equal(parseMarkup(wrong), null, wrong);
  }
  assert.equal(parseMarkup('<b>'.repeat(300) + '</b>'.repeat(300)), null, 'deep');
  assert.ok(parseMarkup('<b></b>'.repeat(20_000)));
  assert.equal(parseMarkup('<b></b>'.repeat(30_000)), null, 'many');
});
