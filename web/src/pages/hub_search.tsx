// Models of the hub: searched, and pulled with progress. Nothing where the server has no hub.
import { useEffect, useState } from 'preact/hooks';
import { type HubModel, searchHub } from '../api/models.ts';
import { Problem } from '../parts/problem.tsx';
import { formatBytes, formatCount } from '../text/numbers.ts';
import { download, downloads, keyOf } from './downloads.tsx';

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
      {found && (
        <ul class="cards">
          {found.map((model) => <Found key={model.repo} model={model} onPulled={onPulled} />)}
        </ul>
      )}
      {found?.length === 0 && <p class="faint" role="status">Nothing found</p>}
    </section>
  );
}
