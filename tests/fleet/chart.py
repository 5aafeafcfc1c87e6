"""The picture of the curve: two charts of lines side by side, with the colours of src/bench/report/chart."""

import math

STYLE = """
:root { --card: #fff; --ink: #1c1f23; --soft: #667; --line: #e4e4e0;
  --c0: #1f6feb; --c1: #0f9d6b; --c2: #8b46d6; --c3: #b8860b; --c4: #8a8f98; }
@media (prefers-color-scheme: dark) { :root { --card: #1c1f25; --ink: #e8e8e6; --soft: #9aa0aa; --line: #31353d;
  --c0: #6ea8ff; --c1: #3fcf9b; --c2: #b98af2; --c3: #d9a62e; --c4: #9aa0aa; } }
svg { font-family: system-ui, sans-serif; }
.title { font-size: 15px; font-weight: 600; fill: var(--ink); }
.tick { font-size: 11px; fill: var(--soft); }
.name { font-size: 12px; font-weight: 600; fill: currentColor; }
.grid { stroke: var(--line); }
.line path { fill: none; stroke: currentColor; stroke-width: 2; }
.line circle { fill: currentColor; }
"""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 330, 300, 44, 40, 260, 400


def panel(x0, title, unit, sizes, lines, ticks, scale):
    """ticks: what the axis shows; scale: of a value, from the first tick to the last as 0 to 1."""
    out = [f'<text class="title" x="{x0 + LEFT}" y="20">{title}</text>']

    def across(i):
        return x0 + LEFT + i * (WIDTH - LEFT) / (len(sizes) - 1)

    def down(value):
        return BOTTOM - (BOTTOM - TOP) * scale(value)

    for tick in ticks:
        y = down(tick)
        out.append(f'<line class="grid" x1="{x0 + LEFT}" x2="{x0 + WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
                   f'<text class="tick" x="{x0 + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}{unit}</text>')
    for i, size in enumerate(sizes):
        out.append(f'<text class="tick" x="{across(i):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{size}</text>')
    for series, (name, values) in enumerate(lines.items()):
        path = " ".join(f"{'L' if i else 'M'}{across(i):.1f},{down(value):.1f}" for i, value in enumerate(values))
        dots = "".join(f'<circle cx="{across(i):.1f}" cy="{down(value):.1f}" r="3.5">'
                       f"<title>{name}, {sizes[i]} replicas: {value:.3g}{unit}</title></circle>"
                       for i, value in enumerate(values))
        out.append(f'<g class="line" style="color: var(--c{series})"><path d="{path}"/>{dots}</g>')
    return out


def pair(sizes, left, right):
    names = "".join(f'<text class="name" style="color: var(--c{i})" x="{LEFT + 150 * i}" y="{HEIGHT}">{name}</text>'
                    for i, name in enumerate(left))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {GAP + WIDTH + 20} {HEIGHT + 12}" role="img" '
           f'aria-label="Replicas"><style>{STYLE}</style>', '<rect width="100%" height="100%" fill="var(--card)"/>',
           *panel(0, "Cached share of prompt tokens", " %", sizes, left, range(0, 101, 25), lambda share: share / 100),
           *panel(GAP, "First token, 99 of 100", " s", sizes, right, (1, 10, 100, 1000),
                  lambda seconds: math.log10(seconds) / 3), names, "</svg>"]
    return "\n".join(out) + "\n"
