// What the dashboard shows, worked out of readings of /metrics.
import {
  type Sample, bucketsOf, difference, has, quantile, sum } from '../../api/metrics.ts';

export interface Reading {
  at_s: number;
  samples: Sample[];
}

export const N_READINGS_MAX = 120;
export const WINDOW_S = 30; // of latencies: long enough for some requests, short enough to be news

// Of a counter, from each reading to the next. One that was reset has no rate there.
export function rates(readings: Reading[], name: string): number[] {
  return readings.slice(1).map((reading, i) => {
    const before = readings[i]!;
    const grown = sum(reading.samples, name) - sum(before.samples, name);
    return Math.max(0, grown / Math.max(reading.at_s - before.at_s, 1e-3));
  });
}

export const gauges = (readings: Reading[], name: string) =>
  readings.map((reading) => sum(reading.samples, name));

// Quantiles of what was measured within the window; of all that was, if that is nothing.
export function latency(readings: Reading[], name: string, share: number): number | null {
  const last = readings.at(-1);
  if (!last) return null;
  const now = bucketsOf(last.samples, name);
  const first = readings.find((reading) => reading.at_s >= last.at_s - WINDOW_S) ?? last;
  return quantile(share, difference(now, bucketsOf(first.samples, name))) ?? quantile(share, now);
}

export interface KvMemory {
  model: string;
  scheme: string;
  bytes: number;
  f16_bytes: number | null; // null: the server does not know
}

export function kvMemory(samples: Sample[]): KvMemory[] {
  return samples.filter(({ name }) => name === 'slipstream:kv_cache_bytes').map((sample) => {
    const model = sample.labels.model_name ?? '';
    const f16 = samples.find(({ name, labels }) =>
      name === 'slipstream:kv_cache_f16_bytes' && labels.model_name === model);
    return {
      model,
      scheme: sample.labels.kv_scheme ?? '',
      bytes: sample.value,
      f16_bytes: f16?.value ? f16.value : null,
    };
  });
}

// null: nothing was asked yet.
export function shareOf(samples: Sample[], part: string, ...whole: string[]): number | null {
  const all = whole.reduce((total, name) => total + sum(samples, name), 0);
  return all > 0 ? sum(samples, part) / all : null;
}

export const hasExperts = (samples: Sample[]) => has(samples, 'slipstream:expert_hits_total');
