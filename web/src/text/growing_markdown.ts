// Markdown that grows at its end, as an answer does: what can no longer change is rendered once.
//
// A block at the top of the text is settled when the first line of the next one is complete, for from
// then on that line belongs to no other. Items of a list are settled in the same way, and lines of code
// at once. What is left, the tail, is rendered again with each call; if one block is so long that this
// would cost much, only after it has grown by a share of its length. So the work for a character does
// not depend on how many stand before it.
//
// finish() compares with the whole text rendered at once: a definition of a link at the end changes
// what was settled at the beginning.
import type { Env, Token } from 'markdown-it';
import { languageOf, markdown, toHtml } from './markdown.ts';

// In the order in which they are to be done. `html` was made by markdown.ts.
export type Change =
  | { kind: 'clear' } // all that was shown
  | { kind: 'blocks'; html: string } // behind what is settled
  | { kind: 'list'; html: string } // the same, an empty list, which then is open until more blocks come
  | { kind: 'items'; html: string } // into the open list
  | { kind: 'drop list' } // the open list with its items, which come again
  | { kind: 'code'; language: string } // an empty block of code, open as well
  | { kind: 'lines'; text: string } // into the open code
  | { kind: 'end code' } // which thereby is complete
  // What follows all this, in place of what followed it before: items of the open list and blocks, or a
  // line of the open code.
  | { kind: 'tail'; items: string; blocks: string; line: string };

const TAIL_CHARS_FREE = 4096; // a tail of this length is rendered each time
const TAIL_SHARE = 1 / 32; // a longer one when it has grown by this share of its length

interface Block { tokens: Token[]; first_line: number }

