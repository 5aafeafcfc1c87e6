// Files of a chat: a button that adds some, and what became of each.
import { useEffect, useRef, useState } from 'preact/hooks';
import { type AttachmentLimits, attachmentLimits } from '../../api/attachments.ts';
import {
  type Pending, compareWithServer, dismiss, pending, removeFile } from '../../chat/attaching.ts';
import type { Attached } from '../../chat/types.ts';
import { Icon } from '../../parts/icons.tsx';
import { settings } from '../../settings.ts';
import { formatCount } from '../../text/numbers.ts';

// null: the server keeps none, and there is no button.
export function useAttachmentLimits() {
  const [limits, setLimits] = useState<AttachmentLimits | null>(null);
  useEffect(() => {
    attachmentLimits().then(setLimits, () => setLimits(null));
  }, [settings.value.api_key]);
  return limits;
}

export function AttachButton({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="quiet small attach" aria-label="Attach files"
        title="Attach files: text, code, PDF, office documents"
        onClick={() => input.current!.click()}><Icon name="clip" /><span>Attach files</span></button>
      <input ref={input} type="file" multiple hidden tabIndex={-1} aria-hidden="true"
        onChange={() => {
          onFiles([...input.current!.files!]);
          input.current!.value = ''; // so that the same file can be chosen again
        }} />
    </>
  );
}

const STATES = { sending: 'sending…', reading: 'reading…', refused: '' };

function Chip({ name, state, is_bad, is_busy, onRemove }: {
  name: string; state: string; is_bad?: boolean; is_busy?: boolean; onRemove: () => void;
}) {
  return (
    <li class={`chip${is_bad ? ' bad' : ''}`} aria-busy={is_busy}>
      <span class="name" title={name}>{name}</span>
      <span class="state">{state}</span>
      <button type="button" class="quiet square" aria-label={`Remove ${name}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </li>
  );
}

export function AttachmentList({ chat, attached }: { chat: string; attached: Attached[] }) {
  useEffect(() => void compareWithServer(chat), [chat]);
  const others = pending.value.get(chat) ?? [];
  if (attached.length + others.length === 0) return null;
  const replaced = new Set(others.filter(({ state }) => state !== 'refused').map(({ name }) => name));
  const stateOf = ({ state, why }: Pending) => (state === 'refused' ? why : STATES[state]);
  return (
    <ul class="chips" aria-label="Attached files" aria-live="polite">
      {attached.filter(({ name }) => !replaced.has(name)).map(({ name, chunks }) => (
        <Chip key={name} name={name} onRemove={() => void removeFile(chat, name)}
          state={chunks === 1 ? '1 chunk' : `${formatCount(chunks)} chunks`} />
      ))}
      {others.map((one) => (
        <Chip key={`${one.name} pending`} name={one.name} state={stateOf(one)}
          is_bad={one.state === 'refused'} is_busy={one.state !== 'refused'}
          onRemove={() => dismiss(chat, one)} />
      ))}
    </ul>
  );
}

// Whether files are held over the page; they are taken when they are dropped.
export function useDrop(onFiles: ((files: File[]) => void) | null) {
  const [is_over, setOver] = useState(false);
  const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
  const handlers = onFiles && {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      const to = event.relatedTarget;
      if (!(to instanceof Node && (event.currentTarget as Node).contains(to))) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      onFiles([...event.dataTransfer!.files]);
    },
  };
  return { is_over, handlers: handlers ?? {} };
}
