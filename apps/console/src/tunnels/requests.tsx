// Captured requests of a tunnel: request and answer, replay, also edited.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatBytes, formatMoment, formatTime } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, FilterField, Section, Segments, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { HttpStatus } from "../view/http-status.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { ShareDialog, type Tunnel } from "./tunnels.tsx";

const EVERY_MS = 1_500;

interface Captured {
  id: string;
  method: string;
  path: string;
  status: number;
  latency_ms: number;
  timestamp: string;
  state: "open" | "complete" | "broken";
  client: string;
  error: string;
  request_bytes: number;
  response_bytes: number;
  replay_of?: string;
}

interface Body {
  encoding: "utf8" | "base64";
  text: string;
  bytes: number;
  truncated: boolean;
  decoded?: string;
}

interface Exchange extends Captured {
  request: { line: string; headers: [string, string][]; body: Body } | null;
  response: { status: number; reason: string; headers: [string, string][]; body: Body } | null;
}

const CLASSES = ["all", "2xx", "4xx", "5xx"] as const;

/** The page. */
export function RequestsPage({ id }: { id: string }) {
  useCrumbs([
    { label: t("Tunnels"), to: "/tunnels" },
    { label: id, isName: true },
  ]);
  const [isSharing, setSharing] = useState(false);
  const search = queryValue("filter");
  const status = CLASSES.find((one) => one === queryValue("status")) ?? "all";
  const tunnel = useLoad(id, () => callService<Tunnel>("tunnel", `/tunnels/${segment(id)}`));
  const loaded = useLoad(
    `${id} ${status} ${search}`,
    async () =>
      (
        await callService<{ requests: Captured[] }>(
          "tunnel",
          withQuery(`/tunnels/${segment(id)}/requests`, {
            q: status === "all" ? search : `status:${status} ${search}`,
            limit: 100,
          }),
        )
      ).requests,
    EVERY_MS,
  );
  const selected = queryValue("sel") || (loaded.data.value?.[0]?.id ?? "");
  const slowest = Math.max(1, ...(loaded.data.value ?? []).map(({ latency_ms: ms }) => ms));
  return (
    <Split
      isWide
      pane={selected === "" ? undefined : <ExchangePane key={selected} tunnel={id} id={selected} />}
      onClosePane={queryValue("sel") === "" ? undefined : () => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Requests")}</h1>
      <div class="bar">
        <b class="mono cut">{tunnel.data.value?.url ?? id}</b>
        <CopyButton text={tunnel.data.value?.url ?? ""} />
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
          value={search}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Segments
          label={t("Status")}
          value={status}
          options={CLASSES.map((one) => [one, one === "all" ? t("All") : one] as const)}
          onChange={(value) => setQuery({ status: value === "all" ? undefined : value })}
        />
      </div>
      <Loading of={loaded}>
        {(requests) => {
          if (requests.length === 0) return <Empty title={t("No requests yet")} />;
          return (
            <Table
              label={t("Requests")}
              rows={requests}
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
        }}
      </Loading>
      {isSharing && <ShareDialog tunnel={{ id }} onClose={() => setSharing(false)} />}
    </Split>
  );
}

function ExchangePane({ tunnel, id }: { tunnel: string; id: string }) {
  const [isEditing, setEditing] = useState(false);
  const path = `/tunnels/${segment(tunnel)}`;
  const loaded = useLoad(id, () =>
    callService<Exchange>("tunnel", `${path}/requests/${segment(id)}`),
  );
  const replay = async (json: object): Promise<void> => {
    const answer = await callService<{ response_status: number; request_id: string }>(
      "tunnel",
      `${path}/replay/${segment(id)}`,
      { method: "POST", json },
    );
    setQuery({ sel: answer.request_id });
    say(t("Replayed: {n}", { n: answer.response_status }));
  };
  const again = (): void => void attempt(() => replay({}));
  useCommands([
    { label: t("Replay"), key: "r", icon: "again", run: again },
    { label: t("Edit and replay…"), key: "e", icon: "edit", run: () => setEditing(true) },
  ]);
  return (
    <Loading of={loaded}>
      {(exchange) => (
        <>
          <div class="bar">
            <b class="mono cut">
              {exchange.method} {exchange.path}
            </b>
            <span class={`tag ${exchange.status >= 500 ? "tag-bad" : ""}`}>
              {exchange.status || "–"}
            </span>
            <span class="grow" />
            <CopyButton text={describeCurl(exchange)} label={t("Copy as curl")} />
            <Action onClick={() => setEditing(true)} shortcut="e">
              {t("Edit")}
            </Action>
            <Action onClick={again} kind="primary" icon="again" shortcut="r">
              {t("Replay")}
            </Action>
          </div>
          {exchange.error !== "" && <p class="banner">{exchange.error}</p>}
          <Part
            title={t("Request")}
            note={`${formatBytes(exchange.request_bytes)}, ${exchange.client}, ${formatMoment(exchange.timestamp)}`}
            part={exchange.request}
          />
          <Part
            title={t("Response")}
            note={formatBytes(exchange.response_bytes)}
            part={exchange.response}
          />
          {isEditing && (
            <EditDialog exchange={exchange} onClose={() => setEditing(false)} onReplay={replay} />
          )}
        </>
      )}
    </Loading>
  );
}

function Part(props: {
  title: string;
  note: string;
  part: { headers: [string, string][]; body: Body } | null;
}) {
  const { title, note, part } = props;
  if (part === null) return null;
  const { body } = part;
  const text = body.decoded ?? (body.encoding === "utf8" ? body.text : "");
  return (
    <Section title={title} note={note}>
      <details>
        <summary>{t("Headers {n}", { n: part.headers.length })}</summary>
        <dl class="headers">
          {part.headers.map(([name, value], index) => (
            // A header may be repeated.
            // oxlint-disable-next-line react/no-array-index-key
            <div key={`${index} ${name}`}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </details>
      {text !== "" && <JsonBlock text={text} label={title} />}
      {text === "" && body.bytes > 0 && <p class="i3">{t("Binary content")}</p>}
      {body.truncated && <p class="hint">{t("Only the beginning was captured.")}</p>}
    </Section>
  );
}

function EditDialog(props: {
  exchange: Exchange;
  onClose: () => void;
  onReplay: (json: object) => Promise<void>;
}) {
  const { exchange } = props;
  const [method, setMethod] = useState(exchange.method);
  const [path, setPath] = useState(exchange.path);
  const [body, setBody] = useState(exchange.request?.body.text ?? "");
  return (
    <FormDialog
      title={t("Edit and replay…")}
      submit={t("Replay")}
      isWide
      onClose={props.onClose}
      onSubmit={() =>
        props.onReplay({
          method,
          path,
          ...(body === exchange.request?.body.text ? {} : { body }),
        })
      }
    >
      <TextField label={t("Method")} value={method} onInput={setMethod} isMono required />
      <TextField label={t("Path")} value={path} onInput={setPath} isMono required />
      <AreaField label={t("Body")} value={body} rows={14} onInput={setBody} />
    </FormDialog>
  );
}

/** The request as a command; hidden credentials stay hidden. */
function describeCurl({ method, path, request }: Exchange): string {
  const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const headers = (request?.headers ?? [])
    .filter(([name]) => !/^(?:host|content-length|connection)$/i.test(name))
    .map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
  const body = request?.body;
  const data = body === undefined || body.text === "" ? [] : [`--data-raw ${quote(body.text)}`];
  return ["curl", `-X ${method}`, ...headers, ...data, quote(`http://localhost${path}`)].join(" ");
}
