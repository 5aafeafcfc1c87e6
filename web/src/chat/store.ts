// Conversations, in memory and in the browser's IndexedDB. They never leave this device.
import { signal } from '@preact/signals';
import { type IDBPDatabase, openDB } from 'idb';
import { everyMessage } from './branches.ts';
import type { Conversation } from './types.ts';

export const conversations = signal<Conversation[]>([]); // most recently changed first
export const storageProblem = signal('');

let database: IDBPDatabase | null = null;

export async function openStore() {
  try {
    database = await openDB('slipstream', 1, {
      upgrade: (db) => void db.createObjectStore('conversations', { keyPath: 'id' }),
    });
    const kept = (await database.getAll('conversations')) as Conversation[];
    conversations.value = kept.sort((a, b) => b.changed_ms - a.changed_ms);
  } catch (error) {
    storageProblem.value = `Chats are lost when this page closes: the browser keeps no data ` +
      `(${(error as Error).message})`;
  }
}

export const find = (id: string) => conversations.value.find((one) => one.id === id);

async function write(conversation: Conversation) {
  try {
    await database?.put('conversations', conversation);
  } catch (error) {
    storageProblem.value = `This chat could not be kept: ${(error as Error).message}`;
  }
}

// In memory at once; on disk when `keeps` is set, which an answer that grows wants only at times. Whoever
// waits knows that it is there.
export async function update(id: string, change: Partial<Conversation>, keeps = true) {
  const old = find(id);
  if (!old) return;
  const changed = { ...old, ...change };
  conversations.value = conversations.value.map((one) => (one.id === id ? changed : one));
  if (keeps) await write(changed);
}

export function touch(id: string) {
  const kept = update(id, { changed_ms: Date.now() });
  conversations.value = conversations.value.toSorted((a, b) => b.changed_ms - a.changed_ms);
  return kept;
}

export function add(conversation: Conversation) {
  conversations.value = [conversation, ...conversations.value];
  void write(conversation);
}

// Beside those that are there.
export async function addAll(some: Conversation[]) {
  conversations.value = [...conversations.value, ...some].sort((a, b) => b.changed_ms - a.changed_ms);
  for (const conversation of some) await write(conversation);
}

export function remove(id: string) {
  conversations.value = conversations.value.filter((one) => one.id !== id);
  void database?.delete('conversations', id);
}

export async function removeAll() {
  conversations.value = [];
  await database?.clear('conversations');
}

// Those with every word of the query in their title or text.
export function search(query: string, among: Conversation[]): Conversation[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return among;
  return among.filter((conversation) => {
    const text = [conversation.title, ...everyMessage(conversation).map((message) => message.content)]
      .join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
