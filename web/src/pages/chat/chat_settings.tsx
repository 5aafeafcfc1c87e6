// What a conversation is asked with.
import { useId } from 'preact/hooks';
import { toolsError } from '../../chat/request.ts';
import { update } from '../../chat/store.ts';
import { type Conversation, NO_FILES } from '../../chat/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { SamplingFields } from '../../parts/sampling_fields.tsx';
import { settings } from '../../settings.ts';

const EXAMPLE = `[{"type": "function", "function": {
  "name": "weather",
  "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}}}}]`;

export function ChatSettings({ conversation, has_files, onClose }: {
  conversation: Conversation;
  has_files: boolean; // the server has some that it searches
  onClose: () => void;
}) {
  const id = useId();
  const { id: of, system, tools, thinking, sampling, files = NO_FILES } = conversation;
  const error = toolsError(tools);
  return (
    <Dialog title="This chat" kind="sheet" onClose={onClose}>
      <label class="stacked" for={`${id}-system`}>
        <span>System prompt</span>
        <textarea id={`${id}-system`} rows={4} value={system} placeholder="You are …"
          onInput={(event) => update(of, { system: event.currentTarget.value })} />
      </label>
      <label class="stacked" for={`${id}-thinking`}>
        <span>Thinking</span>
        <select id={`${id}-thinking`} value={thinking}
          onChange={(event) =>
            update(of, { thinking: event.currentTarget.value as Conversation['thinking'] })}>
          <option value="">As the model does</option>
          <option value="on">Think first</option>
          <option value="off">Answer at once</option>
        </select>
      </label>
      <fieldset>
        <legend>Sampling</legend>
        <SamplingFields value={sampling} placeholders={settings.value.sampling}
          onChange={(value) => update(of, { sampling: value })} />
      </fieldset>
      {(has_files || files.is_on) && (
        <label class="stacked" for={`${id}-budget`}>
          <span>Tokens of my files, at most</span>
          <input id={`${id}-budget`} type="number" inputMode="numeric" min={1} step={1}
            value={files.budget} placeholder="default" onInput={(event) => {
              const input = event.currentTarget;
              if (input.checkValidity()) {
                void update(of, { files: { ...files, budget: input.value } });
              }
            }} />
        </label>
      )}
      <label class="stacked" for={`${id}-tools`}>
        <span>Tools</span>
        <textarea id={`${id}-tools`} class="mono" rows={8} spellcheck={false} value={tools}
          placeholder={EXAMPLE} aria-invalid={error !== null} aria-describedby={`${id}-about`}
          onInput={(event) => update(of, { tools: event.currentTarget.value })} />
      </label>
      <p id={`${id}-about`} class={error ? 'wrong' : 'faint'} aria-live="polite">
        {error ?? 'JSON as in OpenAI\'s API. When the model calls one, you type what it answers.'}
      </p>
    </Dialog>
  );
}
