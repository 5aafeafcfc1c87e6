// One message, and what can be done with it.
import { useState } from 'preact/hooks';
import { canGoOn, edit, giveResult, goOn, regenerate, showVersion } from '../../chat/answering.ts';
import type { Versions } from '../../chat/branches.ts';
import type { AnswerStats, Message } from '../../chat/types.ts';
import { CopyButton } from '../../parts/copy_button.tsx';
import { useFocus } from '../../parts/focus.ts';
import { Icon } from '../../parts/icons.tsx';
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
  const area = useFocus<HTMLTextAreaElement>();
  const send = (event: Event) => {
    event.preventDefault();
    if (!text.trim()) return;
    onEnd();
    void edit(conversation_id, message.id, text.trim());
  };
  return (
    <form class="editor" onSubmit={send}>
      <textarea aria-label="Edit the message" rows={3} value={text} ref={area}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') { event.stopPropagation(); onEnd(); }
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(event);
        }} />
      <div class="row">
        <span class="faint">Answered anew; this version stays</span>
        <button type="button" class="quiet" onClick={onEnd}>Cancel</button>
        <button type="submit" class="primary">Send</button>
      </div>
    </form>
  );
}

// Between what was asked or answered here at different times. Another version is another message, with
// buttons of its own: who pressed one goes on there.
function VersionSwitch({ of, conversation_id, message, is_running }: {
  of: Versions | undefined; conversation_id: string; message: Message; is_running: boolean;
}) {
  if (!of) return null;
  const switchTo = (step: 1 | -1) => {
    showVersion(conversation_id, message.id, step);
    requestAnimationFrame(() => {
      const [before, next] = document.querySelectorAll<HTMLButtonElement>(
        `[data-after="${CSS.escape(of.after)}"] .arrow`);
      const [pressed, other] = step > 0 ? [next, before] : [before, next];
      (pressed?.disabled ? other : pressed)?.focus();
    });
  };
  const arrow = (step: 1 | -1, name: string, icon: 'left' | 'right', is_end: boolean) => (
    <button type="button" class="quiet small arrow" aria-label={name} disabled={is_running || is_end}
      onClick={() => switchTo(step)}><Icon name={icon} /></button>
  );
  return (
    <span class="versions" role="group" aria-label="Versions" data-after={of.after}>
      {arrow(-1, 'Version before', 'left', of.shown === 0)}
      <span><span class="hidden">Version </span>{of.shown + 1} / {of.n}</span>
      {arrow(1, 'Next version', 'right', of.shown === of.n - 1)}
    </span>
  );
}

interface Props {
  conversation_id: string;
  message: Message;
  versions: Versions | undefined; // of what is from here on
  results: ReadonlyMap<string, string>; // of tools, by call
  is_last_answer: boolean;
  is_end: boolean; // nothing follows it
  is_running: boolean; // the conversation
}

export function UserMessage({ conversation_id, message, versions, is_running }: Props) {
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
        <VersionSwitch of={versions} conversation_id={conversation_id} message={message}
          is_running={is_running} />
        <CopyButton text={message.content} />
        <button type="button" class="quiet small" disabled={is_running}
          onClick={() => setEdited(true)}>Edit</button>
      </div>
    </article>
  );
}

function Thoughts({ text, is_thinking, is_growing }: {
  text: string; is_thinking: boolean; is_growing: boolean;
}) {
  return (
    <details class="thoughts">
      <summary>{is_thinking ? 'Thinking…' : 'Thoughts'}</summary>
      <RichText text={text} is_growing={is_growing} />
    </details>
  );
}

// JSON that a schema was given for is code.
const textOf = ({ is_json, content }: Message) => (is_json ? `~~~~json\n${content}` : content);

export function Answer(props: Props) {
  const { conversation_id, message, versions, results, is_last_answer, is_end, is_running } = props;
  const is_written = is_running && is_last_answer;
  const is_empty = !message.content && !message.calls && !message.reasoning;
  const version_switch = (
    <VersionSwitch of={versions} conversation_id={conversation_id} message={message}
      is_running={is_running} />
  );
  const retry = () => void regenerate(conversation_id, message.id);
  return (
    <article class="message answer" aria-label="Answer" aria-busy={is_written}>
      {message.reasoning && (
        <Thoughts text={message.reasoning} is_growing={is_written}
          is_thinking={is_written && !message.content} />
      )}
      {message.content && <RichText text={textOf(message)} is_growing={is_written} />}
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
      {message.error && versions && <footer class="actions">{version_switch}</footer>}
      {!is_written && !message.error && (
        <footer class="actions">
          {version_switch}
          {message.content && <CopyButton text={message.content} />}
          {is_end && canGoOn(message) && (
            <button type="button" class="quiet small" disabled={is_running}
              onClick={() => void goOn(conversation_id)}>Continue</button>
          )}
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
