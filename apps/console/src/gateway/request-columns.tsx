// Columns that all lists of requests have.
import { formatDate, formatDuration, formatNumber } from "../format/format.ts";
import { HttpStatus } from "../view/http-status.tsx";
import type { Column } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { endMsOf, type LoggedRequest } from "./requests.ts";

/** The time of a request; of streams and WebSockets the time for which they were open, which says nothing about their target. */
export function formatLatency({ latency_ms: ms, stream }: LoggedRequest): string {
  return stream ? t("open for {time}", { time: formatOpen(ms) }) : `${formatNumber(ms)} ms`;
}

// `6.7 s`, `12 min`.
function formatOpen(ms: number): string {
  return ms < 60_000 ? `${formatNumber(ms / 1_000, 1)}\u00A0s` : formatDuration(ms);
}

/** The columns, by name, in the language in use. */
export function createRequestColumns() {
  return {
    time: {
      title: t("Ended"),
      kind: "w-m wide-only",
      render: (request) => (
        <span class="mono i3">{formatDate(new Date(endMsOf(request)).toISOString())}</span>
      ),
    },
    status: {
      title: t("Status"),
      kind: "w-xs mono",
      render: ({ status }) => <HttpStatus status={status} />,
    },
    path: {
      title: t("Path"),
      kind: "mono",
      render: ({ method, path }) => `${method} ${path}`,
    },
    latency: {
      title: t("Latency"),
      kind: "w-s",
      isNumber: true,
      render: (request) => formatLatency(request),
    },
  } satisfies Record<string, Column<LoggedRequest>>;
}
