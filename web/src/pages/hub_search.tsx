// Models of the hub: searched, and pulled with progress. Nothing where the server has no hub.
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { type HubModel, type PullProgress, pull, searchHub } from '../api/models.ts';
import { Problem } from '../parts/problem.tsx';
import { Ring } from '../parts/ring.tsx';
import { formatBytes, formatCount } from '../text/numbers.ts';

interface Download {
  repo: string;
  quant: string;
  controller: AbortController;
  progress?: PullProgress;
  error?: string;
  is_done?: boolean;
}

// By repository and quantisation. They go on while other pages are shown.
const downloads = signal<Record<string, Download>>({});
const keyOf = (repo: string, quant: string) => `${repo} ${quant}`;

function note(repo: string, quant: string, change: Partial<Download>) {
  const key = keyOf(repo, quant);
  const old = downloads.value[key];
  if (old) downloads.value = { ...downloads.value, [key]: { ...old, ...change } };
}

async function download(repo: string, quant: string, onPulled: () => void) {
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

function Found({ model, onPulled }: { model: HubModel; onPulled: () => void }) {
  return (
    <li class="card">
      <div class="card-head">
        <h3>{model.repo}</h3>
        <span class="faint">{formatCount(model.downloads)} downloads</span>
      </div>
      <div class="row wrap">
        {model.files.map(({ quant, bytes }) => {
          const one = downloads.value[keyOf(model.repo, quant)];
          const is_busy = one !== undefined && !one.error;
          return (
            <button key={quant} type="button" disabled={is_busy}
              aria-label={`Pull ${model.repo} ${quant}, ${formatBytes(bytes)}`}
              onClick={() => void download(model.repo, quant, onPulled)}>
              {quant} <span class="faint">{formatBytes(bytes)}</span>
            </button>
          );
        })}
      </div>
    </li>
  );
}

export function Hub({ onPulled }: { onPulled: () => void }) {
  const [is_there, setThere] = useState(false);
  const [query, setQuery] = useState('');
  const [found, setFound] = useState<HubModel[] | null>(null);
  const [problem, setProblem] = useState('');
  const [is_busy, setBusy] = useState(false);
  useEffect(() => {
    // Any answer but 404 says that there is a hub; that nothing was searched for is no matter.
    searchHub('').then((results) => setThere(results !== null), () => setThere(true));
  }, []);
  if (!is_there) return null;
  const search = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    try {
      setFound(await searchHub(query.trim()));
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <section>
      <h2>Find a model</h2>
      <form class="row" role="search" onSubmit={search}>
        <input type="search" aria-label="Search the hub" placeholder="qwen3 4b" value={query}
          onInput={(event) => setQuery(event.currentTarget.value)} />
        <button type="submit" class="primary" disabled={!query.trim() || is_busy}>
          {is_busy ? 'Searching…' : 'Search'}
        </button>
      </form>
      {problem && <Problem message={problem} />}
      {Object.entries(downloads.value).map(([key, one]) => <Progress key={key} of={one} />)}
      {found && (
        <ul class="cards">
          {found.map((model) => <Found key={model.repo} model={model} onPulled={onPulled} />)}
        </ul>
      )}
      {found?.length === 0 && <p class="faint" role="status">Nothing found</p>}
    </section>
  );
}
