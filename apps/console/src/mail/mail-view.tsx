// One mail: its HTML in a frame without rights, its text, source, header and variables.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { segment, send } from "../api/api.ts";
import { formatBytes, formatMoment } from "../format/format.ts";
import { api, callService } from "../session/session.ts";
import { FactRow, Segments } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { HtmlFrame, useFrame } from "./html-frame.tsx";
import { visible } from "./names.ts";

/** Longer texts are shown in part; the whole is in the source. */
const SHOWN_CHARACTERS = 262_144;
const HEADERS_MAX = 200;

/** A parsed mail. */
export type MailContent = Pick<
  Answer<"notify", "GET /inbox/{id}">,
  "headers" | "text" | "html" | "attachments"
>;

/** Facts of the line below the subject. */
interface MailLine {
  subject: string;
  from: string;
  to: readonly string[];
  at: string;
  bytes: number;
}

type View = "html" | "text" | "source" | "headers" | "variables";

/** The sheet of a mail. `base` is the path of its operations, with `/html` and `/raw`. */
export function MailView(props: {
  id: string;
  base: string;
  mail: MailContent;
  line: MailLine;
  hasTemplate: boolean;
  actions: ComponentChildren;
}) {
  const { id, base, mail, line } = props;
  const [view, setView] = useState<View>("html");
  const frame = useFrame();
  const shown = view === "html" && mail.html === undefined ? "text" : view;
  const views: [View, string][] = [
    ["html", "HTML"],
    ["text", t("Text")],
    ["source", t("Source")],
    ["headers", t("Headers")],
  ];
  if (props.hasTemplate) views.push(["variables", t("Variables")]);
  return (
    <>
      <Title actions={props.actions}>{visible(line.subject)}</Title>
      <p class="mail-line">
        {line.from} {t("to")} {line.to.join(", ")} · {formatMoment(line.at)} ·{" "}
        {formatBytes(line.bytes)}
      </p>
      <div class="bar">
        <Segments<View> label={t("View")} value={shown} options={views} onChange={setView} />
        <span class="grow" />
        {shown === "html" && frame.controls}
      </div>
      {shown === "html" && (
        <HtmlFrame {...frame.choice} title={t("HTML of the mail")} path={`${base}/html`} />
      )}
      {shown === "text" && <LongText text={mail.text ?? ""} label={t("Text")} />}
      {shown === "source" && <Source path={`${base}/raw`} name={id} />}
      {shown === "headers" && (
        <dl class="kv mail-headers">
          {mail.headers.slice(0, HEADERS_MAX).map(({ name, value }, index) => (
            <FactRow key={`${index} ${name}`} term={name} isMono>
              <span class="wrap">{visible(value)}</span>
            </FactRow>
          ))}
        </dl>
      )}
      {shown === "variables" && <Variables id={id} />}
    </>
  );
}

function LongText({ text, label }: { text: string; label: string }) {
  return (
    <>
      {text.length > SHOWN_CHARACTERS && (
        <p class="bar lead">
          {t("The first {n} of {all} characters.", { n: SHOWN_CHARACTERS, all: text.length })}
        </p>
      )}
      <pre class="mail-text" tabIndex={0} role="region" aria-label={label}>
        {text.slice(0, SHOWN_CHARACTERS)}
      </pre>
    </>
  );
}

function Source({ path, name }: { path: string; name: string }) {
  const url = api("notify", path);
  const loaded = useLoad(url, async (signal) => (await send(url, { signal })).text());
  return (
    <>
      <div class="bar">
        <a class="btn sm" href={url} download={`${name}.eml`}>
          {t("Download")}
        </a>
      </div>
      <Loading of={loaded}>{(text) => <LongText text={text} label={t("Source")} />}</Loading>
    </>
  );
}

function Variables({ id }: { id: string }) {
  const loaded = useLoad(`variables ${id}`, () =>
    callService<Answer<"notify", "GET /messages/{id}/content">>(
      "notify",
      `/messages/${segment(id)}/content`,
    ),
  );
  return (
    <Loading of={loaded}>
      {({ variables, warnings }) => (
        <>
          {warnings.length > 0 && <p class="bar lead">{warnings.join("; ")}</p>}
          {variables === null ? (
            <p class="bar lead">{t("The variables were too large to be kept.")}</p>
          ) : (
            <LongText text={JSON.stringify(variables, null, 2)} label={t("Variables")} />
          )}
        </>
      )}
    </Loading>
  );
}
