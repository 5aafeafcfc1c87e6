// Markdown, with buttons that copy its code.
import { useLayoutEffect, useRef } from 'preact/hooks';
import { copyText } from '../text/copy.ts';
import { RichView } from '../text/rich_view.ts';

async function onClick(event: MouseEvent) {
  const button = (event.target as Element).closest<HTMLButtonElement>('button[data-copy]');
  if (!button) return;
  const code = button.closest('.code')?.querySelector('code')?.textContent ?? '';
  button.textContent = (await copyText(code)) ? 'Copied' : 'Not allowed';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

// is_growing: more of the text is to come.
export function RichText({ text, is_growing = false }: { text: string; is_growing?: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  const view = useRef<RichView>(null);
  useLayoutEffect(() => {
    view.current ??= new RichView(root.current!);
    view.current.show(text, is_growing);
  }, [text, is_growing]);
  return <div ref={root} class="rich" onClick={onClick} />;
}
