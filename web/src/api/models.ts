// Models: those the server answers with, and, where it has the routes, its disk and the hub.
import { readEvents } from './events.ts';
import { ApiFailure, ask, askIfThere, post } from './http.ts';

export interface ServedModel {
  id: string;
  loaded: boolean;
  max_model_len?: number;
}

export interface LocalModel {
  name: string;
  path: string;
  bytes: number;
  quant: string;
  state: 'loaded' | 'idle' | 'on disk';
  removable?: boolean; // servers of older versions do not say
  fit: { fits: boolean; n_ctx: number; kv: string; why: string };
}

export interface HubModel {
  repo: string;
  downloads: number;
  files: { quant: string; bytes: number }[];
}

export interface RecommendedModel {
  name: string;
  about: string;
  bytes: number;
  fit: LocalModel['fit'];
}

export interface PullProgress {
  bytes: number;
  bytes_all: number;
  bytes_per_s: number;
}

export async function servedModels(): Promise<ServedModel[]> {
  return (await (await ask('/v1/models')).json()).data;
}

// null: the server has no such route.
export async function localModels(): Promise<LocalModel[] | null> {
  const response = await askIfThere('/slipstream/models');
  return response && (await response.json()).models;
}

export async function searchHub(query: string): Promise<HubModel[] | null> {
  const response = await askIfThere(`/slipstream/hub/search?q=${encodeURIComponent(query)}`);
  return response && (await response.json()).results;
}

// The hub is asked for them, so it may take a second or two.
export async function recommendedModels(): Promise<RecommendedModel[]> {
  const response = await askIfThere('/slipstream/recommended');
  return response ? (await response.json()).models : [];
}

export async function setLoaded(name: string, is_loaded: boolean): Promise<void> {
  await post(`/slipstream/models/${is_loaded ? 'load' : 'unload'}`, { name });
}

export async function removeModel(name: string): Promise<void> {
  await post('/slipstream/models/remove', { name });
}

export async function* pull(
  repo: string, quant: string, signal: AbortSignal,
): AsyncGenerator<PullProgress> {
  const response = await post('/slipstream/hub/pull', { repo, quant }, signal);
  for await (const data of readEvents(response.body!)) {
    const event = JSON.parse(data);
    if (event.error) {
      throw new ApiFailure(500, String(event.error.message ?? event.error));
    }
    if (event.done) return;
    yield event;
  }
  throw new ApiFailure(0, 'The connection ended before the download did');
}
