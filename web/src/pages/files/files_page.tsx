// The user's files: folders that the server has an index of, and a search of them.
import { Problem } from '../../parts/problem.tsx';
import { FileSearch } from './file_search.tsx';
import { Folders } from './folders.tsx';
import { useIndex } from './index_state.ts';

function HowToStart() {
  return (
    <section>
      <h2>This server has no index to offer</h2>
      <p>Start it with</p>
      <pre class="command" tabIndex={0} aria-label="Command"><code>slipstream serve --mcp</code></pre>
      <p class="faint">
        and the folders that <code>slipstream index add FOLDER</code> reads can be searched here, in
        chats, and by agents. With <code>--mcp-allow-add</code>, too, folders can be added from this
        page. Whoever may ask this server can then read them.
      </p>
    </section>
  );
}

export function FilesPage() {
  const { state, problem, reload } = useIndex();
  const status = state?.status;
  return (
    <div class="page files" tabIndex={0} role="region" aria-label="Files">
      <h1>Files</h1>
      {problem && (
        <Problem message={problem.message} needs_key={problem.status === 401} onRetry={reload} />
      )}
      {state && !state.tools && <HowToStart />}
      {status && (
        <>
          <FileSearch folders={status.projects} />
          <Folders folders={status.projects} onAdded={reload}
            may_add={state.tools?.includes('add_project') ?? false} />
        </>
      )}
    </div>
  );
}
