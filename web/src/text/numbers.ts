// Numbers for people. A number and its unit stay on one line.
const SPACE = '\u00a0';

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return value.toFixed(unit === 0 || value >= 100 ? 0 : 1) + SPACE + units[unit];
}

export function formatCount(n: number): string {
  return n.toLocaleString('en-US', { maximumFractionDigits: 0 });
}

export function formatRate(n: number): string {
  return n >= 100 ? n.toFixed(0) : n.toFixed(1);
}

export function formatSeconds(seconds: number): string {
  if (seconds < 1) return (seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0) + SPACE + 'ms';
  if (seconds < 120) return `${seconds.toFixed(1)}${SPACE}s`;
  return `${Math.round(seconds / 60)}${SPACE}min`;
}
