// What is shown until an answer begins: how much of a long prompt is read, or that it is waited for.
import { reading } from '../../chat/answering.ts';
import { formatCount } from '../../text/numbers.ts';

const percent = (n: number, of: number) => (of > 0 ? (100 * n) / of : 0);

export function Waiting({ conversation_id }: { conversation_id: string }) {
  const progress = reading.value.get(conversation_id);
  if (!progress) return <div class="waiting" aria-hidden="true"><i /><i /><i /></div>;
  const { n_prompt, n_cached, n_done } = progress;
  const text = `Reading the prompt: ${formatCount(n_done)} of ${formatCount(n_prompt)} tokens` +
    (n_cached > 0 ? `, ${formatCount(n_cached)} cached` : '');
  return (
    <div class="reading">
      <div class="meter" role="progressbar" aria-label="Prompt" aria-valuemin={0}
        aria-valuemax={n_prompt} aria-valuenow={n_done} aria-valuetext={text}>
        <div class="cached" style={{ width: `${percent(n_cached, n_prompt)}%` }} />
        <div style={{ width: `${percent(n_done - n_cached, n_prompt)}%` }} />
      </div>
      <p class="faint">{text}</p>
    </div>
  );
}
