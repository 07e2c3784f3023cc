// The steps of a canary: those it took with their errors, and those that follow by themselves.
import { formatDate, formatDuration, formatMoment, formatNumber } from "../format/format.ts";
import { StateMark, type StateKind } from "../view/state.tsx";
import { t } from "../words/words.ts";
import type { Canary, CanaryStep } from "./routes.ts";

const SECOND_MS = 1_000;

interface Row {
  kind: StateKind;
  /** Epoch ms. */
  at: number;
  text: string;
  note: string;
  isCurrent?: boolean;
}

/** The steps from the oldest that is known to the last one. */
export function CanarySteps({ canary }: { canary: Canary }) {
  const taken = canary.steps.map((step, index) => describeStep(canary, step, index));
  const rows = [...taken, ...describeNext(canary)];
  return (
    <>
      <ol class="canary-steps" aria-label={t("Steps")}>
        {rows.map(({ kind, at, text, note, isCurrent }) => (
          <li key={`${at} ${text}`} aria-current={isCurrent === true ? "step" : undefined}>
            <StateMark kind={kind} />
            <time class="mono" dateTime={new Date(at).toISOString()} title={formatMoment(at)}>
              {formatDate(at)}
            </time>
            <span>{text}</span>
            <span class="mono note">{note}</span>
          </li>
        ))}
      </ol>
      <p class="hint">
        {t("It is rolled back if more than {n} % of its attempts fail.", {
          n: formatPercent(canary.error_rate_max * 100),
        })}
      </p>
    </>
  );
}

function describeStep(canary: Canary, step: CanaryStep, index: number): Row {
  const { at, phase, requests } = step;
  const isCurrent = index === canary.steps.length - 1;
  const n = formatPercent(step.weight);
  const hasFailed = isOver(canary, step);
  const kind = phase === "rolled_back" || hasFailed ? "bad" : phase === "held" ? "warn" : "ok";
  const note =
    requests === 0
      ? t("no requests")
      : t("{n} % errors", { n: formatPercent((step.failures / requests) * 100) });
  return { kind, at, text: describeShare(isCurrent ? phase : "promoting", n), note, isCurrent };
}

function describeShare(phase: CanaryStep["phase"], n: string): string {
  switch (phase) {
    case "held":
      return t("{n} %, held", { n });
    case "rolled_back":
      return t("{n} %, rolled back", { n });
    case "promoted":
      return t("{n} %, promoted", { n });
    case "promoting":
      return `${n} %`;
    default:
      return phase satisfies never;
  }
}

function isOver({ error_rate_max: most }: Canary, { requests, failures }: CanaryStep): boolean {
  return requests > 0 && failures / requests > most;
}

function describeNext({ next, step_points: points, step_seconds: seconds }: Canary): Row[] {
  if (next === undefined) return [];
  const rows: Row[] = [];
  if (next.weight < 100) {
    const every = formatDuration(seconds * SECOND_MS);
    const note = t("+{n} each {every}", { n: formatPercent(points), every });
    rows.push({ kind: "off", at: next.at, text: `${formatPercent(next.weight)} %`, note });
  }
  const left = Math.ceil((100 - next.weight) / points);
  const at = next.at + left * seconds * SECOND_MS;
  rows.push({ kind: "off", at, text: "100 %", note: t("all traffic") });
  return rows;
}

/** Percents with a digit where they have one. */
function formatPercent(percent: number): string {
  return formatNumber(percent, Number.isInteger(percent) ? 0 : 1);
}
