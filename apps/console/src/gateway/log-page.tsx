// The latest requests of routes with an access log: filters, and the chosen request.
import { useRef } from "preact/hooks";
import { formatDate, formatMoment, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCrumbs } from "../stage/stage.ts";
import { FactRow, Facts, FilterField, Section, Segments } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { HttpStatus } from "../view/http-status.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { idOf, labelOf, type LoggedRequest, loadRequests, type RequestPage } from "./requests.ts";
import { loadRoutes } from "./routes.ts";

const EVERY_MS = 1_500;
const PAGE = 100;
const CLASSES = ["all", "2xx", "4xx", "5xx"] as const;

/** The page. */
export function LogPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Log") }]);
  const route = queryValue("route");
  const q = queryValue("filter");
  const cursor = queryValue("cursor");
  const status = CLASSES.find((one) => one === queryValue("status")) ?? "all";
  const routes = useLoad("routes", loadRoutes);
  const shown = useRef<{ key: string; page: RequestPage } | undefined>(undefined);
  const key = JSON.stringify([route, status, q, cursor]);
  const loaded = useLoad(
    key,
    async () => {
      // Rows must not move away under a reader.
      const last = shown.current;
      if (last?.key === key && queryValue("sel") !== "") return last.page;
      const wanted = status === "all" ? undefined : status;
      const page = await loadRequests({ route, status: wanted, q, cursor, limit: PAGE });
      shown.current = { key, page };
      return page;
    },
    EVERY_MS,
  );
  const chosen = loaded.data.value?.items.find((one) => idOf(one) === queryValue("sel"));
  const labels = new Set((routes.data.value ?? []).map(labelOf));
  if (route !== "") labels.add(route);
  return (
    <Split
      pane={chosen === undefined ? undefined : <RequestPane request={chosen} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Log")}</h1>
      <div class="bar">
        <FilterField
          label={t("Path, target, address, code or ID")}
          value={q}
          isMono
          onInput={(value) =>
            setQuery({ filter: value, cursor: undefined, sel: undefined }, { replace: true })
          }
        />
        <select
          class="field field-auto"
          aria-label={t("Route")}
          value={route}
          onChange={(event) =>
            setQuery({ route: event.currentTarget.value, cursor: undefined, sel: undefined })
          }
        >
          <option value="">{t("All routes")}</option>
          {[...labels].map((label) => (
            <option key={label} value={label}>
              {label}
            </option>
          ))}
        </select>
        <Segments
          label={t("Status")}
          value={status}
          options={CLASSES.map((one) => [one, one === "all" ? t("All") : one] as const)}
          onChange={(value) =>
            setQuery({
              status: value === "all" ? undefined : value,
              cursor: undefined,
              sel: undefined,
            })
          }
        />
      </div>
      <Loading of={loaded}>
        {({ items, next_cursor: next }) => (
          <>
            {items.length === 0 ? (
              <Empty title={t("No request matches")}>
                <p>{t("Only requests of routes with access_log are listed.")}</p>
              </Empty>
            ) : (
              <Requests items={items} />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
    </Split>
  );
}

function Requests({ items }: { items: readonly LoggedRequest[] }) {
  return (
    <Table
      label={t("Log")}
      rows={items}
      idOf={idOf}
      selected={queryValue("sel")}
      onSelect={(one) => setQuery({ sel: idOf(one) })}
      columns={[
        {
          title: t("Time"),
          kind: "w-m wide-only",
          render: ({ timestamp }) => <span class="i3">{formatDate(timestamp)}</span>,
        },
        {
          title: t("Status"),
          kind: "w-xs mono",
          render: ({ status }) => <HttpStatus status={status} />,
        },
        {
          title: t("Path"),
          kind: "mono",
          render: ({ method, path }) => `${method} ${path}`,
        },
        {
          title: t("Target"),
          kind: "mono w-l wide-only",
          render: ({ upstream, code }) => <span class="i2">{code === "" ? upstream : code}</span>,
        },
        {
          title: t("Latency"),
          kind: "w-s",
          isNumber: true,
          render: ({ latency_ms: ms }) => `${formatNumber(ms)} ms`,
        },
      ]}
    />
  );
}

function RequestPane({ request }: { request: LoggedRequest }) {
  return (
    <Section title={`${request.method} ${request.status}`} note={formatMoment(request.timestamp)}>
      <Facts>
        <FactRow term={t("Path")} isMono>
          <span class="wrap">{request.path}</span>
        </FactRow>
        <FactRow term={t("Route")} isMono>
          {request.route}
        </FactRow>
        <FactRow term={t("Target")} isMono>
          <span class="wrap">{request.upstream === "" ? "–" : request.upstream}</span>
        </FactRow>
        <FactRow term={t("Error code")} isMono>
          {request.code === "" ? "–" : request.code}
        </FactRow>
        <FactRow term={t("Latency")}>{formatNumber(request.latency_ms)} ms</FactRow>
        <FactRow term={t("Target's time")}>
          {request.upstream_ms === null ? "–" : `${formatNumber(request.upstream_ms)} ms`}
        </FactRow>
        <FactRow term={t("Attempts")}>{request.attempts}</FactRow>
        <FactRow term={t("Client address")} isMono>
          {request.client_ip}
        </FactRow>
        <FactRow term={t("Request ID")} isMono>
          <span class="wrap">{request.request_id}</span>
        </FactRow>
        <FactRow term={t("Trace ID")} isMono>
          <span class="wrap">{request.trace_id}</span>
          <CopyButton text={request.trace_id} label={t("Copy trace id")} />
        </FactRow>
      </Facts>
    </Section>
  );
}
