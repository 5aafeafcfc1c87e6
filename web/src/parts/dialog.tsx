// A dialog over the page, closed by Esc, by its button and by a click beside it.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './icons.tsx';

interface Props {
  title: string;
  kind?: 'sheet' | 'box' | 'wide';
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, kind = 'box', onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => element.current?.showModal(), []);
  const onClick = (event: MouseEvent) => {
    if (event.target === element.current) onClose();
  };
  return (
    <dialog ref={element} class={`dialog ${kind}`} aria-labelledby="dialog-title" onClose={onClose}
      onClick={onClick}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id="dialog-title">{title}</h2>
          <button type="button" class="quiet square" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
