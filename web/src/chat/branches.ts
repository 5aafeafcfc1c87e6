// Versions of a conversation: what came after a message before it was edited or answered anew. The
// messages of a conversation are those of the version that is shown; each other one is kept with the
// message that it follows.
import type { Branch, Conversation, Message } from './types.ts';

const START = ''; // what the first message follows

const indexAfter = (messages: Message[], after: string) =>
  after === START ? 0 : messages.findIndex(({ id }) => id === after) + 1;

// Numbers of versions are in the order in which they were made; that which is shown has the one that is
// missing.
function numberShown(others: Branch[]): number {
  const numbers = new Set(others.map(({ number }) => number));
  let number = 0;
  while (numbers.has(number)) ++number;
  return number;
}

// An answer that failed before it had a word is nothing to go back to.
const isWorthKeeping = (tail: Message[]) =>
  tail.some(({ role, error, content, reasoning, calls }) =>
    role === 'user' || (!error && (content || reasoning || calls)) || content);

// The conversation with `tail` behind the message `after`, as a new version.
export function branched(of: Conversation, after: string, tail: Message[]): Partial<Conversation> {
  const { messages, branches = [] } = of;
  const begin = indexAfter(messages, after);
  const old = messages.slice(begin);
  const others = branches.filter((one) => one.after === after);
  const kept = isWorthKeeping(old)
    ? [...branches, { after, number: numberShown(others), messages: old }] : branches;
  return { messages: [...messages.slice(0, begin), ...tail], branches: kept };
}

export interface Versions {
  after: string; // the message that all of them follow
  shown: number; // from 0
  n: number;
}

// By the message that a version begins with; only where there are several.
export function versionsOf({ messages, branches = [] }: Conversation): Map<string, Versions> {
  const found = new Map<string, Versions>();
  if (branches.length === 0) return found;
  let after = START;
  for (const { id } of messages) {
    const others = branches.filter((one) => one.after === after);
    if (others.length > 0) {
      const shown = numberShown(others);
      found.set(id, { after, shown: others.filter(({ number }) => number < shown).length, n: others.length + 1 });
    }
    after = id;
  }
  return found;
}

// The version that is `step` after the one that begins with the message `first`, or before it. null: there
// is none.
export function switched(of: Conversation, first: string, step: 1 | -1): Partial<Conversation> | null {
  const { messages, branches = [] } = of;
  const begin = messages.findIndex(({ id }) => id === first);
  if (begin < 0) return null;
  const after = messages[begin - 1]?.id ?? START;
  const others = branches.filter((one) => one.after === after).sort((a, b) => a.number - b.number);
  const shown = numberShown(others);
  const wanted = step > 0
    ? others.find(({ number }) => number > shown) : others.findLast(({ number }) => number < shown);
  if (!wanted) return null;
  const old: Branch = { after, number: shown, messages: messages.slice(begin) };
  return {
    messages: [...messages.slice(0, begin), ...wanted.messages],
    branches: branches.map((one) => (one === wanted ? old : one)),
  };
}

// All messages of all versions.
export const everyMessage = ({ messages, branches = [] }: Conversation): Message[] =>
  [...messages, ...branches.flatMap((branch) => branch.messages)];
