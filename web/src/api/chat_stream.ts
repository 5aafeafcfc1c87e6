// A streamed chat completion as a row of small facts.
//
// Errors: ApiFailure when the stream says so, or ends before its [DONE].
import { readEvents } from './events.ts';
import { ApiFailure, post } from './http.ts';

export interface Usage {
  n_prompt: number;
  n_cached: number;
  n_recomputed: number; // though an earlier request had computed them
  n_generated: number;
  n_dropped: number; // turns of the chat that left its window
  n_accepted?: number; // guessed rightly, each of which saved a step; not named if nothing was guessed
}

export interface PromptProgress {
  n_prompt: number;
  n_cached: number;
  n_done: number; // those included
}

// A place that the answer was given, as the API names it.
export interface Citation {
  url: string;
  title: string;
  start: number; // where the answer names it, in characters; both 0: it does not
  end: number;
}

export type ChatPiece =
  | { kind: 'content'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'call'; index: number; id?: string; name?: string; arguments: string }
  | { kind: 'citations'; citations: Citation[] }
  | { kind: 'notice'; text: string }
  | { kind: 'finish'; reason: string }
  | { kind: 'progress'; progress: PromptProgress }
  | { kind: 'usage'; usage: Usage };

interface Annotation {
  type: string;
  url_citation?: { url?: string; title?: string; start_index?: number; end_index?: number };
}

interface Chunk {
  error?: { message?: string };
  notice?: string;
  prompt_progress?: { total: number; cache: number; processed: number };
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: {
        index: number;
        id?: string;
        function?: { name?: string; arguments?: string };
      }[];
      annotations?: Annotation[];
    };
    finish_reason?: string | null;
    notice?: string;
  }[];
  timings?: { draft_n_accepted?: number };
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: {
      cached_tokens?: number; recomputed_tokens?: number; dropped_turns?: number };
  } | null;
}

// Kinds of annotations that are not known are left out.
function citationsOf(annotations: Annotation[]): Citation[] {
  return annotations.flatMap(({ type, url_citation }) => {
    if (type !== 'url_citation' || !url_citation?.url) return [];
    const { url, title = url, start_index = 0, end_index = 0 } = url_citation;
    return [{ url, title, start: start_index, end: end_index }];
  });
}

function* piecesOf(chunk: Chunk): Generator<ChatPiece> {
  if (chunk.prompt_progress) {
    const { total, cache, processed } = chunk.prompt_progress;
    yield { kind: 'progress', progress: { n_prompt: total, n_cached: cache, n_done: processed } };
  }
  const choice = chunk.choices?.[0];
  const delta = choice?.delta;
  if (delta?.reasoning_content) yield { kind: 'reasoning', text: delta.reasoning_content };
  if (delta?.content) yield { kind: 'content', text: delta.content };
  for (const call of delta?.tool_calls ?? []) {
    yield {
      kind: 'call',
      index: call.index,
      arguments: call.function?.arguments ?? '',
      ...(call.id && { id: call.id }),
      ...(call.function?.name && { name: call.function.name }),
    };
  }
  const citations = citationsOf(delta?.annotations ?? []);
  if (citations.length > 0) yield { kind: 'citations', citations };
  if (choice?.notice) yield { kind: 'notice', text: choice.notice };
  if (choice?.finish_reason) yield { kind: 'finish', reason: choice.finish_reason };
  if (chunk.usage) {
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = chunk.usage;
    const n_cached = prompt_tokens_details?.cached_tokens ?? 0;
    const n_recomputed = prompt_tokens_details?.recomputed_tokens ?? 0;
    const n_dropped = prompt_tokens_details?.dropped_turns ?? 0;
    const n_accepted = chunk.timings?.draft_n_accepted;
    const usage = {
      n_prompt: prompt_tokens, n_cached, n_recomputed, n_generated: completion_tokens, n_dropped,
      ...(n_accepted !== undefined && { n_accepted }) };
    yield { kind: 'usage', usage };
  }
}

export async function* readChat(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatPiece> {
  for await (const data of readEvents(body)) {
    if (data === '[DONE]') return;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new ApiFailure(500, chunk.error.message ?? 'The answer failed');
    yield* piecesOf(chunk);
  }
  throw new ApiFailure(0, 'The connection ended before the answer did');
}

export async function* streamChat(request: object, signal: AbortSignal): AsyncGenerator<ChatPiece> {
  const body = {
    ...request, stream: true, return_progress: true, stream_options: { include_usage: true } };
  const response = await post('/v1/chat/completions', body, signal);
  yield* readChat(response.body!);
}
