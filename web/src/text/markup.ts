// What libraries make of code and formulas, as a tree of plain values. Only the worker that runs them
// sees their markup; the page builds elements of the tree, and only of kinds that it knows
// (painted.ts). So a mistake of theirs cannot put anything else into the page.
//
// Strict: what is not exactly elements, attributes in double quotes and text is null.

export type Tree = string | { tag: string; attributes: Record<string, string>; children: Tree[] };

const NODES_MAX = 50_000;
const DEPTH_MAX = 200;
const ENTITIES: Record<string, string> = {
  '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'", '&#39;': "'", '&nbsp;': '\u00a0' };
const PIECE = /<([a-z]+)((?: [a-z-]+="[^"<>]*")*)\s*(\/?)>|<\/([a-z]+)>|([^<]+)/gy;

const unescape = (text: string) => text.replace(/&(?:#?\w+);/g, (entity) => ENTITIES[entity] ?? entity);

export function parseMarkup(markup: string): Tree[] | null {
  const root: Tree[] = [];
  const open: { tag: string; children: Tree[] }[] = [{ tag: '', children: root }];
  let n_nodes = 0;
  let at = 0;
  for (const [piece, tag, attributes, closes, end, text] of markup.matchAll(PIECE)) {
    at += piece.length;
    if (++n_nodes > NODES_MAX || open.length > DEPTH_MAX) return null;
    const parent = open.at(-1)!;
    if (text !== undefined) {
      parent.children.push(unescape(text));
    } else if (end !== undefined) {
      if (open.length === 1 || open.pop()!.tag !== end) return null;
    } else {
      const node = { tag: tag!, attributes: {} as Record<string, string>, children: [] as Tree[] };
      for (const [, name, value] of attributes!.matchAll(/ ([a-z-]+)="([^"]*)"/g)) {
        node.attributes[name!] = unescape(value!);
      }
      parent.children.push(node);
      if (!closes) open.push(node);
    }
  }
  return at === markup.length && open.length === 1 ? root : null;
}

export const textOf = (trees: Tree[]): string =>
  trees.map((tree) => (typeof tree === 'string' ? tree : textOf(tree.children))).join('');
