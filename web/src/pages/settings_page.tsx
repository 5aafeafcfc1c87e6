// Choices of this device, and its data.
import { useRef, useState } from 'preact/hooks';
import { forget } from '../chat/attaching.ts';
import { ARCHIVE_LIMITS, archiveOf, readArchive } from '../chat/archive.ts';
import { withPreset } from '../chat/presets.ts';
import { addAll, conversations, removeAll } from '../chat/store.ts';
import { useFocus } from '../parts/focus.ts';
import { SamplingFields } from '../parts/sampling_fields.tsx';
import { saveFile } from '../parts/save_file.ts';
import { type Theme, resetSettings, set, settings } from '../settings.ts';
import { SHORTCUTS } from '../shortcuts.ts';
import { formatBytes } from '../text/numbers.ts';

const THEMES: [Theme, string][] = [['system', 'As the device'], ['light', 'Light'], ['dark', 'Dark']];

// Without the API key and other settings: a key in a file is soon in a mail.
const exportAll = () => saveFile(`slipstream-${new Date().toISOString().slice(0, 10)}.json`,
  archiveOf(conversations.value, settings.value.presets));

const counted = (n: number, one: string, many: string) => (n === 1 ? `1 ${one}` : `${n} ${many}`);

// What came of it, for people.
async function importFrom(file: File): Promise<string> {
  const { file_bytes_max } = ARCHIVE_LIMITS;
  if (file.size > file_bytes_max) throw new Error(`The file is larger than ${formatBytes(file_bytes_max)}`);
  const read = readArchive(await file.text(), conversations.value);
  await addAll(read.conversations);
  set({ presets: read.presets.reduce(withPreset, settings.value.presets) });
  return `Imported ${counted(read.conversations.length, 'chat', 'chats')}` +
    (read.presets.length > 0 ? ` and ${counted(read.presets.length, 'preset', 'presets')}` : '') +
    (read.n_known > 0 ? `; ${counted(read.n_known, 'was', 'were')} here already` : '');
}

function ImportButton({ onEnd }: { onEnd: (what: string, is_problem: boolean) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const read = async () => {
    const file = input.current!.files![0];
    input.current!.value = '';
    if (!file) return;
    await importFrom(file).then((done) => onEnd(done, false), (error) => onEnd((error as Error).message, true));
  };
  return (
    <>
      <button type="button" onClick={() => input.current!.click()}>Import a file</button>
      <input ref={input} type="file" accept="application/json,.json" hidden tabIndex={-1} aria-hidden="true"
        onChange={() => void read()} />
    </>
  );
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

function ConfirmAll({ onYes, onNo }: { onYes: () => void; onNo: () => void }) {
  const keep = useFocus<HTMLButtonElement>();
  return (
    <>
      <span>All chats and settings of this device?</span>
      <button type="button" class="danger" onClick={onYes}>Yes, delete</button>
      <button type="button" class="quiet" ref={keep} onClick={onNo}>Keep</button>
    </>
  );
}

function Data() {
  const [asks, setAsks] = useState(false);
  const [news, setNews] = useState({ text: '', is_problem: false });
  const n = conversations.value.length;
  const removeEverything = async () => {
    await forget(conversations.value.map(({ id }) => id)); // before the key is gone
    await removeAll();
    resetSettings();
    setAsks(false);
    setNews({ text: 'Deleted', is_problem: false });
  };
  return (
    <section>
      <h2>Data</h2>
      <p class="faint">
        {n === 1 ? 'One chat is' : `${n} chats are`} kept in this browser, and nowhere else.
      </p>
      <div class="row wrap">
        <button type="button" onClick={exportAll}>Export as a file</button>
        <ImportButton onEnd={(text, is_problem) => setNews({ text, is_problem })} />
        {!asks && <button type="button" class="danger" onClick={() => setAsks(true)}>Delete all data</button>}
        {asks && (
          <ConfirmAll onYes={() => void removeEverything()} onNo={() => setAsks(false)} />
        )}
      </div>
      <p role="status" class={news.is_problem ? 'wrong' : undefined}>{news.text}</p>
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
      <section>
        <h2>About</h2>
        <p class="faint">
          Part of Slipstream, under the MIT license, with <a href="/licenses.md" target="_blank">work of others</a>.
        </p>
      </section>
    </div>
  );
}
