// A search of the folders, and the places that it finds.
import { useMemo, useState } from 'preact/hooks';
import { type Folder, type Place, type Places, searchFiles } from '../../api/mcp.ts';
import { FileDialog } from '../../parts/file_dialog.tsx';
import { Problem } from '../../parts/problem.tsx';
import { type FilePlace, lastPart, linesOf, marked, wordsOf } from '../../text/places.ts';

function Found({ place, shows_folder, onOpen }: {
  place: Place;
  shows_folder: boolean;
  onOpen: () => void;
}) {
  const parts = useMemo(() => marked(place.text, wordsOf(place.why)), [place]);
  return (
    <li class="place">
      <div class="place-head">
        <h3>
          <button type="button" class="link mono" onClick={onOpen}>
            {place.path}:{linesOf(place)}
          </button>
        </h3>
        {shows_folder && <span class="tag">{lastPart(place.project)}</span>}
      </div>
      <p class="faint">{place.why}{place.is_cut && '; only the beginning is shown'}</p>
      <pre tabIndex={0} aria-label={`Text of ${place.path}`}>
        <code>
          {parts.map((part, idx) => (part.is_found ? <mark key={idx}>{part.text}</mark> : part.text))}
        </code>
      </pre>
    </li>
  );
}

function summaryOf({ places, index }: Places): string {
  const n = places.length;
  const freshness = index.is_fresh
    ? 'The index is fresh.'
    : `The index is not fresh: ${index.note} What is new may be missing.`;
  if (n > 0) return `${n} ${n === 1 ? 'place' : 'places'}. ${freshness}`;
  return 'Nothing in these files answers this. Try other words, or names as the code has them. ' +
    freshness;
}

export function FileSearch({ folders }: { folders: Folder[] }) {
  const [query, setQuery] = useState('');
  const [project, setProject] = useState('');
  const [found, setFound] = useState<Places | null>(null);
  const [problem, setProblem] = useState('');
  const [is_busy, setBusy] = useState(false);
  const [shown, setShown] = useState<FilePlace | null>(null);
  const search = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem('');
    try {
      setFound(await searchFiles(query.trim(), project));
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  const is_empty = folders.length === 0;
  const open = ({ project: root, path, first_line, last_line }: Place) =>
    setShown({ path: `${root}/${path}`, first_line, last_line });
  return (
    <section>
      <h2 class="hidden">Search</h2>
      <form class="file-search" role="search" onSubmit={search}>
        <input type="search" aria-label="Search your files" value={query} disabled={is_empty}
          placeholder={is_empty ? 'Add a folder first' : 'Words, a name, or a question'}
          onInput={(event) => setQuery(event.currentTarget.value)} />
        <select aria-label="Folder to search" value={project} disabled={is_empty}
          onChange={(event) => setProject(event.currentTarget.value)}>
          <option value="">All folders</option>
          {folders.map((one) => (
            <option key={one.project} value={one.project}>{lastPart(one.project)}</option>
          ))}
        </select>
        <button type="submit" class="primary" disabled={!query.trim() || is_busy || is_empty}>
          {is_busy ? 'Searching…' : 'Search'}
        </button>
      </form>
      {problem && <Problem message={problem} />}
      <p class="faint" role="status">{found && !problem && summaryOf(found)}</p>
      {found && found.places.length > 0 && (
        <ol class="places" aria-label="Places">
          {found.places.map((place) => (
            <Found key={`${place.project}/${place.path}:${place.first_line}`} place={place}
              shows_folder={folders.length > 1} onOpen={() => open(place)} />
          ))}
        </ol>
      )}
      {shown && <FileDialog place={shown} onClose={() => setShown(null)} />}
    </section>
  );
}
