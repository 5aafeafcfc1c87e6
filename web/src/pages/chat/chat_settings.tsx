// What a conversation is asked with.
import { useId } from 'preact/hooks';
import { archiveOf } from '../../chat/archive.ts';
import { schemaError, toolsError } from '../../chat/request.ts';
import { update } from '../../chat/store.ts';
import { type Conversation, NO_FILES, type Thinking, titleOf } from '../../chat/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { saveFile } from '../../parts/save_file.ts';
import { SamplingFields } from '../../parts/sampling_fields.tsx';
import { settings } from '../../settings.ts';
import { Presets } from './presets.tsx';

const EXAMPLE = `[{"type": "function", "function": {
  "name": "weather",
  "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}}}}]`;

const SCHEMA_EXAMPLE = `{"type": "object",
  "properties": {"city": {"type": "string"}},
  "required": ["city"]}`;

const THINKING: [Thinking, string][] = [
  ['', 'As the model does'], ['off', 'Answer at once'], ['minimal', 'A moment'], ['low', 'A little'],
  ['medium', 'Some time'], ['high', 'Much'], ['max', 'As much as it likes'], ['on', 'Think first']];

// A text that is JSON, and why it is none.
function JsonField({ id, label, about, value, error, placeholder, onChange }: {
  id: string; label: string; about: string; value: string; error: string | null; placeholder: string;
  onChange: (value: string) => void;
}) {
  return (
    <>
      <label class="stacked" for={id}>
        <span>{label}</span>
        <textarea id={id} class="mono" rows={6} spellcheck={false} value={value} placeholder={placeholder}
          aria-invalid={error !== null} aria-describedby={`${id}-about`}
          onInput={(event) => onChange(event.currentTarget.value)} />
      </label>
      <p id={`${id}-about`} class={error ? 'wrong' : 'faint'} aria-live="polite">{error ?? about}</p>
    </>
  );
}

export function ChatSettings({ conversation, has_files, onClose }: {
  conversation: Conversation;
  has_files: boolean; // the server has some that it searches
  onClose: () => void;
}) {
  const id = useId();
  const { id: of, system, tools, schema = '', thinking, sampling, files = NO_FILES } = conversation;
  const saveChat = () => saveFile(`${titleOf(conversation).replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 60)}.json`,
    archiveOf([conversation], []));
  return (
    <Dialog title="This chat" kind="sheet" onClose={onClose}>
      <Presets conversation={conversation} />
      <label class="stacked" for={`${id}-system`}>
        <span>System prompt</span>
        <textarea id={`${id}-system`} rows={4} value={system} placeholder="You are …"
          onInput={(event) => update(of, { system: event.currentTarget.value })} />
      </label>
      <label class="stacked" for={`${id}-thinking`}>
        <span>Thinking</span>
        <select id={`${id}-thinking`} value={thinking}
          onChange={(event) =>
            update(of, { thinking: event.currentTarget.value as Thinking })}>
          {THINKING.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
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
      <JsonField id={`${id}-schema`} label="Answers as JSON" value={schema} error={schemaError(schema)}
        about="A JSON schema, which every answer then meets. Empty: answers are text."
        placeholder={SCHEMA_EXAMPLE} onChange={(value) => void update(of, { schema: value })} />
      <JsonField id={`${id}-tools`} label="Tools" value={tools} error={toolsError(tools)}
        about="JSON as in OpenAI's API. When the model calls one, you type what it answers."
        placeholder={EXAMPLE} onChange={(value) => void update(of, { tools: value })} />
      <div class="row"><button type="button" onClick={saveChat}>Export this chat</button></div>
    </Dialog>
  );
}
