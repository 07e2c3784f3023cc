// The live preview of a template: rendered by the service while it is edited, shown in a frame without rights.
import type { Answer } from "../contract/answer.ts";
import { useEffect, useState } from "preact/hooks";
import type { ApiFailure } from "../api/api.ts";
import { callService, may } from "../session/session.ts";
import { Section, Segments } from "../view/controls.tsx";
import { CodeEditor } from "../view/code-editor.tsx";
import type { EditorProblem } from "../view/editor-text.ts";
import { readJson } from "../view/json-fault.ts";
import { toFailure } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { HtmlFrame, useFrame } from "./html-frame.tsx";
import { MANAGE } from "./message.ts";
import type { Draft } from "./template.ts";

const PREVIEW_MS = 400;
const API = "/api/v1";

type Rendered = Answer<"notify", "POST /templates/{name}/preview">;

type RenderError = NonNullable<Rendered["errors"]>[number];

/** The state of the preview. */
export interface Preview {
  rendered: Rendered | undefined;
  failure: ApiFailure | undefined;
  /** The variables are not JSON. */
  variablesProblem: EditorProblem | undefined;
  errors: Record<keyof Draft, EditorProblem[]>;
}

/** Renders a draft when it has not changed for a moment; the last good rendering stays. */
export function usePreview(props: {
  path: string;
  locale: string;
  draft: Draft;
  variables: string;
}): Preview {
  const { path, locale, draft, variables } = props;
  const [rendered, setRendered] = useState<Rendered | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const read = readJson(variables);
  const isAllowed = may(MANAGE);
  useEffect(() => {
    if (!isAllowed || read.problem !== undefined) return undefined;
    const abort = new AbortController();
    const render = async (): Promise<void> => {
      try {
        const source = {
          subject: draft.subject,
          html: draft.html === "" ? null : draft.html,
          text: draft.text === "" ? null : draft.text,
        };
        const found = await callService<Rendered>("notify", `${path}/preview`, {
          method: "POST",
          json: { source, variables: read.value, ...(locale === "" ? {} : { locale }) },
          signal: abort.signal,
        });
        setRendered((before) => ({
          ...found,
          // A part that fails keeps its last rendering.
          ...(hasError(found, "html") && before?.html_path !== undefined
            ? { html_path: before.html_path }
            : {}),
        }));
        setFailure(undefined);
      } catch (error) {
        if (!abort.signal.aborted) setFailure(toFailure(error));
      }
    };
    const timer = setTimeout(() => void render(), PREVIEW_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, locale, draft.subject, draft.html, draft.text, variables]);
  const errors: Preview["errors"] = { subject: [], html: [], text: [] };
  for (const error of rendered?.errors ?? []) errors[error.part].push(toProblem(error));
  return { rendered, failure, variablesProblem: read.problem, errors };
}

function hasError({ errors = [] }: Rendered, part: keyof Draft): boolean {
  return errors.some((error) => error.part === part);
}

// A fault within a partial has no line in this text.
function toProblem({ message: whole, line, column, partial }: RenderError): EditorProblem {
  // The list of problems names the place itself.
  const message = whole.replace(/, line:\d+, col:\d+$/, "");
  if (partial !== undefined) {
    return { line: 1, message: t("In the template {name}: {message}", { name: partial, message }) };
  }
  return { line: line ?? 1, ...(column === undefined ? {} : { column }), message };
}

type Shown = "html" | "text";

/** The preview and the variables. */
export function TemplatePreview(props: {
  preview: Preview;
  variables: string;
  onVariables: (text: string) => void;
}) {
  const { rendered, failure, variablesProblem } = props.preview;
  const [shown, setShown] = useState<Shown>("html");
  const frame = useFrame();
  const isAllowed = may(MANAGE);
  const hasHtml = rendered?.html_path !== undefined;
  return (
    <>
      <Section title={t("Preview")} note={isAllowed ? t("of what you type") : undefined}>
        {!isAllowed && <p>{t("Requires the permission {name}", { name: MANAGE })}</p>}
        {failure !== undefined && <Problem failure={failure} />}
        {rendered !== undefined && (
          <>
            <p class="mail-subject">
              <b>{rendered.subject || t("No subject")}</b>
            </p>
            <div class="mail-controls">
              <Segments<Shown>
                label={t("Preview")}
                value={hasHtml ? shown : "text"}
                options={[
                  ["html", "HTML"],
                  ["text", t("Text")],
                ]}
                onChange={setShown}
              />
              {hasHtml && shown === "html" && frame.controls}
            </div>
          </>
        )}
      </Section>
      {rendered?.html_path !== undefined && shown === "html" && (
        <HtmlFrame
          {...frame.choice}
          title={t("HTML of the preview")}
          path={rendered.html_path.slice(API.length)}
        />
      )}
      {rendered !== undefined && (!hasHtml || shown === "text") && (
        <pre class="mail-text" tabIndex={0} role="region" aria-label={t("Text of the preview")}>
          {rendered.text ?? ""}
        </pre>
      )}
      {rendered !== undefined && rendered.warnings.length > 0 && (
        <Section title={t("Warnings")}>
          <ul class="mail-warnings">
            {rendered.warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </Section>
      )}
      <Section title={t("Variables")}>
        <CodeEditor
          label={t("Values as JSON")}
          language="json"
          value={props.variables}
          onInput={props.onVariables}
          problems={variablesProblem === undefined ? [] : [variablesProblem]}
          minLines={5}
          maxLines={16}
        />
      </Section>
    </>
  );
}
