// Prometheus' text and what is worked out of it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketsOf, difference, parseMetrics, quantile, sum } from '../src/api/metrics.ts';
import { kvMemory, latency, rates, shareOf } from '../src/pages/dashboard/readings.ts';

test('lines with and without labels, escapes, infinities and exponents', () => {
  const text = '# HELP a text\n# TYPE a counter\na 3\n' +
    'vllm:b{model_name="x \\"y\\" \\\\ z",le="+Inf"} 1.5e+06\nc{l=""} +Inf 1700000000\n\n';
  assert.deepEqual(parseMetrics(text), [
    { name: 'a', labels: {}, value: 3 },
    { name: 'vllm:b', labels: { model_name: 'x "y" \\ z', le: '+Inf' }, value: 1_500_000 },
    { name: 'c', labels: { l: '' }, value: Infinity },
  ]);
});

test('what is no line of metrics is refused', () => {
  assert.throws(() => parseMetrics('<html>'), /not a line of metrics/);
});

const histogram = (n: number[]) => parseMetrics(
  ['0.25', '0.5', '1', '+Inf'].map((le, i) => `t_bucket{le="${le}"} ${n[i]}`).join('\n'));

test('quantiles lie within their bucket', () => {
  const buckets = bucketsOf(histogram([0, 10, 20, 20]), 't');
  assert.equal(quantile(0.25, buckets), 0.375);
  assert.equal(quantile(0.5, buckets), 0.5);
  assert.equal(quantile(0.75, buckets), 0.75);
});

test('beyond the last bound there is only the bound, and of nothing there is no quantile', () => {
  assert.equal(quantile(0.99, bucketsOf(histogram([0, 0, 0, 5]), 't')), 1);
  assert.equal(quantile(0.5, bucketsOf(histogram([0, 0, 0, 0]), 't')), null);
  assert.equal(quantile(0.5, new Map()), null);
});

test('latencies are those of the window, not of the whole life of the server', () => {
  const before = { at_s: 100, samples: histogram([100, 100, 100, 100]) };
  const now = { at_s: 110, samples: histogram([100, 100, 110, 110]) };
  assert.equal(latency([before, now], 't', 0.5), 0.75);
  assert.equal(latency([now, { ...now, at_s: 111 }], 't', 0.5)! < 0.25, true);
  const grown = difference(bucketsOf(now.samples, 't'), bucketsOf(before.samples, 't'));
  assert.equal(grown.get(1), 10);
});

test('rates are per second and never below nothing', () => {
  const at = (at_s: number, n: number) => ({ at_s, samples: parseMetrics(`n{m="a"} ${n}\nn{m="b"} 1`) });
  assert.deepEqual(rates([at(0, 0), at(2, 100), at(3, 5)], 'n'), [50, 0]);
  assert.equal(sum(at(0, 4).samples, 'n'), 5);
});

test('KV memory is told against f16 of the same model', () => {
  const samples = parseMetrics('slipstream:kv_cache_bytes{model_name="a",kv_scheme="turbo4"} 100\n' +
    'slipstream:kv_cache_bytes{model_name="b",kv_scheme="f16"} 0\n' +
    'slipstream:kv_cache_f16_bytes{model_name="b"} 0\nslipstream:kv_cache_f16_bytes{model_name="a"} 388');
  assert.deepEqual(kvMemory(samples), [
    { model: 'a', scheme: 'turbo4', bytes: 100, f16_bytes: 388 },
    { model: 'b', scheme: 'f16', bytes: 0, f16_bytes: null },
  ]);
  assert.equal(shareOf(parseMetrics('hits 1\nmisses 3'), 'hits', 'hits', 'misses'), 0.25);
  assert.equal(shareOf([], 'hits', 'hits', 'misses'), null);
});
