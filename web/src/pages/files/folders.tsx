// The folders of the index: how far each has been read, and a field to add one.
import { useState } from 'preact/hooks';
import { type FolderStatus, addFolder } from '../../api/mcp.ts';
import { Problem } from '../../parts/problem.tsx';
import { formatBytes, formatCount } from '../../text/numbers.ts';
import { lastPart } from '../../text/places.ts';

const TAGS: Partial<Record<FolderStatus['state'], string>> = {
  complete: 'tag good', problem: 'tag bad' };

function tagOf({ state, percent_done }: FolderStatus): string {
  if (state === 'complete') return 'up to date';
  return state === 'being read' ? `${percent_done ?? 0} % read` : state;
}

function refusedOf(refused: Record<string, number>): string {
  return Object.entries(refused).map(([reason, n]) =>
    `${formatCount(n)} ${reason === 'by name' ? 'by name (keys, passwords)' : reason}`).join(', ');
}

function FolderCard({ folder }: { folder: FolderStatus }) {
  const { project, state, problem, percent_done = 0, files, bytes } = folder;
  const refused = refusedOf(folder.refused);
  return (
    <li class="card folder">
      <div class="card-head">
        <h3>{lastPart(project)}</h3>
        <span class={TAGS[state] ?? 'tag'}>{tagOf(folder)}</span>
      </div>
      <p class="faint whole-path mono">{project}</p>
      <p class="faint">
        {formatCount(files)} {files === 1 ? 'file' : 'files'}, {formatBytes(bytes)} of text
      </p>
      {refused && <p class="faint">Not read: {refused}</p>}
      {problem && <p class="wrong">{problem}</p>}
      {/* Always there, so that the card keeps its height. */}
      <div class={state === 'being read' ? 'meter' : 'meter idle'} role="progressbar"
        aria-label={`Reading ${lastPart(project)}`} aria-hidden={state !== 'being read'}
        aria-valuemin={0} aria-valuemax={100} aria-valuenow={percent_done}>
        <div style={{ width: `${percent_done}%` }} />
      </div>
    </li>
  );
}

function AddFolder({ onAdded }: { onAdded: () => void }) {
  const [folder, setFolder] = useState('');
  const [problem, setProblem] = useState('');
  const [added, setAdded] = useState('');
  const [is_busy, setBusy] = useState(false);
  const add = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    setAdded('');
    try {
      setAdded((await addFolder(folder.trim())).project);
      setFolder('');
      onAdded();
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <>
      <form class="row end" onSubmit={add}>
        <label class="stacked grow" for="folder">
          <span>Add a folder</span>
          <input id="folder" autocomplete="off" autocapitalize="off" spellcheck={false}
            placeholder="/home/ann/project" value={folder} aria-describedby="folder-about"
            onInput={(event) => setFolder(event.currentTarget.value)} />
        </label>
        <button type="submit" class="primary" disabled={!folder.trim() || is_busy}>
          {is_busy ? 'Adding…' : 'Add'}
        </button>
      </form>
      {problem && <Problem message={problem} />}
      <p id="folder-about" class="faint" role="status">
        {added
          ? `${added} was added. It can be searched while it is read.`
          : 'Its whole path on the machine of the server. Files of secrets, and what .gitignore ' +
            'leaves out, are not read.'}
      </p>
    </>
  );
}

interface Props {
  folders: FolderStatus[];
  may_add: boolean;
  onAdded: () => void;
}

export function Folders({ folders, may_add, onAdded }: Props) {
  return (
    <section>
      <h2>Folders</h2>
      {folders.length === 0 && <p class="faint">None yet</p>}
      <ul class="cards" aria-label="Folders">
        {folders.map((folder) => <FolderCard key={folder.project} folder={folder} />)}
      </ul>
      {may_add
        ? <AddFolder onAdded={onAdded} />
        : (
          <p class="faint">
            Add one with <code>slipstream index add FOLDER</code> on the server's machine. From this
            page it works if the server is started with <code>--mcp-allow-add</code>, too.
          </p>
        )}
    </section>
  );
}
