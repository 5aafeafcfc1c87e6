// Models that the server answers with, and, where it can, those on its disk and on the hub.
import { useEffect, useState } from 'preact/hooks';
import type { ApiFailure } from '../api/http.ts';
import {
  type LocalModel, type ServedModel, localModels, servedModels } from '../api/models.ts';
import { Problem } from '../parts/problem.tsx';
import { go } from '../place.ts';
import { set, settings } from '../settings.ts';
import { formatCount } from '../text/numbers.ts';
import { Downloads } from './downloads.tsx';
import { Hub } from './hub_search.tsx';
import { Installed } from './installed.tsx';
import { Recommended } from './recommended.tsx';

function ask(model: string) {
  set({ model });
  go('chat');
}

function Served({ models }: { models: ServedModel[] }) {
  return (
    <ul class="cards">
      {models.map((model) => (
        <li key={model.id} class="card">
          <div class="card-head">
            <h3>{model.id}</h3>
            <span class={model.loaded ? 'tag good' : 'tag'}>
              {model.loaded ? 'loaded' : 'loads when asked'}
            </span>
          </div>
          <p class="faint">
            {model.max_model_len
              ? `Context of ${formatCount(model.max_model_len)} tokens`
              : 'Its context is known when it is loaded'}
          </p>
          <div class="row"><button type="button" onClick={() => ask(model.id)}>Chat</button></div>
        </li>
      ))}
    </ul>
  );
}

export function ModelsPage() {
  const [served, setServed] = useState<ServedModel[] | null>(null);
  const [local, setLocal] = useState<LocalModel[] | null>(null);
  const [problem, setProblem] = useState<ApiFailure | null>(null);
  const load = async () => {
    try {
      setServed(await servedModels());
      setLocal(await localModels());
      setProblem(null);
    } catch (error) {
      setProblem(error as ApiFailure);
    }
  };
  useEffect(() => void load(), [settings.value.api_key]);
  const is_first_time = served?.length === 0 && local?.length === 0;
  return (
    <div class="page" tabIndex={0} role="region" aria-label="Models">
      <h1>Models</h1>
      {problem && (
        <Problem message={problem.message} needs_key={problem.status === 401}
          onRetry={() => void load()} />
      )}
      {is_first_time && (
        <p>There is no model yet. Pull one: it stays on this machine, and chats never leave it.</p>
      )}
      <Downloads />
      {is_first_time && <Recommended onPulled={() => void load()} />}
      {served && !is_first_time && (
        <section>
          <h2>{local ? 'Served' : 'On this server'}</h2>
          <Served models={served} />
        </section>
      )}
      {local && !is_first_time && (
        <section>
          <h2>Installed</h2>
          <Installed models={local} onChat={ask} onChange={() => void load()} />
        </section>
      )}
      {served && <Hub onPulled={() => void load()} />}
    </div>
  );
}
