// Has code coloured and formulas set by a worker, one after the other, and keeps what it made: an answer
// that grows asks for the same again and again.
import type { Tree } from './markup.ts';
import type { Job } from './paint_worker.ts';

const JOB_CHARS_MAX = 100_000;
const JOB_MS_MAX = 3000; // then the worker is ended: the text stays as it is
const KEPT_CHARS_MAX = 4_000_000;
const WAITING_MAX = 1000; // more of them are left as they are

type Result = Tree[] | null;
interface Waiting { key: string; job: Job; done: ((result: Result) => void)[] }

const kept = new Map<string, Result>();
let kept_chars = 0;
let queue: Waiting[] = []; // the worker has the first
let worker: Worker | null = null;
let timer = 0;

const keyOf = (job: Job) =>
  job.kind === 'code' ? `code ${job.language} ${job.text}` : `math ${job.is_block} ${job.text}`;

function keep(key: string, result: Result) {
  if (kept_chars + key.length > KEPT_CHARS_MAX) {
    kept.clear();
    kept_chars = 0;
  }
  kept.set(key, result);
  kept_chars += key.length;
}

function settle(result: Result) {
  clearTimeout(timer);
  const first = queue.shift();
  if (!first) return;
  keep(first.key, result);
  for (const done of first.done) done(result);
  next();
}

function endWorker() {
  worker?.terminate();
  worker = null;
  settle(null);
}

function next() {
  const first = queue[0];
  if (!first) return;
  if (!worker) {
    try {
      worker = new Worker(new URL('./paint_worker.ts', import.meta.url), { type: 'module' });
    } catch {
      return settle(null);
    }
    worker.onmessage = ({ data }: MessageEvent<Result>) => settle(data);
    worker.onerror = endWorker;
  }
  timer = window.setTimeout(endWorker, JOB_MS_MAX);
  worker.postMessage(first.job);
}

// undefined: it was not asked for yet.
export const painted = (job: Job): Result | undefined => kept.get(keyOf(job));

// null: it stays as it is.
export function paint(job: Job): Promise<Result> {
  if (job.text.length > JOB_CHARS_MAX) return Promise.resolve(null);
  const key = keyOf(job);
  const found = kept.get(key);
  if (found !== undefined) return Promise.resolve(found);
  return new Promise((done) => {
    const same = queue.find((one) => one.key === key);
    if (same) {
      same.done.push(done);
    } else if (queue.length >= WAITING_MAX) {
      done(null);
    } else {
      queue.push({ key, job, done: [done] });
      if (queue.length === 1) next();
    }
  });
}
