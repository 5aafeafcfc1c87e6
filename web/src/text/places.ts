// Places in files: what they are called, where a citation leads, and which words of a text were
// looked for.

export interface FilePlace {
  path: string; // whole; of an attached file its name
  address?: string; // of an attached file, on the server
  first_line: number;
  last_line: number;
}

export const lastPart = (path: string) => path.split('/').findLast(Boolean) ?? path;

export const linesOf = ({ first_line, last_line }: { first_line: number; last_line: number }) =>
  first_line === last_line ? `${first_line}` : `${first_line}-${last_line}`;

// Of "file:///home/ann/a%20b.c#L3-L9", or "/slipstream/attachments/CHAT/a%20b.c#L3-L9"; null: it is no
// place in a file that the server has.
export function placeOf(url: string): FilePlace | null {
  const found = /^(?:file:\/\/(\/[^#?]*)|(\/slipstream\/attachments\/[\w-]+\/([^/#?]+)))#L(\d+)(?:-L(\d+))?$/
    .exec(url);
  if (!found) return null;
  const [, path, address, name, first, last = first] = found;
  try {
    const lines = { first_line: Number(first), last_line: Number(last) };
    if (address) return { path: decodeURIComponent(name!), address, ...lines };
    return { path: decodeURIComponent(path!), ...lines };
  } catch {
    return null; // "%" that encodes nothing
  }
}

// The words that a place was found by, as the server names them: "defines it; has pick, next task".
export function wordsOf(why: string): string[] {
  const terms = /(?:^|; )has ([^;]*)/.exec(why)?.[1] ?? '';
  return [...new Set(terms.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])];
}

export interface Part {
  text: string;
  is_found: boolean;
}

// Words count in all their forms and as the beginnings of names: "sleeping" finds "sleeps", "pick"
// finds "pick_next_task". What the server compares are stems; these are near enough to show them.
export function marked(text: string, words: string[]): Part[] {
  const stems = words.filter((word) => word.length > 2)
    .map((word) => (word.length > 5 ? word.replace(/(?:ing|ed|es|s)$/, '') : word));
  if (stems.length === 0) return [{ text, is_found: false }];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${stems.join('|')})[\\p{L}\\p{N}]*`, 'giu');
  const parts: Part[] = [];
  let at = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    if (index > at) parts.push({ text: text.slice(at, index), is_found: false });
    parts.push({ text: found, is_found: true });
    at = index + found.length;
  }
  if (at < text.length) parts.push({ text: text.slice(at), is_found: false });
  return parts;
}
