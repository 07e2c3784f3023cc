// One captured request: its messages, its replays, and a form that sends it again.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatBytes, formatMoment, formatTime } from "../format/format.ts";
import { setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { Action, AreaField, Section, TextField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { HttpStatus } from "../view/http-status.tsx";
import { JsonBlock } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import {
  describeCurl,
  formatHeaders,
  parseHeaders,
  type Body,
  type Captured,
  type Exchange,
} from "./captured.ts";

/** The pane. `origin` is the public address of the tunnel, `replays` are the replays of the request among the loaded ones. */
export function ExchangePane(props: {
  tunnel: string;
  origin: string;
  id: string;
  replays: readonly Captured[];
}) {
  const { tunnel, origin, id, replays } = props;
  const [isEditing, setEditing] = useState(false);
  const path = `/tunnels/${segment(tunnel)}`;
  const loaded = useLoad(id, () =>
    callService<Exchange>("tunnel", `${path}/requests/${segment(id)}`),
  );
  const replay = async (json: object): Promise<void> => {
    const answer = await callService<Answer<"tunnel", "POST /tunnels/{id}/replay/{reqID}">>(
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
            <CopyButton text={describeCurl(exchange, origin)} label={t("Copy as curl")} />
            <a
              class="btn sm"
              href={api("tunnel", `${path}/requests/${segment(id)}?format=har`)}
              download={`${id}.har`}
            >
              HAR
            </a>
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
          <Replays of={exchange} replays={replays} />
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

function Replays({ of, replays }: { of: Exchange; replays: readonly Captured[] }) {
  if (replays.length === 0 && of.replay_of === undefined) return null;
  return (
    <Section title={t("Replays")}>
      {of.replay_of !== undefined && (
        <p>
          <button type="button" class="link" onClick={() => setQuery({ sel: of.replay_of })}>
            {t("Show the original request")}
          </button>
        </p>
      )}
      <ul class="replays">
        {replays.map((one) => (
          <li key={one.id}>
            <button type="button" class="link mono" onClick={() => setQuery({ sel: one.id })}>
              {formatTime(one.timestamp)}
            </button>
            <HttpStatus status={one.status} />
            <span class="i3">{one.state === "open" ? t("open") : `${one.latency_ms} ms`}</span>
          </li>
        ))}
      </ul>
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
  const before = formatHeaders(exchange);
  const [headers, setHeaders] = useState(before);
  // Binary bodies are sent as they were captured.
  const text = exchange.request?.body.encoding === "base64" ? "" : exchange.request?.body.text;
  const [body, setBody] = useState(text ?? "");
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
          ...(headers === before ? {} : { headers: parseHeaders(headers) }),
          ...(body === (text ?? "") ? {} : { body }),
        })
      }
    >
      <TextField label={t("Method")} value={method} onInput={setMethod} isMono required />
      <TextField label={t("Path")} value={path} onInput={setPath} isMono required />
      <AreaField label={t("Headers")} value={headers} rows={5} onInput={setHeaders} />
      <p class="hint">{t("One per line. [redacted] stands for the captured value.")}</p>
      <AreaField label={t("Body")} value={body} rows={14} onInput={setBody} />
    </FormDialog>
  );
}
