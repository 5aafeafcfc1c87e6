// Asking for an answer: it grows in the conversation while it streams.
import { signal } from '@preact/signals';
import { type ChatPiece, type Citation, type PromptProgress, streamChat } from '../api/chat_stream.ts';
import { ApiFailure } from '../api/http.ts';
import { settings } from '../settings.ts';
import { branched, switched, versionsOf } from './branches.ts';
import { newId } from './ids.ts';
import { requestOf } from './request.ts';
import { Stopwatch } from './stopwatch.ts';
import { find, touch, update } from './store.ts';
import { type AnswerStats, type Message, openCalls } from './types.ts';

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
  if (piece.kind === 'notice') answer.note = piece.text;
  if (piece.kind === 'finish' && piece.reason === 'length') {
    answer.note = 'Ended at the limit of tokens';
    answer.is_cut = true;
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

// Of an answer that went on: what it has cost in all, and how fast the last part was.
const together = (before: AnswerStats | undefined, now: AnswerStats): AnswerStats => ({
  ...now,
  n_generated: (before?.n_generated ?? 0) + now.n_generated,
  n_prompt: now.n_prompt - (before?.n_generated ?? 0),
  n_cached: Math.max(0, now.n_cached - (before?.n_generated ?? 0)),
});

// Citations say where they are named in what was written now.
const moved = (citations: Citation[], n: number) =>
  citations.map((one) => (one.end > 0 ? { ...one, start: one.start + n, end: one.end + n } : one));

interface Asking {
  answer: Message;
  goes_on: boolean;
  signal: AbortSignal;
  show: () => void;
}

async function collect(id: string, { answer, goes_on, signal, show }: Asking) {
  const watch = new Stopwatch();
  const { stats: before, citations: cited = [] } = answer;
  const n_before = [...answer.content].length;
  const request = requestOf(find(id)!, settings.value.sampling, goes_on);
  for await (const piece of streamChat(request, signal)) {
    if (piece.kind === 'progress') {
      setReading(id, piece.progress.n_done < piece.progress.n_prompt ? piece.progress : null);
      continue;
    }
    setReading(id, null);
    if (piece.kind === 'usage') {
      answer.stats = together(before, watch.stats(piece.usage));
    } else if (piece.kind !== 'finish' && piece.kind !== 'citations') {
      watch.note();
    }
    add(answer, piece);
    if (piece.kind === 'citations') answer.citations = [...cited, ...moved(piece.citations, n_before)];
    show();
  }
}

// going_on: the last message, which is an answer that was cut.
export async function answer(id: string, going_on: Message | null = null) {
  const asked = find(id);
  if (!asked || running.value.has(id)) return;
  const controller = new AbortController();
  const { note: _note, is_cut: _cut, error: _error, needs_key: _key, ...rest } = going_on ?? {
    id: newId(), role: 'assistant' as const, content: '', ...(asked.model && { model: asked.model }),
    ...(asked.schema?.trim() && { is_json: true }) } as Message;
  const grown: Message = { ...rest };
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
  if (going_on) show();
  announcement.value = 'The answer is being written';
  try {
    await collect(id, { answer: grown, goes_on: going_on !== null, signal: controller.signal, show: show_soon });
    announcement.value = grown.calls ? 'The model calls a tool and waits' : 'The answer is complete';
  } catch (error) {
    if (controller.signal.aborted) {
      grown.note = 'Stopped';
      grown.is_cut = true;
      announcement.value = 'Stopped';
      delete grown.calls; // perhaps cut off in the middle
    } else if (going_on) {
      grown.note = `It did not go on: ${(error as Error).message}`;
      grown.is_cut = true;
      announcement.value = grown.note;
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

function anew(id: string, message_id: string, change: (message: Message) => Message[]) {
  const chat = find(id);
  const idx = chat?.messages.findIndex((message) => message.id === message_id) ?? -1;
  if (!chat || idx < 0 || running.value.has(id)) return;
  void update(id, branched(chat, chat.messages[idx - 1]?.id ?? '', change(chat.messages[idx]!)));
  return answer(id);
}

// The answer again; it and what came after it stay as another version.
export const regenerate = (id: string, message_id: string) => anew(id, message_id, () => []);

export const edit = (id: string, message_id: string, content: string) =>
  anew(id, message_id, (message) => [{ ...message, id: newId(), content }]);

export function showVersion(id: string, first: string, step: 1 | -1) {
  const chat = find(id);
  const change = chat && !running.value.has(id) ? switched(chat, first, step) : null;
  if (!change) return;
  void update(id, change);
  const first_of_it = change.messages![chat!.messages.findIndex((message) => message.id === first)]!;
  const { shown, n } = versionsOf(find(id)!).get(first_of_it.id)!;
  announcement.value = `Version ${shown + 1} of ${n}`;
}

export const canGoOn = ({ role, is_cut, content, calls, is_json }: Message) =>
  role === 'assistant' && is_cut === true && content.trim() !== '' && !calls && !is_json;

// An answer that was cut, from where it ended.
export function goOn(id: string) {
  const last = find(id)?.messages.at(-1);
  if (last && canGoOn(last)) return answer(id, last);
}

// The model goes on when its last call has a result.
export function giveResult(id: string, call_id: string, content: string) {
  const message: Message = { id: newId(), role: 'tool', content, call_id };
  const messages = [...said(id), message];
  void update(id, { messages });
  if (openCalls(messages).length === 0) return answer(id);
}
