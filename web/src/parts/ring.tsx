// A share of a whole as a ring.
const RADIUS = 16;
const LENGTH = 2 * Math.PI * RADIUS;

export function Ring({ share, label }: { share: number; label: string }) {
  const percent = Math.round(share * 100);
  return (
    <div class="ring" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100}
      aria-valuenow={percent}>
      <svg viewBox="0 0 40 40" aria-hidden="true">
        <circle class="ring-rest" cx="20" cy="20" r={RADIUS} />
        <circle class="ring-done" cx="20" cy="20" r={RADIUS} transform="rotate(-90 20 20)"
          stroke-dasharray={LENGTH} stroke-dashoffset={LENGTH * (1 - share)} />
      </svg>
      <span aria-hidden="true">{percent}</span>
    </div>
  );
}
