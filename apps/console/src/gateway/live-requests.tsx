// Requests of a route as they come: a sample that somebody can read.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { formatNumber, formatTime } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { withQuery } from "../api/api.ts";
import { Section } from "../view/controls.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { createRequestColumns } from "./request-columns.tsx";
import { useRequestStream, useSample } from "./request-stream.ts";
import { idOf, labelOf, logPath, type LoggedRequest } from "./requests.ts";
import type { Route } from "./routes.ts";

const SHOWN = 8;

/** The newest requests; a row leads to the request in the log. */
export function LiveRequests({ route }: { route: Route }) {
  const label = labelOf(route);
  const { status, path, latency } = createRequestColumns();
  const shown = useSignal<readonly LoggedRequest[]>([]);
  const sample = useSample(shown);
  const { rows } = useRequestStream({ route: label, sample }, false);
  useEffect(
    () =>
      rows.subscribe((list) => {
        // Another sample begins with what is shown.
        if (list.length > 0) shown.value = list.slice(0, SHOWN * 10);
      }),
    [],
  );
  return (
    <Section
      title={t("Requests as they come")}
      note={
        sample === 1 ? t("newest first") : t("1 in {n}, newest first", { n: formatNumber(sample) })
      }
      action={<a href={href(logPath(route))}>{t("Open the log")}</a>}
    >
      {shown.value.length === 0 ? (
        <p class="i2">{t("No request since this page was opened")}</p>
      ) : (
        <Table
          label={t("Requests as they come")}
          rows={shown.value.slice(0, SHOWN)}
          idOf={idOf}
          onSelect={(one) => navigate(withQuery("/gateway/log", { route: label, sel: idOf(one) }))}
          columns={[
            {
              title: t("Time"),
              kind: "w-m mono wide-only",
              render: ({ timestamp }) => <span class="i3">{formatTime(timestamp, true)}</span>,
            },
            status,
            path,
            latency,
            {
              title: t("Target"),
              kind: "mono w-l wide-only",
              render: ({ upstream }) => <span class="i2">{upstream}</span>,
            },
          ]}
        />
      )}
    </Section>
  );
}
