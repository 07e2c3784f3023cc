// Metric families as Prometheus text, format version 0.0.4.
// https://prometheus.io/docs/instrumenting/exposition_formats/
import type { HistogramSample, LabelPairs, MetricFamily } from "./family.ts";

/** Content-Type of the result of `renderMetrics`. */
export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Renders families as one document: HELP and TYPE once per name, families in order of first occurrence. Families of the
 * same name are merged: equal series of counters and histograms are added, of gauges the last one wins. Samples that
 * contradict an earlier family (another type, other bounds of the same histogram series) are omitted and the name is
 * passed to `onConflict`.
 */
export function renderMetrics(
  families: Iterable<MetricFamily>,
  onConflict: (name: string) => void = () => {},
): string {
  const merged = new Map<string, MergedFamily>();
  for (const family of families) mergeFamily(merged, family, onConflict);
  let text = "";
  for (const [name, family] of merged) {
    if (family.series.size === 0) continue;
    text += `# HELP ${name} ${escapeHelp(family.help)}\n# TYPE ${name} ${family.type}\n`;
    for (const [labels, entry] of family.series) {
      text +=
        typeof entry === "number"
          ? `${name}${labels === "" ? "" : `{${labels}}`} ${formatNumber(entry)}\n`
          : renderHistogram(name, labels, entry);
    }
  }
  return text;
}

/** Renders label pairs with their braces, values escaped; "" without labels. */
function renderLabels(labels: LabelPairs): string {
  let text = "";
  for (const [name, value] of labels) {
    if (text !== "") text += ",";
    text += `${name}="${escapeLabelValue(value)}"`;
  }
  return text;
}

interface MergedHistogram {
  bounds: ArrayLike<number>;
  counts: Float64Array;
  sum: number;
}

interface MergedFamily {
  type: MetricFamily["type"];
  help: string;
  series: Map<string, number | MergedHistogram>;
}

function mergeFamily(
  merged: Map<string, MergedFamily>,
  family: MetricFamily,
  onConflict: (name: string) => void,
): void {
  let into = merged.get(family.name);
  if (into === undefined) {
    into = { type: family.type, help: family.help, series: new Map() };
    merged.set(family.name, into);
  } else if (into.type !== family.type) {
    onConflict(family.name);
    return;
  }
  if (family.type === "histogram") {
    for (const sample of family.samples) {
      if (!mergeHistogram(into, sample)) onConflict(family.name);
    }
    return;
  }
  for (const { labels, value } of family.samples) {
    const key = renderLabels(labels);
    const known = family.type === "counter" ? into.series.get(key) : undefined;
    into.series.set(key, typeof known === "number" ? known + value : value);
  }
}

function mergeHistogram(into: MergedFamily, sample: HistogramSample): boolean {
  const key = renderLabels(sample.labels);
  const known = into.series.get(key);
  if (known === undefined || typeof known === "number") {
    const counts = Float64Array.from(sample.counts);
    into.series.set(key, { bounds: sample.bounds, counts, sum: sample.sum });
    return true;
  }
  for (let i = 0; i < Math.max(known.bounds.length, sample.bounds.length); i += 1) {
    if (known.bounds[i] !== sample.bounds[i]) return false;
  }
  for (let i = 0; i < known.counts.length; i += 1) known.counts[i]! += sample.counts[i] ?? 0;
  known.sum += sample.sum;
  return true;
}

function renderHistogram(name: string, labels: string, histogram: MergedHistogram): string {
  const before = labels === "" ? "" : `${labels},`;
  let text = "";
  let count = 0;
  for (let i = 0; i < histogram.bounds.length; i += 1) {
    count += histogram.counts[i] ?? 0;
    text += `${name}_bucket{${before}le="${formatNumber(histogram.bounds[i]!)}"} ${formatNumber(count)}\n`;
  }
  count += histogram.counts[histogram.bounds.length] ?? 0;
  const braces = labels === "" ? "" : `{${labels}}`;
  text += `${name}_bucket{${before}le="+Inf"} ${formatNumber(count)}\n`;
  text += `${name}_sum${braces} ${formatNumber(histogram.sum)}\n`;
  return `${text}${name}_count${braces} ${formatNumber(count)}\n`;
}

function formatNumber(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value);
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabelValue(text: string): string {
  if (!/["\\\n]/.test(text)) return text;
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
