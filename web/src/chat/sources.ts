// The places that an answer was given, as its reader wants them: those that it names as "[2]" or
// "[1, 3]" under these numbers, then the others.
import type { Citation } from '../api/chat_stream.ts';

export interface Source {
  url: string;
  title: string;
  number: number | null; // null: the answer does not name it
}

// Citations say where the answer has a bracket, not which number in it is theirs: they come in the
// brackets' order. A bracket with numbers that are no places tells nothing.
export function sourcesOf(content: string, citations: Citation[]): Source[] {
  const chars = [...content]; // the server counts characters, and this language halves of some
  const brackets = new Map<string, Citation[]>();
  for (const citation of citations) {
    const key = `${citation.start} ${citation.end}`;
    brackets.set(key, [...(brackets.get(key) ?? []), citation]);
  }
  const sources = new Map<string, Source>();
  for (const named of brackets.values()) {
    const { start, end } = named[0]!;
    const numbers = chars.slice(start, end).join('').match(/\d+/g) ?? [];
    named.forEach(({ url, title }, idx) => {
      if (sources.get(url)?.number) return;
      const number = numbers.length === named.length ? Number(numbers[idx]) : null;
      sources.set(url, { url, title, number });
    });
  }
  return [...sources.values()].sort((a, b) => (a.number ?? Infinity) - (b.number ?? Infinity) || 0);
}
