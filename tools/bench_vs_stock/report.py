"""From samples to a table, and to a verdict."""

import statistics

from bench_vs_stock.arms import BASE

WORKLOADS = ("decode", "prefill", "batch")


def depth_name(depth: int) -> str:
    return f"{depth // 1024}k" if depth and depth % 1024 == 0 else str(depth)


def parse_depth(text) -> int:
    text = str(text).lower()
    return int(text[:-1]) * 1024 if text.endswith("k") else int(text)


def summarize(runs: list[dict]) -> list[dict]:
    """One cell per workload and depth; in it, per arm, the speeds and their ratio to f16's."""
    cells = {}
    for run in runs:
        for workload, speeds in run["speeds"].items():
            repeats = cells.setdefault((workload, run["depth"]), {}).setdefault(run["arm"], {})
            repeats.setdefault(run["repeat"], []).extend(speeds)
    return [{"workload": workload, "depth": depth,
             "arms": {arm: summarize_arm(repeats, arms.get(BASE, {}))
                      for arm, repeats in arms.items()}}
            for (workload, depth), arms in sorted(
                cells.items(), key=lambda cell: (WORKLOADS.index(cell[0][0]), cell[0][1]))]


def summarize_arm(repeats: dict[int, list[float]], base: dict[int, list[float]]) -> dict:
    speeds = [speed for samples in repeats.values() for speed in samples]
    base_speeds = [speed for samples in base.values() for speed in samples]
    median = statistics.median(speeds)
    return {"median": median, "min": min(speeds), "max": max(speeds), "n": len(speeds),
            "ratio": median / statistics.median(base_speeds) if base_speeds else None,
            # Each against f16 of the same repeat: how steady the ratio is.
            "repeat_ratios": [statistics.median(samples) / statistics.median(base[i])
                             for i, samples in repeats.items() if i in base],
            "overlaps": bool(base_speeds) and len(speeds) > 1
                        and min(speeds) <= max(base_speeds) and min(base_speeds) <= max(speeds)}


def cell_text(arm: str, figures: dict | None) -> str:
    if figures is None:
        return "-"
    text = f"{figures['median']:.4g} ({figures['min']:.4g}..{figures['max']:.4g})"
    if arm == BASE or figures["ratio"] is None:
        return text
    mark = " LOSS" if round(figures["ratio"], 2) < 1 else ""
    return f"{figures['ratio']:.2f}x{mark}{' ~' if figures['overlaps'] else ''}  {text}"


def table(cells: list[dict], arms: list[str]) -> str:
    rows = [["workload", "depth", *arms]]
    rows += [[cell["workload"], depth_name(cell["depth"]),
              *(cell_text(arm, cell["arms"].get(arm)) for arm in arms)] for cell in cells]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join(word.ljust(width) for word, width in zip(row, widths)) + " |"
             for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def notes(found: dict) -> list[str]:
    """What stands under the table."""
    setup, machine = found["setup"], found["machine"]
    sizes = sorted({figures["n"] for cell in found["cells"] for figures in cell["arms"].values()})
    shares = [run["cores"] / setup["n_threads"] for run in found["runs"]]
    lines = [f"Tokens per second: median (min..max) of {'-'.join(map(str, sizes))}; x: times f16.",
             f"llama.cpp {found['llama_cpp']['build']}, {found['model']['type']}, "
             f"{setup['n_threads']} of {machine['n_cpus']} CPUs ({machine['cpu']})"]
    if setup["n_prefill_threads"] == setup["n_threads"]:
        lines.append(f"CPU share: {statistics.median(shares):.0%} of the threads asked for "
                     f"({min(shares):.0%}..{max(shares):.0%}), start of each process included")
    if sizes[0] < 3:
        lines.append("NOTE fewer than 3 samples: not to be quoted")
    for name, arm in found["arms"].items():
        lines += [f"NOTE {name}: {line}" for line in arm["said"] if "uncompressed" in line]
    return lines


def faults(cells: list[dict], bounds: list[dict]) -> list[str]:
    """One line per bound that a ratio fell below."""
    measured = {(cell["workload"], cell["depth"], arm): figures["ratio"]
                for cell in cells for arm, figures in cell["arms"].items()}
    lines = []
    for bound in bounds:
        workload, depth, arm = bound["workload"], parse_depth(bound["depth"]), bound["arm"]
        ratio = measured.get((workload, depth, arm))
        if ratio is None:
            lines.append(f"FAILED {workload} at {depth_name(depth)}, {arm}: not measured")
        elif ratio < bound["min_ratio"]:
            lines.append(f"FAILED {workload} at {depth_name(depth)}, {arm}: {ratio:.3f} of f16's "
                         f"speed, at least {bound['min_ratio']} is wanted")
    return lines
