// Models on the disk of the server: loaded, unloaded, and removed for good.
import { useState } from 'preact/hooks';
import { type LocalModel, removeModel, setLoaded } from '../api/models.ts';
import { useFocus } from '../parts/focus.ts';
import { Problem } from '../parts/problem.tsx';
import { formatBytes, formatCount } from '../text/numbers.ts';

interface Props {
  model: LocalModel;
  busy: string; // the model that something is done with; empty: none
  onDo: (what: () => Promise<void>) => void;
  onChat: () => void;
}

function Confirm({ model, busy, onYes, onNo }: {
  model: LocalModel; busy: string; onYes: () => void; onNo: () => void;
}) {
  const keep = useFocus<HTMLButtonElement>();
  return (
    <>
      <p>Delete its files from the server's disk? That frees {formatBytes(model.bytes)}.</p>
      <div class="row">
        <button type="button" class="danger" disabled={busy !== ''} onClick={onYes}>
          {busy === model.name ? 'Working…' : 'Yes, delete'}
        </button>
        <button type="button" class="quiet" ref={keep} onClick={onNo}>Keep</button>
      </div>
    </>
  );
}

function Card({ model, busy, onDo, onChat }: Props) {
  const [asks, setAsks] = useState(false);
  const { fit } = model;
  const is_loaded = model.state === 'loaded';
  return (
    <li class="card">
      <div class="card-head">
        <h3>{model.name}</h3>
        <span class={is_loaded ? 'tag good' : 'tag'}>{model.state}</span>
      </div>
      <p class="faint">{[model.quant, formatBytes(model.bytes)].filter(Boolean).join(' · ')}</p>
      <p class={fit.fits ? 'faint' : 'wrong'}>
        {fit.fits
          ? `Fits with ${formatCount(fit.n_ctx)} tokens of context, KV ${fit.kv}`
          : `Does not fit: ${fit.why}`}
      </p>
      <p class="faint path" title={model.path}>{model.path}</p>
      {asks
        ? (
          <Confirm model={model} busy={busy} onNo={() => setAsks(false)}
            onYes={() => { setAsks(false); onDo(() => removeModel(model.name)); }} />
        )
        : (
          <div class="row">
            <button type="button" disabled={busy !== '' || (!fit.fits && !is_loaded)}
              onClick={() => onDo(() => setLoaded(model.name, !is_loaded))}>
              {busy === model.name ? 'Working…' : is_loaded ? 'Unload' : 'Load'}
            </button>
            <button type="button" class="quiet" disabled={!fit.fits} onClick={onChat}>Chat</button>
            {model.removable && (
              <button type="button" class="quiet" disabled={busy !== ''} aria-label={`Delete ${model.name}`}
                onClick={() => setAsks(true)}>Delete</button>
            )}
          </div>
        )}
    </li>
  );
}

export function Installed({ models, onChange, onChat }: {
  models: LocalModel[]; onChange: () => void; onChat: (name: string) => void;
}) {
  const [busy, setBusy] = useState('');
  const [problem, setProblem] = useState('');
  const work = async (name: string, what: () => Promise<void>) => {
    setBusy(name);
    setProblem('');
    await what().catch((error) => setProblem((error as Error).message));
    setBusy('');
    onChange();
  };
  return (
    <>
      {problem && <Problem message={problem} />}
      <ul class="cards">
        {models.map((model) => (
          <Card key={model.name} model={model} busy={busy} onChat={() => onChat(model.name)}
            onDo={(what) => void work(model.name, what)} />
        ))}
      </ul>
      {models.length === 0 && <p class="faint">None yet</p>}
    </>
  );
}
