// A conversation as it is kept.

import type { Citation } from '../api/chat_stream.ts';
import { newId } from './ids.ts';

// Empty: as the server has it.
export interface Sampling {
  temperature: string;
  top_p: string;
  top_k: string;
  max_tokens: string;
  seed: string;
}
export const NO_SAMPLING: Sampling = {
  temperature: '', top_p: '', top_k: '', max_tokens: '', seed: '' };

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface AnswerStats {
  n_prompt: number;
  n_cached: number;
  n_recomputed?: number; // answers of older versions have none
  n_dropped?: number; // turns that left the window; as well
  n_generated: number;
  n_accepted?: number; // of those, guessed before
  first_token_s: number;
  tokens_per_s: number | null; // null: nothing took time
}

export interface Message {
  id: string;
  role: 'user' | 'assistant' | 'tool';
  content: string;
  reasoning?: string;
  calls?: ToolCall[];
  call_id?: string; // of role tool: what it answers
  model?: string;
  citations?: Citation[];
  stats?: AnswerStats;
  note?: string; // why it ended as it did, where that is no matter of course
  is_cut?: boolean; // it ended before it was complete, and can go on
  is_json?: boolean; // it was asked for by a schema
  error?: string;
  needs_key?: boolean;
}

// What of the user's files is searched before an answer.
export interface FileSearch {
  is_on: boolean;
  project: string; // empty: all folders
  budget: string; // tokens at most; empty: as the server has it
}
export const NO_FILES: FileSearch = { is_on: false, project: '', budget: '' };

// A file that the server has for this chat.
export interface Attached {
  name: string;
  chunks: number;
}

// Another version of what follows a message (branches.ts).
export interface Branch {
  after: string; // id of the message; empty: it is the whole conversation
  number: number;
  messages: Message[];
}

// How much a model thinks: '': as its template has it; 'on', 'off': by the template's switch.
export const EFFORTS = ['minimal', 'low', 'medium', 'high', 'max'] as const;
export type Thinking = '' | 'on' | 'off' | typeof EFFORTS[number];

export interface Conversation {
  id: string;
  title: string;
  changed_ms: number;
  model: string; // empty: the server's first
  system: string;
  tools: string; // JSON as the user wrote it
  schema?: string; // of the answers, JSON as the user wrote it; chats of older versions have none
  thinking: Thinking;
  sampling: Sampling; // over the defaults of the settings
  files?: FileSearch; // chats of older versions have none
  attached?: Attached[]; // as well
  messages: Message[];
  branches?: Branch[];
}

export function newConversation(model: string): Conversation {
  return {
    id: newId(),
    title: '',
    changed_ms: Date.now(),
    model,
    system: '',
    tools: '',
    thinking: '',
    sampling: { ...NO_SAMPLING },
    messages: [],
  };
}

// The calls of the last answer that have no result yet.
export function openCalls(messages: Message[]): ToolCall[] {
  const idx = messages.findLastIndex((message) => message.role === 'assistant');
  const answered = new Set(messages.slice(idx + 1).map((message) => message.call_id));
  return (messages[idx]?.calls ?? []).filter((call) => !answered.has(call.id));
}

export function titleOf(conversation: Conversation): string {
  if (conversation.title) return conversation.title;
  const first = conversation.messages.find((message) => message.role === 'user');
  const line = first?.content.trim().split('\n')[0] ?? '';
  if (!line) return 'New chat';
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}
