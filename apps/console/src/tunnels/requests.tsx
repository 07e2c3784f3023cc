// Captured requests of a tunnel, live: they appear when they begin, and again with their answer.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatNumber, formatTime } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, Segments } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { HttpStatus } from "../view/http-status.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Missing, Problem } from "../view/problem.tsx";
import { ProblemText } from "../view/problem-text.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import type { Captured } from "./captured.ts";
import { ExchangePane } from "./exchange-pane.tsx";
import { LiveRequests } from "./live-requests.ts";
import { ShareDialog, type Tunnel } from "./tunnels.tsx";

const CLASSES = ["all", "2xx", "4xx", "5xx"] as const;

export function RequestsPage({ id }: { id: string }) {
  useCrumbs([
    { label: t("Tunnels"), to: "/tunnels" },
    { label: id, isName: true },
  ]);
  const [isSharing, setSharing] = useState(false);
  const q = queryValue("filter");
  const status = CLASSES.find((one) => one !== "all" && one === queryValue("status"));
  const tunnel = useLoad(id, () => callService<Tunnel>("tunnel", `/tunnels/${segment(id)}`));
  const list = useMemo(() => new LiveRequests(id, { q, status }), [id, q, status]);
  useEffect(() => () => list.close(), [list]);
  const chosen = queryValue("sel");
  useEffect(() => list.hold(chosen !== ""), [list, chosen]);
  const rows = list.rows.value;
  const waiting = list.waiting.value.length;
  // Until one is chosen, the pane shows the newest request of the moment at which the page was opened.
  const first = useRef({ list, id: "" });
  if (first.current.list !== list) first.current = { list, id: "" };
  if (first.current.id === "") first.current.id = rows?.[0]?.id ?? "";
  const selected = chosen || first.current.id;
  useCommands([{ label: t("Show newer requests"), key: "end", run: () => list.showWaiting() }]);
  const url = tunnel.data.value?.url ?? "";
  if (tunnel.failure.value?.status === 404) {
    return (
      <>
        <h1 class="hidden">{t("Requests")}</h1>
        <Missing to="/tunnels" label={t("All tunnels")}>
          <ProblemText failure={tunnel.failure.value} />
        </Missing>
      </>
    );
  }
  const all = [...list.waiting.value, ...(rows ?? [])];
  return (
    <Split
      isWide
      pane={
        selected === "" ? undefined : (
          <ExchangePane
            key={`${selected} ${all.find((one) => one.id === selected)?.state}`}
            tunnel={id}
            origin={url}
            id={selected}
            replays={all.filter(({ replay_of: of }) => of === selected)}
          />
        )
      }
      onClosePane={chosen === "" ? undefined : () => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Requests")}</h1>
      <div class="bar">
        <b class="mono cut">{url || id}</b>
        <CopyButton text={url} />
        <span class="mono i2 cut">→ {tunnel.data.value?.target}</span>
        <span class="grow" />
        <a class="btn sm" href={href(`/tunnels/${encodeURIComponent(id)}/shares`)}>
          {t("Share links")}
        </a>
        <Action onClick={() => setSharing(true)}>{t("Share…")}</Action>
      </div>
      <div class="bar">
        <FilterField
          label={t("Path, header or text of a body")}
          value={q}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Segments
          label={t("Status")}
          value={status ?? "all"}
          options={CLASSES.map((one) => [one, one === "all" ? t("All") : one] as const)}
          onChange={(value) => setQuery({ status: value === "all" ? undefined : value })}
        />
        <a
          class="btn sm wide-only"
          href={api(
            "tunnel",
            withQuery(`/tunnels/${segment(id)}/requests`, { q, status, format: "har" }),
          )}
          download={`${id}.har`}
        >
          {t("Export as HAR")}
        </a>
      </div>
      <Notices list={list} />
      {waiting > 0 && (
        <div class="bar">
          <Action onClick={() => list.showWaiting()} icon="up" shortcut="end">
            {t("{n} newer", { n: formatNumber(waiting) })}
          </Action>
        </div>
      )}
      {rows?.length === 0 && <Empty title={t("No requests yet")} />}
      {rows !== undefined && rows.length > 0 && <Requests rows={rows} selected={selected} />}
      {list.hasOlder.value && (
        <div class="bar">
          <Action onClick={() => void list.loadOlder()}>{t("Older requests")}</Action>
        </div>
      )}
      {isSharing && <ShareDialog tunnel={{ id }} onClose={() => setSharing(false)} />}
    </Split>
  );
}

function Notices({ list }: { list: LiveRequests }) {
  const state = list.state.value;
  const missed = list.missed.value;
  const failure = list.failure.value;
  return (
    <>
      {failure !== undefined && <Problem failure={failure} />}
      {state.kind === "lost" && failure === undefined && (
        <p class="banner" role="status">
          {t("The stream is lost since {time}; it is connected again.", {
            time: formatTime(state.since),
          })}
        </p>
      )}
      {missed > 0 && (
        <p class="banner" role="status">
          {t("{n} changes came faster than this page reads; the list was loaded again.", {
            n: formatNumber(missed),
          })}
        </p>
      )}
    </>
  );
}

function Requests({ rows, selected }: { rows: readonly Captured[]; selected: string }) {
  const slowest = Math.max(1, ...rows.map(({ latency_ms: ms }) => ms));
  return (
    <Table
      label={t("Requests")}
      rows={rows}
      idOf={(one) => one.id}
      selected={selected}
      onSelect={(one) => setQuery({ sel: one.id })}
      columns={[
        {
          title: t("Time"),
          kind: "w-s mono wide-only",
          render: ({ timestamp }) => <span class="i3">{formatTime(timestamp)}</span>,
        },
        { title: t("Method"), kind: "w-xs mono", render: ({ method }) => method },
        { title: t("Path"), kind: "mono", render: ({ path }) => path },
        {
          title: t("Status"),
          kind: "w-xs mono",
          render: (one) => <HttpStatus status={one.status} />,
        },
        {
          title: t("Latency"),
          kind: "w-m",
          isNumber: true,
          render: ({ latency_ms: ms, state }) => (
            <span class="latency">
              <meter min={0} max={slowest} value={ms} aria-label={t("Latency")} />
              {state === "open" ? t("open") : `${ms} ms`}
            </span>
          ),
        },
      ]}
    />
  );
}
