// Markdown, with buttons that copy its code.
import { useMemo } from 'preact/hooks';
import { copyText } from '../text/copy.ts';
import { toHtml } from '../text/markdown.ts';

async function onClick(event: MouseEvent) {
  const button = (event.target as Element).closest<HTMLButtonElement>('button[data-copy]');
  if (!button) return;
  const code = button.closest('.code')?.querySelector('code')?.textContent ?? '';
  button.textContent = (await copyText(code)) ? 'Copied' : 'Not allowed';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}

export function RichText({ text }: { text: string }) {
  const html = useMemo(() => ({ __html: toHtml(text) }), [text]);
  return <div class="rich" onClick={onClick} dangerouslySetInnerHTML={html} />;
}
