// A text in Markdown as elements of the page, also while it grows: what stands is left as it is, so that
// it can be read, selected and copied meanwhile. Colours and formulas follow when they are made.
import { type Change, GrowingMarkdown } from './growing_markdown.ts';
import { codeBlock, toHtml } from './markdown.ts';
import { nodesOf } from './painted.ts';
import { paint, painted } from './painter.ts';
import type { Job } from './paint_worker.ts';
import type { Tree } from './markup.ts';

const MIN_SHARE = 1.3; // open code is coloured again when it is so many times as long

function fragmentOf(html: string): DocumentFragment {
  const template = document.createElement('template');
  template.innerHTML = html; // made by markdown.ts, which lets no markup of the text through
  return template.content;
}

function jobOf(element: Element): Job {
  const text = element.textContent ?? '';
  const { math, language } = (element as HTMLElement).dataset;
  return math ? { kind: 'math', text, is_block: math === 'block' } : { kind: 'code', text, language: language! };
}

function dress(element: Element, job: Job, trees: Tree[] | null) {
  if (!trees) return;
  element.replaceChildren(...nodesOf(trees));
  if (job.kind === 'math') element.classList.add('set');
}

// Code and formulas within, at once where they are known. `of_tail`: they come again with the next call,
// and code only when it was the same at the last: what is being written is not worth a job each time.
function dressAll(within: DocumentFragment | Element, of_tail: Set<string> | null = null): Set<string> {
  const seen = new Set<string>();
  for (const element of within.querySelectorAll('code[data-language], .math:not(.set)')) {
    const job = jobOf(element);
    const known = painted(job);
    seen.add(job.text);
    if (known !== undefined) dress(element, job, known);
    else if (job.kind === 'math' || !of_tail || of_tail.has(job.text)) {
      void paint(job).then((trees) => dress(element, job, trees));
    }
  }
  return seen;
}

// Code that is being written: what is coloured, lines after it, and the last one.
class OpenCode {
  readonly element: HTMLElement;
  readonly #coloured = document.createElement('span');
  readonly #lines = document.createTextNode('');
  readonly #line = document.createTextNode('');
  readonly #language: string | undefined;
  #text = '';
  #n_coloured = 0;
  #is_busy = false;

  constructor(language: string) {
    this.element = fragmentOf(codeBlock('', language)).firstElementChild as HTMLElement;
    const code = this.element.querySelector('code')!;
    this.#language = code.dataset.language;
    code.append(this.#coloured, this.#lines, this.#line);
  }

  add(text: string) {
    this.#text += text;
    this.#lines.appendData(text);
    if (this.#text.length > 64 && this.#text.length > this.#n_coloured * MIN_SHARE) this.#colour();
  }

  show(line: string) {
    if (this.#line.data !== line) this.#line.data = line;
  }

  end() {
    this.#lines.appendData(this.#line.data);
    this.#text += this.#line.data;
    this.#line.data = '';
    this.#colour(true);
  }

  #colour(is_whole = false) {
    if (!this.#language || this.#is_busy && !is_whole) return;
    const text = this.#text;
    this.#is_busy = true;
    void paint({ kind: 'code', language: this.#language, text }).then((trees) => {
      this.#is_busy = false;
      if (!trees || text.length <= this.#n_coloured) return;
      this.#n_coloured = text.length;
      this.#coloured.replaceChildren(...nodesOf(trees));
      this.#lines.data = this.#text.slice(text.length);
    });
  }
}

export class RichView {
  readonly #root: HTMLElement;
  #text = '';
  #growing: GrowingMarkdown | null = null;
  #list: Element | null = null;
  #code: OpenCode | null = null;
  #tail: ChildNode[] = [];
  #tail_seen = new Set<string>(); // code and formulas in it

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  show(text: string, is_growing: boolean) {
    if (text === this.#text && is_growing === (this.#growing !== null)) return;
    if (!text.startsWith(this.#text)) this.#begin();
    this.#text = text;
    if (is_growing && !this.#growing) this.#begin();
    if (is_growing) {
      this.#growing ??= new GrowingMarkdown();
      this.#do(this.#growing.grow(text));
    } else if (this.#growing) {
      this.#do(this.#growing.finish(text));
      this.#code?.end();
      this.#code = this.#growing = null;
    } else {
      const content = fragmentOf(toHtml(text));
      this.#root.replaceChildren(content);
      dressAll(this.#root);
    }
  }

  #begin() {
    this.#do([{ kind: 'clear' }]);
    this.#growing = null;
  }

  #add(html: string, to: Element = this.#root): ChildNode[] {
    const content = fragmentOf(html);
    const nodes = [...content.childNodes];
    dressAll(content);
    to.append(content);
    return nodes;
  }

  #addTail(html: string, to: Element, seen: Set<string>) {
    const content = fragmentOf(html);
    this.#tail.push(...content.childNodes);
    for (const text of dressAll(content, this.#tail_seen)) seen.add(text);
    to.append(content);
  }

  #do(changes: Change[]) {
    if (changes.length === 0) return;
    for (const node of this.#tail) node.remove();
    this.#tail = [];
    for (const change of changes) {
      if (change.kind === 'clear') {
        this.#root.replaceChildren();
        this.#list = this.#code = null;
      } else if (change.kind === 'blocks') {
        this.#list = null;
        this.#add(change.html);
      } else if (change.kind === 'list') {
        this.#list = this.#add(change.html).find((node) => node instanceof Element) as Element;
      } else if (change.kind === 'items') {
        this.#add(change.html, this.#list!);
      } else if (change.kind === 'drop list') {
        this.#list!.remove();
        this.#list = null;
      } else if (change.kind === 'code') {
        this.#code = new OpenCode(change.language);
        this.#root.append(this.#code.element);
      } else if (change.kind === 'lines') {
        this.#code!.add(change.text);
      } else if (change.kind === 'end code') {
        this.#code!.show('');
        this.#code!.end();
        this.#code = null;
      } else {
        const seen = new Set<string>();
        if (change.items) this.#addTail(change.items, this.#list!, seen);
        if (change.blocks) this.#addTail(change.blocks, this.#root, seen);
        this.#tail_seen = seen;
        this.#code?.show(change.line);
      }
    }
  }
}
