// The latest requests of routes with an access log: filters, and the chosen request.
import { useState } from "preact/hooks";
import { formatMoment, formatNumber, formatTime } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { hasFeature } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section, Segments } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { createRequestColumns, formatLatency } from "./request-columns.tsx";
import { endMsOf, idOf, labelOf, type LoggedRequest, loadRequests } from "./requests.ts";
import { joinRequests, useRequestStream } from "./request-stream.ts";
import { loadRoutes } from "./routes.ts";

const PAGE = 100;
const CLASSES = ["all", "2xx", "4xx", "5xx"] as const;

export function LogPage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Log") }]);
  const route = queryValue("route");
  const q = queryValue("filter");
  const cursor = queryValue("cursor");
  const status = CLASSES.find((one) => one === queryValue("status")) ?? "all";
  const [isHeld, setHeld] = useState(false);
  const routes = useLoad("routes", loadRoutes);
  const filter = { route, q, status: status === "all" ? undefined : status };
  const key = JSON.stringify([filter, cursor]);
  const loaded = useLoad(key, () => loadRequests({ ...filter, cursor, limit: PAGE }));
  // Rows must not move away under a reader.
  const isRead = isHeld || queryValue("sel") !== "";
  const stream = useRequestStream(
    cursor === "" ? filter : undefined,
    isRead,
    // Requests that ended while it was not connected are in the log.
    () => void loaded.reload(),
  );
  const items = joinRequests(stream.rows.value, loaded.data.value?.items ?? []);
  const waiting = isRead ? stream.waiting.value : 0;
  const follow = (): void => {
    setHeld(false);
    setQuery({ sel: undefined, cursor: undefined });
  };
  useCommands([
    {
      label: isHeld ? t("Continue") : t("Hold"),
      key: "space",
      icon: isHeld ? "play" : "pause",
      run: () => setHeld(!isHeld),
    },
    { label: t("Follow the newest"), key: "end", icon: "down", run: follow },
  ]);
  const chosen = items.find((one) => idOf(one) === queryValue("sel"));
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
        <Action
          onClick={() => setHeld(!isHeld)}
          icon={isHeld ? "play" : "pause"}
          shortcut="space"
          blocked={cursor === "" ? undefined : t("Older pages do not change")}
        >
          {isHeld ? t("Continue") : t("Hold")}
        </Action>
      </div>
      {loaded.failure.value === undefined && (
        <StreamState stream={stream} waiting={waiting} onFollow={follow} />
      )}
      <Loading of={loaded}>
        {({ next_cursor: next }) => (
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

/** The gap between the list and the newest requests, if there is one. */
function StreamState(props: {
  stream: ReturnType<typeof useRequestStream>;
  waiting: number;
  onFollow: () => void;
}) {
  const { stream, waiting, onFollow } = props;
  return (
    <>
      {stream.state?.kind === "lost" && (
        <p class="banner" role="status">
          {t("The stream is lost since {time}; it is connected again.", {
            time: formatTime(stream.state.since),
          })}
        </p>
      )}
      {stream.fault.value !== undefined && (
        <p class="banner" role="status">
          {t("The gateway cannot follow its log; newer requests are listed when it can again.")}{" "}
          {stream.fault.value}
        </p>
      )}
      {stream.missed.value > 0 && (
        <p class="banner" role="status">
          {t("{n} lines came faster than this page reads; they are in the log.", {
            n: formatNumber(stream.missed.value),
          })}
        </p>
      )}
      {waiting > 0 && (
        <p class="banner" role="status">
          {t("{n} newer", { n: formatNumber(waiting) })}{" "}
          <button type="button" class="link" onClick={onFollow}>
            {t("Follow the newest")} <kbd>end</kbd>
          </button>
        </p>
      )}
    </>
  );
}

function Requests({ items }: { items: readonly LoggedRequest[] }) {
  const { time, status, path, latency } = createRequestColumns();
  return (
    <Table
      label={t("Log")}
      rows={items}
      idOf={idOf}
      selected={queryValue("sel")}
      onSelect={(one) => setQuery({ sel: idOf(one) })}
      columns={[
        time,
        status,
        path,
        {
          title: t("Target"),
          kind: "mono w-l wide-only",
          render: ({ upstream, code }) => <span class="i2">{code === "" ? upstream : code}</span>,
        },
        latency,
      ]}
    />
  );
}

function RequestPane({ request }: { request: LoggedRequest }) {
  return (
    <Section
      title={`${request.method} ${request.status}`}
      note={formatMoment(new Date(endMsOf(request)).toISOString())}
    >
      <Facts>
        <FactRow term={t("Started")}>{formatMoment(request.timestamp)}</FactRow>
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
        <FactRow term={t("Latency")}>{formatLatency(request)}</FactRow>
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
          {hasFeature("runtime", "logs") && request.trace_id !== "" && (
            <a class="link" href={href(`/runtime/traces/${request.trace_id}`)}>
              {t("All of this trace")}
            </a>
          )}
        </FactRow>
      </Facts>
    </Section>
  );
}
