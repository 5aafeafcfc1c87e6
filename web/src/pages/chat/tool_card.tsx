// A call of the model's, and what the tool answers: typed by the user, who is the tool.
import { useId, useState } from 'preact/hooks';
import type { ToolCall } from '../../chat/types.ts';

// Indented where it is JSON; a model may write something else, and while it writes it is not yet.
function readable(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

interface Props {
  call: ToolCall;
  result: string | undefined;
  wants_result: boolean;
  onResult: (text: string) => void;
}

export function ToolCard({ call, result, wants_result, onResult }: Props) {
  const [text, setText] = useState('');
  const id = useId();
  return (
    <section class="tool" aria-label={`Tool call: ${call.name}`}>
      <header><span class="tag">Tool call</span><code>{call.name}</code></header>
      <pre tabIndex={0} aria-label="Arguments"><code>{readable(call.arguments)}</code></pre>
      {result !== undefined && (
        <>
          <span class="tag">Result</span>
          <pre tabIndex={0} aria-label="Result"><code>{readable(result)}</code></pre>
        </>
      )}
      {wants_result && (
        <form onSubmit={(event) => { event.preventDefault(); onResult(text); }}>
          <label for={id}>What {call.name} answers</label>
          <textarea id={id} rows={2} spellcheck={false} value={text}
            placeholder='{"name": "…"}'
            onInput={(event) => setText(event.currentTarget.value)} />
          <button type="submit" disabled={text.trim() === ''}>Give result</button>
        </form>
      )}
    </section>
  );
}
