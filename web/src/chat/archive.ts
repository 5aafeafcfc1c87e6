// Chats and presets as a file, and back. A file may come from anybody: only what is known is taken from
// it, field by field, and texts stay texts.
//
// Errors: an Error with a text for people.
import { newId } from './ids.ts';
import { PRESETS_MAX, PRESET_NAME_CHARS_MAX, type Preset } from './presets.ts';
import {
  type Attached, type Branch, type Conversation, EFFORTS, type FileSearch, type Message, NO_SAMPLING, type Sampling,
  type Thinking, type ToolCall, newConversation } from './types.ts';

const KIND = 'slipstream-export';
const VERSION = 1;

export const ARCHIVE_LIMITS = {
  file_bytes_max: 128 << 20,
  conversations_max: 10_000,
  messages_max: 10_000, // of a conversation, all versions together
  text_chars_max: 16 << 20,
  others_max: 1000, // calls of a message, citations of one, files of a chat
};

export const archiveOf = (conversations: Conversation[], presets: Preset[]): string =>
  JSON.stringify({ kind: KIND, version: VERSION, presets, conversations }, null, 1);

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function text(value: unknown): string {
  if (typeof value !== 'string') return '';
  return value.slice(0, ARCHIVE_LIMITS.text_chars_max);
}
const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);
const count = (value: unknown): number => Math.max(0, Math.trunc(number(value)));
const list = (value: unknown, n_max: number): Fields[] =>
  (Array.isArray(value) ? value.slice(0, n_max).filter(isObject) : []);
const isId = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{1,64}$/.test(value);

// Numbers as people type them into a field.
function samplingOf(value: unknown): Sampling {
  const sampling = { ...NO_SAMPLING };
  for (const name of Object.keys(sampling) as (keyof Sampling)[]) {
    const given = isObject(value) ? text(value[name]).trim() : '';
    if (/^-?\d{1,15}(?:\.\d{1,15})?$/.test(given)) sampling[name] = given;
  }
  return sampling;
}

const THINKING: unknown[] = ['', 'on', 'off', ...EFFORTS];
const thinkingOf = (value: unknown) => (THINKING.includes(value) ? value as Thinking : '');

function callOf(value: Fields): ToolCall {
  return { id: text(value.id).slice(0, 256), name: text(value.name).slice(0, 256), arguments: text(value.arguments) };
}

function statsOf(value: Fields) {
  return {
    n_prompt: count(value.n_prompt), n_cached: count(value.n_cached), n_recomputed: count(value.n_recomputed),
    n_dropped: count(value.n_dropped), n_generated: count(value.n_generated), n_accepted: count(value.n_accepted),
    first_token_s: number(value.first_token_s),
    tokens_per_s: value.tokens_per_s === null ? null : number(value.tokens_per_s) };
}

const citationOf = (value: Fields) =>
  ({ url: text(value.url), title: text(value.title), start: count(value.start), end: count(value.end) });

function messageOf(value: Fields, ids: Set<string>): Message | null {
  const { role, id } = value;
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') return null;
  const calls = list(value.calls, ARCHIVE_LIMITS.others_max).map(callOf);
  const citations = list(value.citations, ARCHIVE_LIMITS.others_max).map(citationOf);
  if (!isId(id) || ids.has(id)) return null; // versions name messages by them
  ids.add(id);
  return {
    id, role, content: text(value.content),
    ...(value.reasoning !== undefined && { reasoning: text(value.reasoning) }),
    ...(calls.length > 0 && { calls }),
    ...(role === 'tool' && { call_id: text(value.call_id).slice(0, 256) }),
    ...(value.model !== undefined && { model: text(value.model) }),
    ...(citations.length > 0 && { citations }),
    ...(isObject(value.stats) && { stats: statsOf(value.stats) }),
    ...(value.note !== undefined && { note: text(value.note).slice(0, 1000) }),
    ...(value.error !== undefined && { error: text(value.error).slice(0, 1000) }),
    ...(value.is_cut === true && { is_cut: true }),
    ...(value.is_json === true && { is_json: true }),
  };
}

