// Presets: chosen for a chat, made of it, and removed.
import { useId, useState } from 'preact/hooks';
import {
  PRESETS_MAX, PRESET_NAME_CHARS_MAX, isAs, isFull, presetOf, settingsOf, withPreset } from '../../chat/presets.ts';
import { update } from '../../chat/store.ts';
import type { Conversation } from '../../chat/types.ts';
import { useFocus } from '../../parts/focus.ts';
import { set, settings } from '../../settings.ts';

function SavePreset({ conversation, onEnd }: { conversation: Conversation; onEnd: () => void }) {
  const id = useId();
  const input = useFocus<HTMLInputElement>();
  const { presets } = settings.value;
  const [name, setName] = useState('');
  const is_there = presets.some((one) => one.name === name.trim());
  const is_full = isFull(presets, name.trim());
  const save = (event: Event) => {
    event.preventDefault();
    if (!name.trim() || is_full) return;
    set({ presets: withPreset(presets, presetOf(name, conversation)) });
    onEnd();
  };
  return (
    <form class="stacked" onSubmit={save}>
      <label for={id}>Name of the preset</label>
      <div class="row">
        <input id={id} value={name} maxLength={PRESET_NAME_CHARS_MAX} ref={input} placeholder="Translator"
          onInput={(event) => setName(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            event.preventDefault(); // which would close the whole dialog
            onEnd();
          }} />
        <button type="submit" class="primary" disabled={!name.trim() || is_full}>
          {is_there ? 'Replace' : 'Save'}
        </button>
        <button type="button" class="quiet" onClick={onEnd}>Cancel</button>
      </div>
      {is_full && <p class="wrong" role="status">There are {PRESETS_MAX} presets: delete one first</p>}
    </form>
  );
}

export function Presets({ conversation }: { conversation: Conversation }) {
  const id = useId();
  const [is_saving, setSaving] = useState(false);
  const { presets } = settings.value;
  const chosen = presets.find((one) => isAs(one, conversation));
  const choose = (name: string) => {
    const preset = presets.find((one) => one.name === name);
    if (preset) void update(conversation.id, settingsOf(preset));
  };
  const drop = () => set({ presets: presets.filter((one) => one !== chosen) });
  if (is_saving) return <SavePreset conversation={conversation} onEnd={() => setSaving(false)} />;
  return (
    <div class="stacked">
      {presets.length > 0 && <label for={id}>Preset</label>}
      <div class="row">
        {presets.length > 0 && (
          <select id={id} value={chosen?.name ?? ''} onChange={(event) => choose(event.currentTarget.value)}>
            {!chosen && <option value="">None</option>}
            {presets.map(({ name }) => <option key={name} value={name}>{name}</option>)}
          </select>
        )}
        {chosen
          ? <button type="button" class="quiet" aria-label={`Delete the preset ${chosen.name}`} onClick={drop}>Delete</button>
          : <button type="button" onClick={() => setSaving(true)}>Save as a preset</button>}
      </div>
      <p class="faint">System prompt, thinking and sampling under a name</p>
    </div>
  );
}
