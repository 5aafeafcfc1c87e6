// What /metrics says: Prometheus' text format, as far as the server writes it.
//
// By hand: the packages that parse it have not been kept for years, and it is one line per value.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;
const ESCAPES: Record<string, string> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

function numberOf(text: string): number {
  if (text === '+Inf') return Infinity;
  if (text === '-Inf') return -Infinity;
  return Number(text);
}

export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = LINE.exec(line.trim());
    if (!match) throw new Error(`not a line of metrics: ${line}`);
    const labels: Record<string, string> = {};
    for (const [, name, value] of (match[2] ?? '').matchAll(LABEL)) {
      labels[name!] = value!.replace(/\\[n"\\]/g, (escape) => ESCAPES[escape]!);
    }
    samples.push({ name: match[1]!, labels, value: numberOf(match[3]!) });
  }
  return samples;
}

// Over all models and layers.
export function sum(samples: Sample[], name: string): number {
  return samples.reduce((total, sample) => total + (sample.name === name ? sample.value : 0), 0);
}

export const has = (samples: Sample[], name: string) =>
  samples.some((sample) => sample.name === name);

// Upper bounds and how many were at most that, over all models.
export type Buckets = Map<number, number>;

export function bucketsOf(samples: Sample[], name: string): Buckets {
  const buckets: Buckets = new Map();
  for (const { name: of, labels, value } of samples) {
    if (of !== `${name}_bucket`) continue;
    const bound = numberOf(labels.le ?? '');
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

// What was counted between two readings.
export function difference(now: Buckets, before: Buckets): Buckets {
  return new Map([...now].map(([bound, n]) => [bound, n - (before.get(bound) ?? 0)]));
}

// As Prometheus' histogram_quantile(): even within a bucket; null if nothing was counted.
export function quantile(share: number, buckets: Buckets): number | null {
  const sorted = [...buckets].sort(([a], [b]) => a - b);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  let [low, n_low] = [0, 0];
  for (const [bound, n] of sorted) {
    if (n >= share * total) {
      if (bound === Infinity) return low;
      return low + ((bound - low) * (share * total - n_low)) / Math.max(n - n_low, 1e-9);
    }
    [low, n_low] = [bound, n];
  }
  return low;
}
