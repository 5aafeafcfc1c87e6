// Lines of a file of the index, as they are now, with those around them: a page that came over HTTP
// may not open file:// itself.
import { useEffect, useRef, useState } from 'preact/hooks';
import { readAttachedLines } from '../api/attachments.ts';
import { type FileLines, readLines } from '../api/mcp.ts';
import { type FilePlace, lastPart, linesOf } from '../text/places.ts';
import { formatCount } from '../text/numbers.ts';
import { CopyButton } from './copy_button.tsx';
import { Dialog } from './dialog.tsx';
import { Problem } from './problem.tsx';

const N_AROUND = 20; // lines before it and after it

type SomeLines = Omit<FileLines, 'project' | 'path'>;

function Lines({ lines, place }: { lines: SomeLines; place: FilePlace }) {
  const cited = useRef<HTMLDivElement>(null);
  useEffect(() => cited.current?.scrollIntoView({ block: 'center' }), []);
  const texts = lines.text.replace(/\r?\n$/, '').split('\n');
  return (
    <pre class="lines" tabIndex={0} aria-label={`Lines of ${place.path}`}>
      {texts.map((text, idx) => {
        const n = lines.first_line + idx;
        const is_cited = n >= place.first_line && n <= place.last_line;
        return (
          <div key={n} class={is_cited ? 'cited' : undefined}
            ref={n === place.first_line ? cited : null}>
            <span class="number" data-n={n} />
            <code>{text}</code>
          </div>
        );
      })}
    </pre>
  );
}

export function FileDialog({ place, onClose }: { place: FilePlace; onClose: () => void }) {
  const [lines, setLines] = useState<SomeLines | null>(null);
  const [problem, setProblem] = useState('');
  const { path, address, first_line, last_line } = place;
  useEffect(() => {
    const lines = [Math.max(1, first_line - N_AROUND), last_line + N_AROUND] as const;
    (address ? readAttachedLines(address, ...lines) : readLines(path, ...lines))
      .then(setLines, (error) => setProblem((error as Error).message));
  }, []);
  return (
    <Dialog title={`${lastPart(path)}:${linesOf(place)}`} kind="wide" onClose={onClose}>
      <p class="faint mono whole-path">{path}</p>
      {problem && <Problem message={problem} />}
      <div class="file">{lines && <Lines lines={lines} place={place} />}</div>
      <div class="row">
        <p class="faint grow" role="status">
          {lines
            ? `Lines ${formatCount(lines.first_line)} to ${formatCount(lines.last_line)} of ` +
              `${formatCount(lines.n_lines)}, ${address ? 'as it was attached' : 'as the file is now'}` +
              (lines.is_cut ? '; it goes on, but no more is shown at once' : '')
            : !problem && 'Reading…'}
        </p>
        {lines && <CopyButton text={lines.text} />}
      </div>
    </Dialog>
  );
}
