// How much of the model's context the conversation takes, as its last answer has told.
import type { ServedModel } from '../../api/models.ts';
import { reading } from '../../chat/answering.ts';
import type { Conversation } from '../../chat/types.ts';
import { formatCount } from '../../text/numbers.ts';

const NEARLY_FULL = 0.85;

// null: nothing is known yet.
export function tokensOf({ messages }: Conversation): number | null {
  const stats = messages.findLast((message) => message.stats)?.stats;
  return stats ? stats.n_prompt + stats.n_generated : null;
}

export function ContextMeter({ conversation, model }: {
  conversation: Conversation; model: ServedModel | undefined;
}) {
  const n_max = model?.max_model_len;
  const n = reading.value.get(conversation.id)?.n_prompt ?? tokensOf(conversation);
  if (!n_max || n === null) return null;
  const share = Math.min(1, n / n_max);
  const is_nearly_full = share > NEARLY_FULL;
  const text = `${formatCount(n)} of ${formatCount(n_max)} tokens of the context` +
    (is_nearly_full ? ': it is nearly full' : '');
  return (
    <div class={is_nearly_full ? 'context full' : 'context'} title={text}>
      <div class="meter" role="meter" aria-label="Context" aria-valuemin={0} aria-valuemax={n_max}
        aria-valuenow={Math.min(n, n_max)} aria-valuetext={text}>
        <div style={{ width: `${100 * share}%` }} />
      </div>
      <span aria-hidden="true">{formatCount(n)} / {formatCount(n_max)}</span>
    </div>
  );
}
