// Numbers that steer sampling; an empty field leaves it to what stands behind it.
import { useId } from 'preact/hooks';
import type { Sampling } from '../chat/types.ts';

interface Field {
  name: keyof Sampling;
  label: string;
  min: number;
  max?: number;
  step: number | 'any';
}

const FIELDS: Field[] = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 'any' },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 'any' },
  { name: 'top_k', label: 'Top k', min: 0, step: 1 },
  { name: 'max_tokens', label: 'Most tokens', min: 1, step: 1 },
  { name: 'seed', label: 'Seed', min: 0, step: 1 },
];

interface Props {
  value: Sampling;
  placeholders?: Sampling;
  onChange: (value: Sampling) => void;
}

export function SamplingFields({ value, placeholders, onChange }: Props) {
  const id = useId();
  return (
    <div class="fields">
      {FIELDS.map(({ name, label, ...limits }) => (
        <label key={name} for={`${id}-${name}`}>
          <span>{label}</span>
          <input id={`${id}-${name}`} type="number" inputMode="decimal" {...limits}
            value={value[name]} placeholder={placeholders?.[name] || 'default'}
            onInput={(event) => {
              const input = event.currentTarget;
              if (input.checkValidity()) onChange({ ...value, [name]: input.value });
            }} />
        </label>
      ))}
    </div>
  );
}
