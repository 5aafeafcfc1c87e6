// Where the user writes.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from '../../parts/icons.tsx';

interface Props {
  text: string;
  is_running: boolean;
  is_waiting_for_tool: boolean;
  is_attaching: boolean;
  onText: (text: string) => void;
  onSend: () => void;
  onStop: () => void;
  onPastedFiles: ((files: File[]) => void) | null; // null: they cannot be attached
  above?: ComponentChildren;
  children?: ComponentChildren; // choices for the next message
}

export function Composer(props: Props) {
  const { text, is_running, is_waiting_for_tool, is_attaching, onText, onSend, onStop } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => { // as high as its text, within what the style sheet allows
    const { style } = area.current!;
    style.height = 'auto';
    style.height = `${area.current!.scrollHeight}px`;
  }, [text]);
  const can_send = text.trim() !== '' && !is_running && !is_waiting_for_tool && !is_attaching;
  const onPaste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0 || !props.onPastedFiles) return;
    event.preventDefault();
    props.onPastedFiles(files);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (can_send) onSend();
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); if (can_send) onSend(); }}>
      {props.above}
      <textarea ref={area} id="composer" rows={1} aria-label="Message" value={text}
        placeholder={is_waiting_for_tool ? 'The model waits for its tool' : 'Ask anything'}
        onInput={(event) => onText(event.currentTarget.value)} onKeyDown={onKeyDown}
        onPaste={onPaste} />
      {is_running ? (
        <button type="button" class="primary round" aria-label="Stop" onClick={onStop}>
          <Icon name="stop" />
        </button>
      ) : (
        <button type="submit" class="primary round" aria-label="Send" disabled={!can_send}>
          <Icon name="send" />
        </button>
      )}
      <div class="foot">
        {props.children}
        <p class="hint">
          <kbd>Enter</kbd> sends <kbd>Shift</kbd> <kbd>Enter</kbd> new line <kbd>Esc</kbd> stops
        </p>
      </div>
    </form>
  );
}
