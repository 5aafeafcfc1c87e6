// Files that belong to a chat: sent, read by the server, removed. What the server has of a chat is kept
// with it; what is under way or was refused is known to this page only.
import { signal } from '@preact/signals';
import {
  type AttachmentLimits, attach, detach, detachAll, listAttachments } from '../api/attachments.ts';
import { formatBytes } from '../text/numbers.ts';
import { find, remove, update } from './store.ts';

export interface Pending {
  name: string;
  state: 'sending' | 'reading' | 'refused';
  why: string; // of one that was refused
  abort: AbortController;
}

export const pending = signal<ReadonlyMap<string, Pending[]>>(new Map()); // by conversation

const of = (chat: string) => pending.value.get(chat) ?? [];

function setPending(chat: string, files: Pending[]) {
  const next = new Map(pending.value);
  if (files.length > 0) next.set(chat, files);
  else next.delete(chat);
  pending.value = next;
}
const change = (chat: string, changed: Pending) =>
  setPending(chat, of(chat).map((one) => (one.abort === changed.abort ? changed : one)));
const drop = (chat: string, abort: AbortController) =>
  setPending(chat, of(chat).filter((one) => one.abort !== abort));

// The server finishes what it has begun to read: send() removes that afterwards.
function stop({ state, abort }: Pending) {
  if (state === 'sending') abort.abort();
}

export const isAttaching = (chat: string) => of(chat).some(({ state }) => state !== 'refused');

async function send(chat: string, file: File, entry: Pending) {
  const { signal } = entry.abort;
  if (signal.aborted) return;
  try {
    const { name, chunks } = await attach(
      chat, file, () => change(chat, { ...entry, state: 'reading' }), signal);
    if (!of(chat).some(({ abort }) => abort === entry.abort)) return removeFile(chat, name);
    drop(chat, entry.abort);
    const others = (find(chat)?.attached ?? []).filter((one) => one.name !== name);
    await update(chat, { attached: [...others, { name, chunks }] });
  } catch (error) {
    if (!signal.aborted) change(chat, { ...entry, state: 'refused', why: (error as Error).message });
  }
}

let last = Promise.resolve(); // one after the other: the server reads few at a time

export function attachFiles(chat: string, files: File[], limits: AttachmentLimits) {
  for (const file of files) {
    const is_too_large = file.size > limits.file_bytes_max;
    const entry: Pending = {
      name: file.name,
      state: is_too_large ? 'refused' : 'sending',
      why: is_too_large ? `larger than ${formatBytes(limits.file_bytes_max)}` : '',
      abort: new AbortController(),
    };
    setPending(chat, [...of(chat).filter(({ name }) => name !== file.name), entry]);
    if (!is_too_large) last = last.then(() => send(chat, file, entry));
  }
}

export function dismiss(chat: string, entry: Pending) {
  stop(entry);
  drop(chat, entry.abort);
}

export async function removeFile(chat: string, name: string) {
  try {
    await detach(chat, name);
  } catch (error) {
    const why = `it could not be removed: ${(error as Error).message}`;
    setPending(chat, [...of(chat), { name, state: 'refused', why, abort: new AbortController() }]);
    return;
  }
  const left = (find(chat)?.attached ?? []).filter((one) => one.name !== name);
  await update(chat, { attached: left });
}

// The server forgets files of chats that were not used for long.
export async function compareWithServer(chat: string) {
  const known = find(chat)?.attached ?? [];
  if (known.length === 0) return;
  const there = await listAttachments(chat).catch(() => null);
  if (there === null) return; // not reached: nothing is known
  const gone = known.filter(({ name }) => !there.some((one) => one.name === name));
  if (gone.length === 0) return;
  await update(chat, { attached: there.map(({ name, chunks }) => ({ name, chunks })) });
  setPending(chat, [...of(chat), ...gone.map(({ name }): Pending => ({
    name, state: 'refused', why: 'the server has it no longer: attach it again',
    abort: new AbortController() }))]);
}

// Chats that were deleted here while the server could not be told.
const DELETED = 'slipstream.deleted';
const deleted = (): string[] => JSON.parse(localStorage.getItem(DELETED) ?? '[]') as string[];
const setDeleted = (chats: string[]) => localStorage.setItem(DELETED, JSON.stringify(chats));

export async function tellDeleted() {
  for (const chat of deleted()) {
    const is_told = await detachAll(chat).then(() => true, () => false);
    if (is_told) setDeleted(deleted().filter((one) => one !== chat));
  }
}

// Chats with all that belongs to them; at once here, and on the server when it is done.
export async function forget(chats: string[]) {
  const with_files = chats.filter((chat) => find(chat)?.attached?.length || isAttaching(chat));
  for (const chat of chats) {
    of(chat).forEach(stop);
    setPending(chat, []);
    remove(chat);
  }
  if (with_files.length === 0) return;
  setDeleted([...deleted(), ...with_files]);
  await tellDeleted();
}
