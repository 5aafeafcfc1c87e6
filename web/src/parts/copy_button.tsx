import { useEffect, useState } from 'preact/hooks';
import { copyText } from '../text/copy.ts';

export function CopyButton({ text }: { text: string }) {
  const [label, setLabel] = useState('Copy');
  useEffect(() => {
    if (label === 'Copy') return;
    const timer = setTimeout(() => setLabel('Copy'), 1500);
    return () => clearTimeout(timer);
  }, [label]);
  const copy = async () => setLabel((await copyText(text)) ? 'Copied' : 'Not allowed');
  return <button type="button" class="quiet small" onClick={copy}>{label}</button>;
}
