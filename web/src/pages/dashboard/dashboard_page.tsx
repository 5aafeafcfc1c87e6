// How the server does, read from /metrics every second while the page is seen.
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiFailure, ask } from '../../api/http.ts';
import { parseMetrics, sum } from '../../api/metrics.ts';
import { Problem } from '../../parts/problem.tsx';
import { settings } from '../../settings.ts';
import { formatBytes, formatCount, formatRate, formatSeconds } from '../../text/numbers.ts';
import { Chart } from './chart.tsx';
import {
  type KvMemory, N_READINGS_MAX, type Reading, gauges, hasExperts, kvMemory, latency, rates,
  shareOf } from './readings.ts';

const POLL_MS = 1000;

function useReadings() {
  const [readings, setReadings] = useState<Reading[]>([]);
  const [problem, setProblem] = useState<ApiFailure | null>(null);
  useEffect(() => {
    let timer = 0;
    let is_over = false;
    const poll = async () => {
      if (!document.hidden) {
        try {
          const samples = parseMetrics(await (await ask('/metrics')).text());
          const reading = { at_s: performance.now() / 1000, samples };
          if (!is_over) setReadings((old) => [...old, reading].slice(-N_READINGS_MAX));
          setProblem(null);
        } catch (error) {
          setProblem(error as ApiFailure);
        }
      }
      if (!is_over) timer = window.setTimeout(poll, POLL_MS);
    };
    void poll();
    return () => { is_over = true; clearTimeout(timer); };
  }, [settings.value.api_key]);
  return { readings, problem };
}

function Tile({ name, value, unit, about, children }: {
  name: string;
  value: string;
  unit?: string;
  about?: string | undefined;
  children?: ComponentChildren;
}) {
  return (
    <section class="tile" aria-label={name}>
      <h2>{name}</h2>
      <p class="figure" data-figure>{value}{unit && <small> {unit}</small>}</p>
      {about && <p class="faint">{about}</p>}
      {children}
    </section>
  );
}

function RateTile({ name, readings, counter, total }: {
  name: string;
  readings: Reading[];
  counter: string;
  total: string;
}) {
  const values = rates(readings, counter);
  const now = values.slice(-3).reduce((a, b) => a + b, 0) / Math.max(1, Math.min(3, values.length));
  const all = sum(readings.at(-1)!.samples, counter);
  return (
    <Tile name={name} value={formatRate(now)} unit="tokens/s" about={`${formatCount(all)} ${total}`}>
      <Chart values={values} n_max={N_READINGS_MAX}
        label={`${name}, last two minutes: now ${formatRate(now)}, ` +
          `most ${formatRate(Math.max(0, ...values))} tokens per second`} />
    </Tile>
  );
}

function LatencyTile({ name, readings, histogram }: {
  name: string;
  readings: Reading[];
  histogram: string;
}) {
  const shown = (share: number) => {
    const seconds = latency(readings, histogram, share);
    return seconds === null ? '–' : formatSeconds(seconds);
  };
  return <Tile name={name} value={shown(0.5)} about={`95 of 100 within ${shown(0.95)}`} />;
}

function Bar({ share, label }: { share: number; label: string }) {
  return (
    <div class="meter" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100}
      aria-valuenow={Math.round(share * 100)}>
      <div style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}

function KvRow({ kv }: { kv: KvMemory }) {
  const { model, scheme, bytes, f16_bytes } = kv;
  if (bytes === 0) return <p class="faint">{model}: {scheme}, of a size that is not known</p>;
  return (
    <div class="kv">
      <p><strong>{model}</strong> <span class="tag">{scheme}</span></p>
      <p class="figure">{formatBytes(bytes)}</p>
      {f16_bytes !== null && (
        <>
          <p class="faint">
            f16 would take {formatBytes(f16_bytes)}: {(f16_bytes / bytes).toFixed(2)} times as much
          </p>
          <Bar share={bytes / f16_bytes} label={`KV memory of ${model} against f16`} />
        </>
      )}
    </div>
  );
}

const percent = (share: number | null) => (share === null ? '–' : `${(share * 100).toFixed(0)} %`);

function Tiles({ readings }: { readings: Reading[] }) {
  const { samples } = readings.at(-1)!;
  const running = gauges(readings, 'vllm:num_requests_running');
  const waiting = sum(samples, 'vllm:num_requests_waiting');
  const usage = sum(samples, 'vllm:kv_cache_usage_perc');
  const hits = sum(samples, 'vllm:prefix_cache_hits_total');
  const reads = rates(readings, 'slipstream:expert_read_bytes_total');
  return (
    <div class="tiles">
      <RateTile name="Generated" readings={readings} counter="vllm:generation_tokens_total"
        total="since the start" />
      <RateTile name="Prompts" readings={readings} counter="vllm:prompt_tokens_total"
        total="computed since the start" />
      <Tile name="Requests" value={String(running.at(-1))} unit="running"
        about={`${waiting} waiting`}>
        <Chart values={running} n_max={N_READINGS_MAX}
          label={`Requests running, last two minutes: now ${running.at(-1)}`} />
      </Tile>
      <LatencyTile name="First token" readings={readings} histogram="vllm:time_to_first_token_seconds" />
      <LatencyTile name="Between tokens" readings={readings}
        histogram="vllm:inter_token_latency_seconds" />
      <LatencyTile name="Whole answer" readings={readings}
        histogram="vllm:e2e_request_latency_seconds" />
      <section class="tile tall" aria-label="KV memory">
        <h2>KV memory</h2>
        {kvMemory(samples).map((kv) => <KvRow key={kv.model} kv={kv} />)}
        {kvMemory(samples).length === 0 && <p class="faint">No model is loaded</p>}
      </section>
      <Tile name="KV in use" value={percent(usage)} about="by requests now; prefixes kept may go">
        <Bar share={usage} label="KV cache in use" />
      </Tile>
      <Tile name="Prefix hits"
        value={percent(shareOf(samples, 'vllm:prefix_cache_hits_total',
          'vllm:prefix_cache_queries_total'))}
        about={`${formatCount(hits)} prompt tokens were not computed again`} />
      {hasExperts(samples) && (
        <Tile name="Expert cache"
          value={percent(shareOf(samples, 'slipstream:expert_hits_total',
            'slipstream:expert_hits_total', 'slipstream:expert_misses_total'))}
          about={`hits; reading ${formatBytes(reads.at(-1) ?? 0)}/s`}>
          <Chart values={reads} n_max={N_READINGS_MAX}
            label={`Experts read, last two minutes: now ${formatBytes(reads.at(-1) ?? 0)} per second`} />
        </Tile>
      )}
    </div>
  );
}

export function DashboardPage() {
  const { readings, problem } = useReadings();
  return (
    <div class="page" tabIndex={0} role="region" aria-label="Dashboard">
      <h1>Dashboard</h1>
      {problem && <Problem message={problem.message} needs_key={problem.status === 401} />}
      {readings.length > 0 && <Tiles readings={readings} />}
    </div>
  );
}
