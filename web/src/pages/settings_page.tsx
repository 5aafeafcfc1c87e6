// Choices of this device, and its data.
import { useState } from 'preact/hooks';
import { forget } from '../chat/attaching.ts';
import { conversations, removeAll } from '../chat/store.ts';
import { SamplingFields } from '../parts/sampling_fields.tsx';
import { type Theme, resetSettings, set, settings } from '../settings.ts';
import { SHORTCUTS } from '../shortcuts.ts';

const THEMES: [Theme, string][] = [['system', 'As the device'], ['light', 'Light'], ['dark', 'Dark']];

function exportAll() {
  const { api_key: _secret, ...choices } = settings.value; // a key in a file is soon in a mail
  const data = { kind: 'slipstream-export', version: 1, settings: choices,
    conversations: conversations.value };
  const url = URL.createObjectURL(
    new Blob([JSON.stringify(data, null, 2)], { type: 'application/json' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `slipstream-${new Date().toISOString().slice(0, 10)}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function ApiKey() {
  const [key, setKey] = useState(settings.value.api_key);
  const is_kept = key === settings.value.api_key;
  return (
    <form class="row end" onSubmit={(event) => { event.preventDefault(); set({ api_key: key.trim() }); }}>
      <label class="stacked grow" for="api-key">
        <span>API key</span>
        <input id="api-key" type="password" autocomplete="off" spellcheck={false} value={key}
          aria-describedby="api-key-about"
          onInput={(event) => setKey(event.currentTarget.value)} />
      </label>
      <button type="submit" class="primary" disabled={is_kept}>{is_kept ? 'Saved' : 'Save'}</button>
    </form>
  );
}

function Data() {
  const [asks, setAsks] = useState(false);
  const [is_done, setDone] = useState(false);
  const n = conversations.value.length;
  const removeEverything = async () => {
    await forget(conversations.value.map(({ id }) => id)); // before the key is gone
    await removeAll();
    resetSettings();
    setAsks(false);
    setDone(true);
  };
  return (
    <section>
      <h2>Data</h2>
      <p class="faint">
        {n === 1 ? 'One chat is' : `${n} chats are`} kept in this browser, and nowhere else.
      </p>
      <div class="row wrap">
        <button type="button" onClick={exportAll}>Export as a file</button>
        {!asks && <button type="button" class="danger" onClick={() => setAsks(true)}>Delete all data</button>}
        {asks && (
          <>
            <span>All chats and settings of this device?</span>
            <button type="button" class="danger" onClick={() => void removeEverything()}>
              Yes, delete
            </button>
            <button type="button" class="quiet" autoFocus onClick={() => setAsks(false)}>Keep</button>
          </>
        )}
      </div>
      <p role="status">{is_done && 'Deleted'}</p>
    </section>
  );
}

export function SettingsPage() {
  const { theme, sampling } = settings.value;
  return (
    <div class="page narrow" tabIndex={0} role="region" aria-label="Settings">
      <h1>Settings</h1>
      <section>
        <h2>Server</h2>
        <ApiKey key={settings.value.api_key} />
        <p id="api-key-about" class="faint">
          Only for a server that was started with --api-key. It is kept in this browser and sent to
          this server alone.
        </p>
      </section>
      <section>
        <h2>Appearance</h2>
        <fieldset class="choices">
          <legend class="hidden">Theme</legend>
          {THEMES.map(([value, label]) => (
            <label key={value}>
              <input type="radio" name="theme" value={value} checked={theme === value}
                onChange={() => set({ theme: value })} />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
      </section>
      <section>
        <h2>Sampling</h2>
        <p class="faint">For chats that have no values of their own. Empty: as the server does.</p>
        <SamplingFields value={sampling} onChange={(value) => set({ sampling: value })} />
      </section>
      <section>
        <h2>Shortcuts</h2>
        <dl class="shortcuts">
          {SHORTCUTS.map(({ keys, does }) => (
            <div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{does}</dd></div>
          ))}
        </dl>
      </section>
      <Data />
    </div>
  );
}
