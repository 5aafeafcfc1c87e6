// Models for people who have none: what is worth pulling on this machine.
import { useEffect, useState } from 'preact/hooks';
import { type RecommendedModel, recommendedModels } from '../api/models.ts';
import { Problem } from '../parts/problem.tsx';
import { formatBytes, formatCount } from '../text/numbers.ts';
import { download, downloads, keyOf } from './downloads.tsx';

function Card({ model, is_first, onPulled }: {
  model: RecommendedModel; is_first: boolean; onPulled: () => void;
}) {
  const [repo, quant] = model.name.split(':') as [string, string];
  const one = downloads.value[keyOf(repo, quant)];
  const is_busy = one !== undefined && !one.error;
  return (
    <li class="card">
      <div class="card-head">
        <h3>{model.name}</h3>
        {is_first && <span class="tag good">start with this one</span>}
      </div>
      <p>{model.about}</p>
      <p class={model.fit.fits ? 'faint' : 'wrong'}>
        {formatBytes(model.bytes)} · {model.fit.fits
          ? `fits with ${formatCount(model.fit.n_ctx)} tokens of context, KV ${model.fit.kv}`
          : `does not fit: ${model.fit.why}`}
      </p>
      <div class="row">
        <button type="button" class={is_first ? 'primary' : ''} disabled={is_busy || !model.fit.fits}
          aria-label={`Pull ${model.name}, ${formatBytes(model.bytes)}`}
          onClick={() => void download(repo, quant, onPulled)}>
          {is_busy ? 'Pulling…' : 'Pull'}
        </button>
      </div>
    </li>
  );
}

export function Recommended({ onPulled }: { onPulled: () => void }) {
  const [models, setModels] = useState<RecommendedModel[]>([]);
  const [problem, setProblem] = useState('');
  const load = () => {
    setProblem('');
    recommendedModels().then(setModels, (error) => setProblem((error as Error).message));
  };
  useEffect(load, []);
  const first = models.find((model) => model.fit.fits)?.name;
  return (
    <section>
      <h2>For this machine</h2>
      {problem && <Problem message={problem} onRetry={load} />}
      <ul class="cards">
        {models.map((model) => (
          <Card key={model.name} model={model} is_first={model.name === first} onPulled={onPulled} />
        ))}
      </ul>
    </section>
  );
}
