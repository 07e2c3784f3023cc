// The spans of a trace at their places in time.
import "./runtime.css";
import { formatDuration } from "../format/format.ts";
import { describeServices } from "../session/service-labels.ts";
import { services } from "../session/session.ts";
import { Section } from "../view/controls.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import type { PlacedSpan } from "./trace.ts";

/** Depth from which spans are no longer indented. */
const INDENT_MAX = 6;
const HUES = new Set(["gate", "auth", "vault", "pulse", "notify", "tunnel", "runtime"]);

/** The spans of a trace as a table with bars. Without `onSelect` they cannot be selected. */
export function Waterfall(props: {
  spans: readonly PlacedSpan[];
  durationMs: number;
  chosen?: string | undefined;
  onSelect?: (spanId: string) => void;
  /** True in a pane. */
  isCompact?: boolean;
}) {
  const { spans, durationMs, chosen, onSelect } = props;
  return (
    <Section title={t("Spans")} note={formatDuration(durationMs)}>
      <Table
        label={t("Spans")}
        rows={spans}
        idOf={({ span }) => span.span_id}
        selected={chosen}
        {...(onSelect === undefined
          ? {}
          : { onSelect: ({ span }: PlacedSpan) => onSelect(span.span_id) })}
        columns={[
          {
            title: t("Service"),
            kind: "w-m",
            render: ({ span }) => (
              <State kind={span.status === "error" ? "bad" : "ok"}>{labelOf(span.service)}</State>
            ),
          },
          {
            title: t("Operation"),
            kind: "mono",
            render: ({ span, depth }) => (
              <span class={`span-name indent-${Math.min(depth, INDENT_MAX)}`} title={span.name}>
                {span.name}
              </span>
            ),
          },
          {
            title: t("Time"),
            kind: props.isCompact === true ? "w-m" : "w-xl wide-only",
            render: (one) => <Bar of={one} />,
          },
          {
            title: t("Duration"),
            kind: "w-s",
            isNumber: true,
            render: ({ span }) => formatMs(span.duration_ms),
          },
        ]}
      />
    </Section>
  );
}

/** The place of a span in the time of the trace. */
function Bar({ of: { span, from, width } }: { of: PlacedSpan }) {
  const hue = HUES.has(span.service) ? span.service : "other";
  const kind = span.status === "error" ? "hue-bad" : `hue-${hue}`;
  return (
    <svg class={`span-bar hue ${kind}`} width="100%" height="14" aria-hidden="true">
      <rect
        x={`${from * 100}%`}
        y="3"
        width={`${Math.max(width * 100, 0.5)}%`}
        height="8"
        rx="1.5"
      />
    </svg>
  );
}

/** A duration of a span: `3.2 ms`. */
export function formatMs(ms: number): string {
  return ms >= 1_000 ? formatDuration(ms) : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** Name of a service, or of a project. */
export function labelOf(service: string): string {
  return describeServices(services.value).find(({ id }) => id === service)?.label ?? service;
}
