// Formulas in Markdown: $a$, $$a$$, \(a\) and \[a\], as models write them. What comes out is their TeX,
// in a <span class="math"> that rich_view.ts fills with the formula.
//
// A price is no formula: "$" opens before a character that is no space, and closes behind one, where
// no letter or digit follows.
import type { MarkdownIt } from 'markdown-it';

export const MATH_CHARS_MAX = 4000; // of one formula; a longer one stays as it was written
const LINES_MAX = 200;

function mathHtml(escape: (text: string) => string, tex: string, is_block: boolean): string {
  return `<span class="math" data-math="${is_block ? 'block' : 'inline'}">${escape(tex)}</span>`;
}

interface Kind { open: string; close: string; is_block: boolean }
const KINDS: Kind[] = [
  { open: '$$', close: '$$', is_block: true },
  { open: '\\[', close: '\\]', is_block: true },
  { open: '\\(', close: '\\)', is_block: false },
  { open: '$', close: '$', is_block: false },
];

const isWord = (char: string) => /[\p{L}\p{N}]/u.test(char);
const isSpace = (char: string) => char === '' || /\s/.test(char);

const NOT_HERE = -1;
const NEVER = -2; // there is code, or another formula begins, so that this was none

// Where `close` begins. A backslash keeps what follows it from closing. The first "$" decides, so that no
// text is read again and again.
function closesAt(text: string, from: number, kind: Kind): number {
  const end = Math.min(text.length, from + MATH_CHARS_MAX);
  for (let at = from; at < end; ++at) {
    const char = text[at];
    if (char === '`') return NEVER;
    if (char !== '$' && char !== '\\') continue;
    if (text.startsWith(kind.close, at)) {
      const closes = kind.open !== '$' ||
        (!isSpace(text.charAt(at - 1)) && !isWord(text.charAt(at + 1)));
      return closes ? at : NEVER;
    }
    if (text.startsWith(kind.open, at)) return NEVER;
    if (char === '\\') ++at;
  }
  return NOT_HERE;
}

function addInline(markdown: MarkdownIt) {
  markdown.inline.ruler.before('escape', 'math', (state, is_silent) => {
    const { src, pos } = state;
    if (src[pos] !== '$' && src[pos] !== '\\') return false;
    const kind = KINDS.find(({ open }) => src.startsWith(open, pos));
    if (!kind) return false;
    const from = pos + kind.open.length;
    if (kind.open === '$' && (isSpace(src.charAt(from)) || isWord(src.charAt(pos - 1)))) return false;
    const to = closesAt(src, from, kind);
    if (to < 0 || to >= state.posMax || src.slice(from, to).trim() === '') return false;
    if (!is_silent) {
      const token = state.push('math', '', 0);
      token.content = src.slice(from, to).trim();
      token.meta = { is_block: kind.is_block };
    }
    state.pos = to + kind.close.length;
    return true;
  });
}

// Lines from one that opens to one that closes. Until that one has come they are a block as well, so
// that nothing in them is taken for a list or a heading while the answer is written.
function addBlock(markdown: MarkdownIt) {
  markdown.block.ruler.before('fence', 'math_block', (state, first, last, is_silent) => {
    const lineOf = (n: number) => state.src.slice(state.bMarks[n]! + state.tShift[n]!, state.eMarks[n]!);
    if (state.sCount[first]! - state.blkIndent >= 4) return false;
    const opening = lineOf(first);
    const kind = KINDS.find(({ open, is_block }) => is_block && opening.startsWith(open));
    if (!kind) return false;
    let tex = '';
    let line = opening.slice(kind.open.length);
    let n = first;
    let at;
    while ((at = closesAt(line, 0, kind)) === NOT_HERE) {
      tex += `${line}\n`;
      n += 1;
      if (n - first > LINES_MAX || tex.length > MATH_CHARS_MAX) return false;
      if (n >= last) break;
      if (state.isEmpty(n) || state.sCount[n]! < state.blkIndent) return false;
      line = lineOf(n);
    }
    const is_closed = n < last;
    if (!is_closed && last !== state.lineMax) return false; // the end of an item, not of the text
    if (is_closed) {
      if (at === NEVER || line.slice(at + kind.close.length).trim() !== '') return false; // a sentence
      tex += line.slice(0, at);
    }
    tex = tex.trim();
    if (tex === '') return false;
    if (is_silent) return true;
    const token = state.push('math_block', '', 0);
    token.content = is_closed ? tex : `${kind.open}${tex}`;
    token.meta = { is_closed };
    token.map = [first, Math.min(n + 1, last)];
    token.block = true;
    state.line = token.map[1];
    return true;
  }, { alt: ['paragraph', 'reference', 'blockquote', 'list'] });
}

export function addMath(markdown: MarkdownIt) {
  const { escapeHtml } = markdown.utils;
  addInline(markdown);
  addBlock(markdown);
  const { rules } = markdown.renderer;
  rules.math = (tokens, index) => {
    const { content, meta } = tokens[index]!;
    return mathHtml(escapeHtml, content, (meta as { is_block: boolean }).is_block);
  };
  rules.math_block = (tokens, index) => {
    const { content, meta } = tokens[index]!;
    const { is_closed } = meta as { is_closed: boolean };
    return `<p>${is_closed ? mathHtml(escapeHtml, content, true) : escapeHtml(content)}</p>\n`;
  };
}
