// Asking for an answer: it grows in the conversation while it streams.
import { signal } from '@preact/signals';
import { streamChat, type ChatPiece, type PromptProgress } from '../api/chat_stream.ts';
import { ApiFailure } from '../api/http.ts';
import { settings } from '../settings.ts';
import { newId } from './ids.ts';
import { requestOf } from './request.ts';
import { Stopwatch } from './stopwatch.ts';
import { find, touch, update } from './store.ts';
import { type Message, openCalls } from './types.ts';

// By conversation: what is being answered.
export const running = signal<ReadonlyMap<string, AbortController>>(new Map());
// By conversation: a prompt that is long enough to be read in several steps.
export const reading = signal<ReadonlyMap<string, PromptProgress>>(new Map());
// For screen readers: that an answer began and ended, not its every word.
export const announcement = signal('');

const SHOW_MS = 40; // faster than this nobody reads
const KEEP_MS = 1000;

function setRunning(id: string, controller: AbortController | null) {
  const next = new Map(running.value);
  if (controller) next.set(id, controller);
  else next.delete(id);
  running.value = next;
}

function setReading(id: string, progress: PromptProgress | null) {
  if (!progress && !reading.value.has(id)) return;
  const next = new Map(reading.value);
  if (progress) next.set(id, progress);
  else next.delete(id);
  reading.value = next;
}

function add(answer: Message, piece: ChatPiece) {
  if (piece.kind === 'content') answer.content += piece.text;
  if (piece.kind === 'reasoning') answer.reasoning = (answer.reasoning ?? '') + piece.text;
  if (piece.kind === 'citations') answer.citations = piece.citations;
  if (piece.kind === 'notice') answer.note = piece.text;
  if (piece.kind === 'finish' && piece.reason === 'length') {
    answer.note = 'Ended at the limit of tokens';
  }
  if (piece.kind === 'call') {
    const calls = [...(answer.calls ?? [])];
    const call = calls[piece.index] ?? { id: '', name: '', arguments: '' };
    calls[piece.index] = {
      id: piece.id ?? call.id,
      name: piece.name ?? call.name,
      arguments: call.arguments + piece.arguments,
    };
    answer.calls = calls;
  }
}

async function collect(id: string, answer: Message, signal: AbortSignal, show: () => void) {
  const watch = new Stopwatch();
  const request = requestOf(find(id)!, settings.value.sampling);
  for await (const piece of streamChat(request, signal)) {
    if (piece.kind === 'progress') {
      setReading(id, piece.progress.n_done < piece.progress.n_prompt ? piece.progress : null);
      continue;
    }
    setReading(id, null);
    if (piece.kind === 'usage') {
      answer.stats = watch.stats(piece.usage);
    } else if (piece.kind !== 'finish' && piece.kind !== 'citations') {
      watch.note();
    }
    add(answer, piece);
    show();
  }
}

export async function answer(id: string) {
  const asked = find(id);
  if (!asked || running.value.has(id)) return;
  const controller = new AbortController();
  const grown: Message = {
    id: newId(), role: 'assistant', content: '', ...(asked.model && { model: asked.model }) };
  let pending = 0;
  let kept_ms = performance.now();
  const show = (keeps = false) => {
    pending = 0;
    const others = find(id)?.messages.filter((message) => message.id !== grown.id) ?? [];
    void update(id, { messages: [...others, { ...grown }] }, keeps);
  };
  const show_soon = () => {
    pending ||= window.setTimeout(() => {
      const keeps = performance.now() - kept_ms > KEEP_MS;
      if (keeps) kept_ms = performance.now();
      show(keeps);
    }, SHOW_MS);
  };
  setRunning(id, controller);
  announcement.value = 'The answer is being written';
  try {
    await collect(id, grown, controller.signal, show_soon);
    announcement.value = grown.calls ? 'The model calls a tool and waits' : 'The answer is complete';
  } catch (error) {
    if (controller.signal.aborted) {
      grown.note = 'Stopped';
      announcement.value = 'Stopped';
      delete grown.calls; // perhaps cut off in the middle
    } else {
      grown.error = (error as Error).message;
      grown.needs_key = error instanceof ApiFailure && error.status === 401;
      announcement.value = `The answer failed: ${grown.error}`;
    }
  } finally {
    clearTimeout(pending);
    setReading(id, null);
    show();
    await touch(id); // it is over when it is kept: a page may be closed right then
    setRunning(id, null);
  }
}

export function stop(id: string) {
  running.value.get(id)?.abort();
}

// An answer that failed is no part of what was said.
function said(id: string): Message[] {
  return find(id)?.messages.filter((message) => !message.error) ?? [];
}

export function say(id: string, content: string) {
  const message: Message = { id: newId(), role: 'user', content };
  void update(id, { messages: [...said(id), message] });
  void touch(id);
  return answer(id);
}

// The answer again, and all that came after it goes.
export function regenerate(id: string, message_id: string) {
  const messages = find(id)?.messages ?? [];
  const idx = messages.findIndex((message) => message.id === message_id);
  if (idx < 0 || running.value.has(id)) return;
  void update(id, { messages: messages.slice(0, idx) });
  return answer(id);
}

export function edit(id: string, message_id: string, content: string) {
  const messages = find(id)?.messages ?? [];
  const idx = messages.findIndex((message) => message.id === message_id);
  if (idx < 0 || running.value.has(id)) return;
  void update(id, { messages: [...messages.slice(0, idx), { ...messages[idx]!, content }] });
  return answer(id);
}

// The model goes on when its last call has a result.
export function giveResult(id: string, call_id: string, content: string) {
  const message: Message = { id: newId(), role: 'tool', content, call_id };
  const messages = [...said(id), message];
  void update(id, { messages });
  if (openCalls(messages).length === 0) return answer(id);
}
