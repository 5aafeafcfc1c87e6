// One message, and what can be done with it.
import { useState } from 'preact/hooks';
import { edit, giveResult, regenerate } from '../../chat/answering.ts';
import type { AnswerStats, Message } from '../../chat/types.ts';
import { CopyButton } from '../../parts/copy_button.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RichText } from '../../parts/rich_text.tsx';
import { formatCount, formatRate, formatSeconds } from '../../text/numbers.ts';
import { SourceList } from './source_list.tsx';
import { ToolCard } from './tool_card.tsx';
import { Waiting } from './waiting.tsx';

function Stats({ stats }: { stats: AnswerStats }) {
  const cached = `${formatCount(stats.n_cached)} of ${formatCount(stats.n_prompt)} prompt tokens cached` +
    (stats.n_recomputed ? `, ${formatCount(stats.n_recomputed)} computed again` : '');
  const n_steps = stats.n_generated - (stats.n_accepted ?? 0);
  return (
    <span class="stats">
      <span>{formatCount(stats.n_generated)} tokens</span>
      {stats.tokens_per_s !== null && <span>{formatRate(stats.tokens_per_s)} tokens/s</span>}
      {stats.n_accepted ? <span>{formatRate(stats.n_generated / n_steps)} tokens a step</span> : null}
      <span>{formatSeconds(stats.first_token_s)} to first token</span>
      <span>{cached}</span>
    </span>
  );
}

function Dropped({ n }: { n: number }) {
  const turns = n === 1 ? 'the oldest turn' : `the ${formatCount(n)} oldest turns`;
  return (
    <span class="tag" title="The chat is longer than the model's window. What those turns said comes back when a message asks for it.">
      {`Answered without ${turns}`}
    </span>
  );
}

interface EditorProps {
  message: Message;
  onEnd: () => void;
  conversation_id: string;
}

function Editor({ message, onEnd, conversation_id }: EditorProps) {
  const [text, setText] = useState(message.content);
  const send = (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    onEnd();
    void edit(conversation_id, message.id, text.trim());
  };
  return (
    <form class="editor" onSubmit={send}>
      <textarea aria-label="Edit the message" rows={3} value={text} autoFocus
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') { event.stopPropagation(); onEnd(); }
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(event);
        }} />
      <div class="row">
        <span class="faint">What follows it is answered anew</span>
        <button type="button" class="quiet" onClick={onEnd}>Cancel</button>
        <button type="submit" class="primary">Send</button>
      </div>
    </form>
  );
}

interface Props {
  conversation_id: string;
  message: Message;
  results: ReadonlyMap<string, string>; // of tools, by call
  is_last_answer: boolean;
  is_running: boolean; // the conversation
}

export function UserMessage({ conversation_id, message, is_running }: Props) {
  const [is_edited, setEdited] = useState(false);
  if (is_edited) {
    return (
      <article class="message user" aria-label="You">
        <Editor message={message} onEnd={() => setEdited(false)} conversation_id={conversation_id} />
      </article>
    );
  }
  return (
    <article class="message user" aria-label="You">
      <div class="bubble">{message.content}</div>
      <div class="actions">
        <CopyButton text={message.content} />
        <button type="button" class="quiet small" disabled={is_running}
          onClick={() => setEdited(true)}>Edit</button>
      </div>
    </article>
  );
}

function Thoughts({ text, is_thinking }: { text: string; is_thinking: boolean }) {
  return (
    <details class="thoughts">
      <summary>{is_thinking ? 'Thinking…' : 'Thoughts'}</summary>
      <RichText text={text} />
    </details>
  );
}

export function Answer(props: Props) {
  const { conversation_id, message, results, is_last_answer, is_running } = props;
  const is_written = is_running && is_last_answer;
  const is_empty = !message.content && !message.calls && !message.reasoning;
  const retry = () => void regenerate(conversation_id, message.id);
  return (
    <article class="message answer" aria-label="Answer" aria-busy={is_written}>
      {message.reasoning && (
        <Thoughts text={message.reasoning} is_thinking={is_written && !message.content} />
      )}
      {message.content && <RichText text={message.content} />}
      {message.calls?.map((call) => (
        <ToolCard key={call.id} call={call} result={results.get(call.id)}
          wants_result={is_last_answer && !is_running && !results.has(call.id)}
          onResult={(text) => void giveResult(conversation_id, call.id, text)} />
      ))}
      {message.citations && (
        <SourceList content={message.content} citations={message.citations} />
      )}
      {is_written && is_empty && <Waiting conversation_id={conversation_id} />}
      {message.error &&
        <Problem message={message.error} needs_key={message.needs_key} onRetry={retry} />}
      {!is_written && !message.error && (
        <footer class="actions">
          {message.content && <CopyButton text={message.content} />}
          <button type="button" class="quiet small" disabled={is_running} onClick={retry}>
            Regenerate
          </button>
          {message.note && <span class="tag">{message.note}</span>}
          {message.stats?.n_dropped ? <Dropped n={message.stats.n_dropped} /> : null}
          {message.stats && <Stats stats={message.stats} />}
        </footer>
      )}
    </article>
  );
}
