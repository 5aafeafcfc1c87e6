// Models on their way from the hub, one ring for each.
import { signal } from '@preact/signals';
import { type PullProgress, pull } from '../api/models.ts';
import { Ring } from '../parts/ring.tsx';
import { formatBytes } from '../text/numbers.ts';

interface Download {
  repo: string;
  quant: string;
  controller: AbortController;
  progress?: PullProgress;
  error?: string;
  is_done?: boolean;
}

// By repository and quantisation. They go on while other pages are shown.
export const downloads = signal<Record<string, Download>>({});
export const keyOf = (repo: string, quant: string) => `${repo} ${quant}`;

function note(repo: string, quant: string, change: Partial<Download>) {
  const key = keyOf(repo, quant);
  const old = downloads.value[key];
  if (old) downloads.value = { ...downloads.value, [key]: { ...old, ...change } };
}

export async function download(repo: string, quant: string, onPulled: () => void) {
  const controller = new AbortController();
  downloads.value = { ...downloads.value, [keyOf(repo, quant)]: { repo, quant, controller } };
  try {
    for await (const progress of pull(repo, quant, controller.signal)) note(repo, quant, { progress });
    note(repo, quant, { is_done: true });
    onPulled();
  } catch (error) {
    note(repo, quant, {
      error: controller.signal.aborted ? 'Stopped' : (error as Error).message });
  }
}

function Progress({ of }: { of: Download }) {
  const { progress, error, is_done, repo, quant } = of;
  const share = is_done ? 1 : progress?.bytes_all ? progress.bytes / progress.bytes_all : 0;
  const text = is_done ? 'Installed'
    : error ?? (progress
      ? `${formatBytes(progress.bytes)} of ${formatBytes(progress.bytes_all)}, ` +
        `${formatBytes(progress.bytes_per_s)}/s`
      : 'Starting…');
  const is_over = is_done || error !== undefined;
  return (
    <div class="download">
      <Ring share={share} label={`Download of ${repo} ${quant}`} />
      <div>
        <strong>{repo}</strong> {quant}
        <p class={error ? 'wrong' : 'faint'} role={is_over ? 'status' : undefined}>{text}</p>
      </div>
      {!is_over && (
        <button type="button" class="quiet small" onClick={() => of.controller.abort()}>Stop</button>
      )}
    </div>
  );
}

export function Downloads() {
  return (
    <>
      {Object.entries(downloads.value).map(([key, one]) => <Progress key={key} of={one} />)}
    </>
  );
}
