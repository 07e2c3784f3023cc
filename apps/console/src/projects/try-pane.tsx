// "Try it": a request to an operation of a project, its answer, and the trace of the whole request.
import { useState } from "preact/hooks";
import { segment, type ApiFailure } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { loadTrace, tracePath, type FoundTrace } from "../runtime/trace.ts";
import { Waterfall } from "../runtime/waterfall.tsx";
import { callService, may } from "../session/session.ts";
import {
  Action,
  AreaField,
  FormProblems,
  Section,
  Segments,
  TextField,
} from "../view/controls.tsx";
import { HttpStatus } from "../view/http-status.tsx";
import { JsonBlock } from "../view/json.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { t } from "../words/words.ts";

/** An operation of a project. */
export type Operation = Answer<"runtime", "GET /projects/{name}/operations">["items"][number];
type TryAnswer = Answer<"runtime", "POST /projects/{name}/try">;

const SEND = "runtime:manage";
const ACT = "*:*";
/** Spans of projects arrive within some of these waits. */
const TRACE_MS = 700;
const TRACE_TRIES = 5;

interface Draft {
  path: string;
  headers: string;
  body: string;
  as: "nobody" | "application";
  scopes: string;
}

/** The form and the answer. */
export function TryPane({ project, operation }: { project: string; operation: Operation }) {
  const [draft, setDraft] = useState<Draft>(() => createDraft(operation));
  const [answer, setAnswer] = useState<TryAnswer | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    setFailure(undefined);
    try {
      const json = { method: operation.method, ...toRequest(draft) };
      const path = `/projects/${segment(project)}/try`;
      setAnswer(await callService("runtime", path, { method: "POST", json }));
    } catch (error) {
      setFailure(toFailure(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Section title={`${operation.method} ${operation.path}`} note={operation.summary}>
        <form
          class="try-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (!isBusy) void send();
          }}
        >
          <FormProblems.Provider value={failure?.fields ?? []}>
            <Fields
              draft={draft}
              hasBody={operation.has_body}
              onChange={(change) => setDraft({ ...draft, ...change })}
            />
          </FormProblems.Provider>
          <Action
            kind="primary"
            needs={draft.as === "application" ? ACT : SEND}
            blocked={isBusy ? t("It is being sent") : undefined}
            onClick={() => void send()}
          >
            {t("Send")}
          </Action>
        </form>
        {failure !== undefined && <Problem failure={failure} />}
      </Section>
      {answer !== undefined && <AnswerView key={answer.trace_id} of={answer} project={project} />}
    </>
  );
}

function createDraft({ path, has_body: hasBody }: Operation): Draft {
  return {
    path,
    headers: hasBody ? "content-type: application/json" : "",
    body: hasBody ? "{}" : "",
    as: "nobody",
    scopes: "",
  };
}

function toRequest({ path, headers, body, as, scopes }: Draft) {
  const pairs = headers
    .split("\n")
    .map((line) => /^([^:]+):(.*)$/.exec(line.trim()))
    .flatMap((found) => (found === null ? [] : [[found[1]!.trim(), found[2]!.trim()] as const]));
  return {
    path,
    headers: Object.fromEntries(pairs),
    body,
    as,
    scopes: as === "application" ? scopes.split(/\s+/).filter((one) => one !== "") : [],
  };
}

function Fields(props: {
  draft: Draft;
  hasBody: boolean;
  onChange: (change: Partial<Draft>) => void;
}) {
  const { draft, hasBody, onChange } = props;
  return (
    <>
      <TextField
        label={t("Path with its query")}
        name="path"
        value={draft.path}
        isMono
        required
        onInput={(path) => onChange({ path })}
        {...(/[{}]/.test(draft.path)
          ? { hint: t("Replace {name} by a value.", { name: "{…}" }) }
          : {})}
      />
      <AreaField
        label={t("Headers, one per line")}
        value={draft.headers}
        rows={2}
        onInput={(headers) => onChange({ headers })}
      />
      {hasBody && (
        <AreaField
          label={t("Body")}
          value={draft.body}
          rows={5}
          onInput={(body) => onChange({ body })}
        />
      )}
      <Segments
        label={t("Sent as")}
        value={draft.as}
        options={[
          ["nobody", t("nobody")],
          ["application", t("the project's application")],
        ]}
        onChange={(as) => onChange({ as })}
      />
      {draft.as === "application" && (
        <TextField
          label={t("Scopes of the token")}
          name="scopes"
          value={draft.scopes}
          isMono
          hint={
            may(ACT)
              ? t("Empty: all that the application may have. The token ends with the request.")
              : t("Only administrators act as an application.")
          }
          onInput={(scopes) => onChange({ scopes })}
        />
      )}
    </>
  );
}

function AnswerView({ of: answer, project }: { of: TryAnswer; project: string }) {
  const { status, headers, body, encoding, truncated, duration_ms: ms, trace_id: id } = answer;
  const type = headers.find(({ name }) => name === "content-type")?.value ?? "";
  return (
    <>
      <Section title={t("Answer")} note={`${formatNumber(Math.round(ms))} ms`}>
        <p>
          <HttpStatus status={status} /> <span class="mono i2">{type}</span>
        </p>
        <details>
          <summary>{t("{n} headers", { n: headers.length })}</summary>
          <pre class="code" tabIndex={0}>
            {headers.map(({ name, value }) => `${name}: ${value}`).join("\n")}
          </pre>
        </details>
        {body !== "" && <JsonBlock text={body} label={t("Answer")} />}
        {(truncated || encoding === "base64") && (
          <p class="i3">
            {truncated ? t("Only its first 256 KiB are shown.") : t("Bytes, in base64")}
          </p>
        )}
      </Section>
      <TraceSection id={id} project={project} />
    </>
  );
}

async function waitForTrace(id: string, project: string, signal: AbortSignal): Promise<FoundTrace> {
  for (let tries = 1; ; tries += 1) {
    await new Promise((resolve) => {
      setTimeout(resolve, TRACE_MS);
    });
    const trace = await loadTrace(id, signal);
    const isWhole = trace.spans.some(({ span }) => span.service === project);
    if (isWhole || tries === TRACE_TRIES) return trace;
  }
}

function TraceSection({ id, project }: { id: string; project: string }) {
  const loaded = useLoad(`trace ${id}`, (signal) => waitForTrace(id, project, signal));
  const trace = loaded.data.value;
  return (
    <>
      {trace !== undefined && trace.spans.length > 0 && (
        <Waterfall spans={trace.spans} durationMs={trace.durationMs} isCompact />
      )}
      <p class="trace-link">
        <a class="link" href={href(tracePath(id))}>
          {t("All of this trace")}
        </a>
      </p>
    </>
  );
}
