// The result of a replay, as text or JSON.
import { escapeControls } from "../recording/escape-controls.ts";
import type { Difference } from "./compare.ts";

/** A request whose response differs or is missing. */
export interface Finding {
  /** Line in the recording. */
  line: number;
  method: string;
  target: string;
  differences: readonly Difference[];
  /** The candidate did not respond: the reason. */
  failure?: string;
}

/** Result of a replay. */
export interface ReplayResult {
  log: string;
  target: string;
  /** Requests that were sent. */
  replayed: number;
  same: number;
  different: number;
  /** Requests without a complete response. */
  failed: number;
  /** Lines that were not replayed, by reason. */
  skipped: Record<string, number>;
  /** Responses whose body could only be compared by status and fields. */
  bodiesNotCompared: number;
  /** Requests that were sent without their redacted credentials. */
  withoutCredentials: number;
  /** Milliseconds of the recorded upstream and of the candidate, to the end of the response. */
  latency: { recorded: Quantiles; replayed: Quantiles };
  /** The first findings. */
  findings: Finding[];
}

/** Quantiles in milliseconds; null without samples. */
export interface Quantiles {
  p50: number | null;
  p99: number | null;
}

/** Formats a result for a terminal. */
export function formatReport(result: ReplayResult): string {
  const { replayed, same, different, failed, skipped, findings, latency } = result;
  const notes = [
    ...Object.entries(skipped).map(([reason, count]) => `skipped: ${count} ${reason}`),
    ...(result.bodiesNotCompared === 0
      ? []
      : [`compared without body: ${result.bodiesNotCompared}`]),
    ...(result.withoutCredentials === 0
      ? []
      : [
          `sent without redacted credentials: ${result.withoutCredentials}; set them with --headers`,
        ]),
  ];
  const hidden = different + failed - findings.length;
  return [
    ...findings.map((finding) => `${formatFinding(finding)}\n`),
    ...(hidden > 0 ? [`… and ${hidden} more\n`] : []),
    `replayed ${replayed} requests of ${result.log} against ${result.target}`,
    `same: ${same}, different: ${different}, failed: ${failed}`,
    `latency p50 ${formatMs(latency.recorded.p50)} → ${formatMs(latency.replayed.p50)}, p99 ${formatMs(latency.recorded.p99)} → ${formatMs(latency.replayed.p99)}`,
    ...notes,
    "",
  ].join("\n");
}

function formatFinding({ line, method, target, differences, failure }: Finding): string {
  return [
    `${method} ${escapeControls(target)}  (line ${line})`,
    ...(failure === undefined ? [] : [`  failed  ${escapeControls(failure)}`]),
    ...differences.map(({ part, name, recorded, replayed }) => {
      const place = name === "" ? "" : `${escapeControls(name)}: `;
      return `  ${part.padEnd(6)}  ${place}${show(recorded)} → ${show(replayed)}`;
    }),
  ].join("\n");
}

function show(value: string | undefined): string {
  return value === undefined ? "(missing)" : escapeControls(value);
}

function formatMs(ms: number | null): string {
  return ms === null ? "-" : `${Math.round(ms * 10) / 10} ms`;
}