const FENCE = /^(`{3,}|~{3,})([^\n]*)\n/;

function blocksOf(tokens: Token[], level = 0): Block[] {
  const blocks: Block[] = [];
  let begin = -1;
  tokens.forEach((token, idx) => {
    if (token.level !== level || token.nesting === -1) {
      if (token.level === level && token.nesting === -1) {
        blocks.at(-1)!.tokens = tokens.slice(begin, idx + 1);
      }
      return;
    }
    begin = idx;
    blocks.push({ tokens: [token], first_line: token.map?.[0] ?? 0 });
  });
  return blocks;
}

const isList = ({ tokens }: Block) => /^(?:bullet|ordered)_list_open$/.test(tokens[0]!.type);
const itemsOf = ({ tokens }: Block) => blocksOf(tokens.slice(1, -1), 1);
// Paragraphs of a list without empty lines between its items are shown without being paragraphs.
const paragraphsOf = ({ tokens }: Block) => tokens.filter(({ type, level }) =>
  level === 2 && /^paragraph_(?:open|close)$/.test(type));
const isLoose = (list: Block) => paragraphsOf(list).some(({ hidden }) => !hidden);

function startsOfLines(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

// The last whose first line is complete, which it is when another line has begun. Those before it are over.
const lastBegun = (blocks: Block[], starts: number[]) =>
  Math.max(0, blocks.findLastIndex(({ first_line }) => first_line + 1 < starts.length));

export class GrowingMarkdown {
  #text = '';
  #at = 0; // where the tail begins
  #links: NonNullable<Env['references']> = {}; // definitions in what is settled
  #html = ''; // of all that is settled and closed
  #list: { begin: number; open: string; close: string; items: string; is_loose: boolean } | null = null;
  #code: { begin: number; closing: RegExp; language: string } | null = null;
  #n_rendered = 0; // characters of the text when the tail was rendered
  #is_over = false;
  n_chars_parsed = 0; // so far, for tests

  // `text` begins with that of the call before.
  grow(text: string): Change[] {
    this.#text = text;
    const n_tail = text.length - this.#at;
    const is_costly = n_tail > TAIL_CHARS_FREE;
    if (is_costly && text.length - this.#n_rendered < n_tail * TAIL_SHARE) return [];
    this.#n_rendered = text.length;
    const changes: Change[] = [];
    // Each round settles something, or is the last.
    for (let is_over = false; !is_over;) {
      is_over = this.#code ? this.#growCode(changes) : this.#growBlocks(changes);
    }
    return changes;
  }

  // `text` is complete. What grow() did, corrected where it was not quite the same.
  finish(text: string): Change[] {
    this.#n_rendered = 0;
    this.#is_over = true;
    const changes = this.grow(text);
    const tail = changes.at(-1);
    if (tail?.kind !== 'tail') return changes;
    const list = this.#list && this.#list.open + this.#list.items + tail.items + this.#list.close;
    const code = this.#code && markdown.render(text.slice(this.#code.begin), {});
    const whole = toHtml(text);
    if (this.#html + (list ?? '') + (code ?? '') + tail.blocks === whole) return changes;
    return [{ kind: 'clear' }, { kind: 'blocks', html: whole },
      { kind: 'tail', items: '', blocks: '', line: '' }];
  }

  #render(tokens: Token[]): string {
    return markdown.renderer.render(tokens, markdown.options, {});
  }

  // Definitions of the tail are not kept: the last may be half an address yet.
  #parse(text: string) {
    this.n_chars_parsed += text.length;
    const env = { references: { ...this.#links } };
    return { blocks: blocksOf(markdown.parse(text, env)), links: env.references };
  }

  #growBlocks(changes: Change[]): boolean {
    if (!this.#list) this.#at += /^(?:[ \t]*\n)*/.exec(this.#text.slice(this.#at))![0].length;
    const tail = this.#text.slice(this.#at);
    if (!this.#list && this.#openCode(tail, changes)) return false;
    const { blocks, links } = this.#parse(tail);
    const settle = (end: number) => {
      if (Object.keys(links).length > Object.keys(this.#links).length) {
        this.#links = this.#parse(tail.slice(0, end)).links;
      }
      this.#at += end;
    };
    const starts = startsOfLines(tail);
    const first = blocks[0];
    if (this.#list && first && isList(first)) {
      if (!this.#list.is_loose && isLoose(first)) return this.#takeListBack(changes);
      if (this.#list.is_loose) for (const token of paragraphsOf(first)) token.hidden = false;
    }
    const n_settled = lastBegun(blocks, starts);
    if (n_settled > 0) {
      this.#settle(blocks.slice(0, n_settled), changes);
      settle(starts[blocks[n_settled]!.first_line]!);
      return false;
    }
    if (first && blocks.length === 1 && isList(first)) {
      const end = this.#settleItems(first, starts, changes);
      if (end > 0) {
        settle(end);
        return false;
      }
    }
    const goes_on = this.#list !== null && first !== undefined && isList(first);
    changes.push({
      kind: 'tail',
      items: goes_on ? this.#render(first.tokens.slice(1, -1)) : '',
      blocks: blocks.slice(goes_on ? 1 : 0).map(({ tokens }) => this.#render(tokens)).join(''),
      line: '',
    });
    return true;
  }

  #settle(blocks: Block[], changes: Change[]) {
    let html = '';
    for (const [idx, block] of blocks.entries()) {
      if (idx === 0 && this.#list && isList(block)) {
        const items = this.#render(block.tokens.slice(1, -1));
        changes.push({ kind: 'items', html: items });
        this.#list.items += items;
      } else {
        html += this.#render(block.tokens);
      }
    }
    this.#closeList();
    this.#html += html;
    changes.push({ kind: 'blocks', html });
  }

  #closeList() {
    if (this.#list) this.#html += this.#list.open + this.#list.items + this.#list.close;
    this.#list = null;
  }

  // Where the last item begins, of which those before it are settled; 0: they are not yet.
  #settleItems(list: Block, starts: number[], changes: Change[]): number {
    const items = itemsOf(list);
    const n_settled = lastBegun(items, starts);
    if (n_settled === 0) return 0;
    const html = items.slice(0, n_settled).map(({ tokens }) => this.#render(tokens)).join('');
    if (!this.#list) {
      const [open, close] = [this.#render([list.tokens[0]!]), this.#render([list.tokens.at(-1)!])];
      this.#list = { begin: this.#at, open, close, items: '', is_loose: isLoose(list) };
      changes.push({ kind: 'list', html: open + close });
    }
    this.#list.items += html;
    changes.push({ kind: 'items', html });
    return starts[items[n_settled]!.first_line]!;
  }

  // An empty line came between items, which changes those before it as well. Once for a list.
  #takeListBack(changes: Change[]): boolean {
    this.#at = this.#list!.begin;
    this.#list = null;
    changes.push({ kind: 'drop list' });
    return false;
  }

  // Code at the beginning of the tail whose first line is complete.
  #openCode(tail: string, changes: Change[]): boolean {
    const found = FENCE.exec(tail);
    if (!found) return false;
    const [opening, fence, info] = found as unknown as [string, string, string];
    if (fence[0] === '`' && info.includes('`')) return false; // code within a line
    const language = languageOf(markdown.utils.unescapeAll(info));
    // Behind the last line of the code, so that the text of a line is never read twice.
    const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
    this.#code = { begin: this.#at, closing, language };
    changes.push({ kind: 'code', language });
    this.#at += opening.length;
    return true;
  }

  #growCode(changes: Change[]): boolean {
    const { begin, closing } = this.#code!;
    let lines = '';
    for (;;) {
      const end = this.#text.indexOf('\n', this.#at);
      const line = this.#text.slice(this.#at, end < 0 ? undefined : end);
      this.n_chars_parsed += line.length;
      const is_closed = end >= 0 && closing.test(line);
      if (end < 0 || is_closed) {
        if (lines) changes.push({ kind: 'lines', text: lines });
        if (!is_closed) {
          // What may become the end of the code is not shown as code.
          const is_end = this.#is_over ? closing.test(line) : /^ {0,3}[`~]+[ \t]*$/.test(line);
          changes.push({ kind: 'tail', items: '', blocks: '', line: is_end ? '' : line });
          return true;
        }
        this.#at = end + 1;
        this.#code = null;
        this.n_chars_parsed += this.#at - begin;
        this.#html += markdown.render(this.#text.slice(begin, this.#at), {});
        changes.push({ kind: 'end code' });
        return false;
      }
      lines += `${line}\n`;
      this.#at = end + 1;
    }
  }
}
