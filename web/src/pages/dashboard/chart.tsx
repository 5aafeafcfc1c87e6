// A line over time, as small as a word.
const WIDTH = 240;
const HEIGHT = 56;

interface Props {
  values: number[];
  n_max: number; // of values; fewer stand at the right
  label: string;
}

export function Chart({ values, n_max, label }: Props) {
  const top = Math.max(...values, 1e-9);
  const x = (i: number) => WIDTH - ((values.length - 1 - i) * WIDTH) / (n_max - 1);
  const y = (value: number) => HEIGHT - 3 - (value / top) * (HEIGHT - 8);
  const points = values.map((value, i) => `${x(i).toFixed(1)} ${y(value).toFixed(1)}`);
  const line = points.length > 1 ? `M${points.join('L')}` : '';
  const area = line && `${line}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z`;
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img"
      aria-label={label}>
      <path class="chart-area" d={area} />
      <path class="chart-line" d={line} />
    </svg>
  );
}
