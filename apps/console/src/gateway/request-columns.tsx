// Columns that all lists of requests have.
import { formatDate, formatNumber } from "../format/format.ts";
import { HttpStatus } from "../view/http-status.tsx";
import type { Column } from "../view/table.tsx";
import { t } from "../words/words.ts";
import type { LoggedRequest } from "./requests.ts";

/** The columns, by name, in the language in use. */
export function createRequestColumns() {
  return {
    time: {
      title: t("Time"),
      kind: "w-m wide-only",
      render: ({ timestamp }) => <span class="mono i3">{formatDate(timestamp)}</span>,
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
      render: ({ latency_ms: ms }) => `${formatNumber(ms)} ms`,
    },
  } satisfies Record<string, Column<LoggedRequest>>;
}