function messagesOf(value: unknown, ids: Set<string>): Message[] {
  const left = ARCHIVE_LIMITS.messages_max - ids.size;
  return list(value, left).flatMap((one) => messageOf(one, ids) ?? []);
}

function branchesOf(value: unknown, ids: Set<string>): Branch[] {
  const taken = new Set<string>(); // two of the same number could not be told apart
  const branches: Branch[] = [];
  for (const one of list(value, ARCHIVE_LIMITS.messages_max)) {
    const messages = messagesOf(one.messages, ids);
    const after = one.after === '' || isId(one.after) ? one.after : null;
    const key = `${after} ${count(one.number)}`;
    if (messages.length === 0 || after === null || taken.has(key)) continue;
    taken.add(key);
    branches.push({ after, number: count(one.number), messages });
  }
  return branches;
}

function filesOf(value: Fields): FileSearch {
  return { is_on: value.is_on === true, project: text(value.project), budget: samplingOf({ seed: value.budget }).seed };
}

function conversationOf(value: Fields, keeps_id: boolean): Conversation {
  const ids = new Set<string>();
  const messages = messagesOf(value.messages, ids);
  const branches = branchesOf(value.branches, ids);
  const attached = list(value.attached, ARCHIVE_LIMITS.others_max).map((one): Attached =>
    ({ name: text(one.name).slice(0, 512), chunks: count(one.chunks) }));
  return {
    ...newConversation(text(value.model).slice(0, 512)),
    id: keeps_id ? value.id as string : newId(),
    title: text(value.title).slice(0, 512),
    changed_ms: Math.min(count(value.changed_ms), Date.now()),
    system: text(value.system),
    tools: text(value.tools),
    schema: text(value.schema),
    thinking: thinkingOf(value.thinking),
    sampling: samplingOf(value.sampling),
    ...(isObject(value.files) && { files: filesOf(value.files) }),
    ...(attached.length > 0 && keeps_id && { attached }), // by its id the server knows them
    messages,
    ...(branches.length > 0 && { branches }),
  };
}

function presetsOf(value: unknown): Preset[] {
  return list(value, PRESETS_MAX).flatMap((one): Preset[] => {
    const name = text(one.name).trim().slice(0, PRESET_NAME_CHARS_MAX);
    return name
      ? [{ name, system: text(one.system), thinking: thinkingOf(one.thinking), sampling: samplingOf(one.sampling) }]
      : [];
  });
}

export interface Archive {
  conversations: Conversation[]; // those that are not here yet
  presets: Preset[];
  n_known: number; // chats that are here as they are in the file, or newer
}

// A chat that is here already is not taken again, unless the file has a newer one of the same id: that
// one comes as another chat, so that nothing here is lost.
export function readArchive(json: string, here: Conversation[]): Archive {
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch (error) {
    throw new Error(`The file is not JSON: ${(error as Error).message}`);
  }
  if (!isObject(data) || data.kind !== KIND) throw new Error('The file is no export of this app');
  if (count(data.version) > VERSION) throw new Error('The file was made by a newer version of this app');
  if (Array.isArray(data.conversations) && data.conversations.length > ARCHIVE_LIMITS.conversations_max) {
    throw new Error(`The file has more than ${ARCHIVE_LIMITS.conversations_max} chats`);
  }
  const known = new Map(here.map(({ id, changed_ms }) => [id, changed_ms]));
  const conversations: Conversation[] = [];
  let n_known = 0;
  for (const one of list(data.conversations, ARCHIVE_LIMITS.conversations_max)) {
    const changed_ms = isId(one.id) ? known.get(one.id) : undefined;
    if (changed_ms !== undefined && changed_ms >= count(one.changed_ms)) {
      n_known += 1;
      continue;
    }
    const read = conversationOf(one, isId(one.id) && changed_ms === undefined);
    if (read.messages.length === 0 && !read.system && !read.tools) continue;
    known.set(read.id, read.changed_ms);
    conversations.push(read);
  }
  return { conversations, presets: presetsOf(data.presets), n_known };
}
