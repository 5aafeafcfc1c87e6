// The places in files that an answer was given; each opens its lines.
import { useMemo, useState } from 'preact/hooks';
import type { Citation } from '../../api/chat_stream.ts';
import { type Source, sourcesOf } from '../../chat/sources.ts';
import { FileDialog } from '../../parts/file_dialog.tsx';
import { type FilePlace, placeOf } from '../../text/places.ts';

function Entry({ source, onOpen }: { source: Source; onOpen: (place: FilePlace) => void }) {
  const place = placeOf(source.url);
  return (
    <li>
      {source.number !== null && <span class="faint">[{source.number}]</span>}
      {place
        ? (
          <button type="button" class="link mono" onClick={() => onOpen(place)}>
            {source.title}
          </button>
        )
        : <span>{source.title}</span>}
    </li>
  );
}

export function SourceList({ content, citations }: { content: string; citations: Citation[] }) {
  const [shown, setShown] = useState<FilePlace | null>(null);
  const sources = useMemo(() => sourcesOf(content, citations), [content, citations]);
  const named = sources.filter(({ number }) => number !== null);
  const others = sources.filter(({ number }) => number === null);
  const groups = [
    { title: 'Sources', of: named },
    { title: named.length > 0 ? 'Also found' : 'Found in your files', of: others },
  ];
  return (
    <section class="sources" aria-label="Sources">
      {groups.filter(({ of }) => of.length > 0).map(({ title, of }) => (
        <div key={title}>
          <h3>{title}</h3>
          <ul>
            {of.map((source) => <Entry key={source.url} source={source} onOpen={setShown} />)}
          </ul>
        </div>
      ))}
      {shown && <FileDialog place={shown} onClose={() => setShown(null)} />}
    </section>
  );
}
