// The schema of a topic's payloads: edited beside the latest messages, which are checked while one types.
import type { Answer } from "../contract/answer.ts";
import { useEffect, useState } from "preact/hooks";
import { ApiFailure, segment, withQuery } from "../api/api.ts";
import { onlyIf, readVersioned, type Versioned } from "../api/versioned.ts";
import { formatNumber } from "../format/format.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { Action, Section, SelectField } from "../view/controls.tsx";
import { CodeEditor } from "../view/code-editor.tsx";
import { ConflictNotice } from "../view/conflict.tsx";
import { Diff } from "../view/diff.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import type { EditorProblem } from "../view/editor-text.ts";
import { readJson } from "../view/json-fault.ts";
import { toFailure, useLoad } from "../view/load.ts";
import { Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { say } from "../view/toast.tsx";
import { describeFault } from "../words/fault.ts";
import { t } from "../words/words.ts";
import { brokerPath, callBroker } from "./broker.ts";

const TYPING_MS = 400;
const VIOLATIONS_SHOWN = 5;

type Check = Answer<"pulse", "POST /topics/{topic}/schema/check">;

export function SchemaTab({ topic }: { topic: string }) {
  const path = `/topics/${segment(topic)}/schema`;
  const loaded = useLoad(`schema ${topic}`, (signal) =>
    readVersioned<object>(brokerPath(path), signal),
  );
  // A new editor after each save, which the service may have completed.
  const [savedCount, setSavedCount] = useState(0);
  return (
    <Loading of={loaded}>
      {(stored) => (
        <SchemaEditor
          key={savedCount}
          topic={topic}
          path={path}
          stored={stored}
          onSaved={() => loaded.reload().then(() => setSavedCount((count) => count + 1))}
          reload={() => void loaded.reload()}
        />
      )}
    </Loading>
  );
}

interface EditorProps {
  topic: string;
  path: string;
  stored: Versioned<object>;
  onSaved: () => Promise<void>;
  reload: () => void;
}

function SchemaEditor({ topic, path, stored, onSaved, reload }: EditorProps) {
  const { document: schema, etag } = stored;
  const before = schema === undefined ? "" : format(schema);
  const [started] = useState(before || format({ id: "string", amount: "number" }));
  const [text, setText] = useState(started);
  useUnsaved(text !== started && text !== before, ["tenant"]);
  const [hasConflict, setConflict] = useState(false);
  const [open, setOpen] = useState<"save" | "delete" | undefined>(undefined);
  const { check, problems } = useCheck(path, text);
  const close = (): void => setOpen(undefined);
  return (
    <Split
      pane={
        <CheckPane check={check} hasProblems={problems.length > 0} isFirst={schema === undefined} />
      }
    >
      <div class="schema-editor">
        <p class="lead">
          {schema === undefined
            ? t("Any payload is accepted. The text below is an example.")
            : t("Payloads that do not fit are refused.")}
        </p>
        <CodeEditor
          label={t("A map of fields to types, or JSON Schema")}
          language="json"
          value={text}
          problems={problems}
          minLines={12}
          onInput={setText}
        />
        {hasConflict && (
          <ConflictNotice
            onCompare={() => {
              setConflict(false);
              reload();
            }}
          />
        )}
        <div class="row">
          <Action
            kind="primary"
            isSmall={false}
            onClick={() => setOpen("save")}
            blocked={
              text === before
                ? t("Nothing was changed")
                : check === undefined
                  ? t("It is not a schema yet")
                  : undefined
            }
          >
            {t("Review and save…")}
          </Action>
          <Action
            kind="bad"
            isSmall={false}
            onClick={() => setOpen("delete")}
            blocked={schema === undefined ? t("It is not set") : undefined}
          >
            {t("Delete…")}
          </Action>
        </div>
      </div>
      {open === "save" && check !== undefined && (
        <SaveDialog
          path={path}
          etag={etag}
          before={before}
          text={text}
          check={check}
          onClose={close}
          onSaved={onSaved}
          onConflict={() => setConflict(true)}
        />
      )}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete the schema")}
          name={topic}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callBroker(path, { method: "DELETE", headers: onlyIf(etag) });
            await onSaved();
          }}
        >
          <p>{t("Any payload is accepted afterwards.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

/** Checks the text when typing has paused. */
function useCheck(path: string, text: string) {
  const [check, setCheck] = useState<Check | undefined>(undefined);
  const [problems, setProblems] = useState<readonly EditorProblem[]>([]);
  useEffect(() => {
    setCheck(undefined);
    const { value, problem } = readJson(text);
    setProblems(problem === undefined ? [] : [problem]);
    if (problem !== undefined) return undefined;
    let isCurrent = true;
    const timer = setTimeout(() => {
      const json = { schema: value };
      callBroker<Check>(`${path}/check`, { method: "POST", json }).then(
        (found) => isCurrent && setCheck(found),
        (error: unknown) =>
          isCurrent && setProblems([{ line: 1, message: describeRefusal(toFailure(error)) }]),
      );
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [path, text]);
  return { check, problems };
}

function describeRefusal({ fields: [fault], message }: ApiFailure): string {
  return (fault === undefined ? undefined : describeFault(fault)) ?? message;
}

function CheckPane(props: {
  check: Check | undefined;
  hasProblems: boolean;
  /** True if the topic has no schema. */
  isFirst: boolean;
}) {
  const { check, hasProblems, isFirst } = props;
  if (check === undefined) {
    return (
      <Section title={t("Check")}>
        <p class="lead">{hasProblems ? t("It is not a schema yet") : t("Checking…")}</p>
      </Section>
    );
  }
  return (
    <>
      <Section title={t("Compatibility")}>
        <State kind={isFirst ? "off" : check.is_backward_compatible ? "ok" : "warn"}>
          {isFirst
            ? t("No schema to compare with")
            : check.is_backward_compatible
              ? t("Payloads of the present schema fit")
              : t("Breaks: {text}", { text: check.reason ?? "" })}
        </State>
      </Section>
      <Section
        title={t("Latest messages")}
        note={t("{n} of {all} would be refused", {
          n: countRefused(check),
          all: check.messages.length,
        })}
      >
        {check.messages.map(({ partition, offset, violations }) => (
          <div key={`${partition}/${offset}`}>
            <State kind={violations.length === 0 ? "ok" : "bad"}>
              <span class="mono">{`${partition} / ${formatNumber(offset)}`}</span>
            </State>
            {violations.slice(0, VIOLATIONS_SHOWN).map(({ field, message }) => (
              <p key={`${field} ${message}`} class="hint hint-bad wrap">
                <code>{field === "" ? "payload" : field}</code> {message}
              </p>
            ))}
          </div>
        ))}
      </Section>
    </>
  );
}

function SaveDialog(props: {
  path: string;
  etag: string | undefined;
  before: string;
  text: string;
  check: Check;
  onClose: () => void;
  onSaved: () => Promise<void>;
  onConflict: () => void;
}) {
  const { check } = props;
  const refused = countRefused(check);
  const [compatibility, setCompatibility] = useState(
    check.is_backward_compatible ? "backward" : "none",
  );
  return (
    <FormDialog
      title={t("Save the schema")}
      submit={t("Save")}
      isDestructive={refused > 0 || !check.is_backward_compatible}
      isWide
      onClose={props.onClose}
      onSubmit={async () => {
        const json: unknown = JSON.parse(props.text);
        const headers = onlyIf(props.etag);
        try {
          const path = withQuery(props.path, { compatibility });
          await callBroker(path, { method: "POST", json, headers });
        } catch (error) {
          if (!(error instanceof ApiFailure) || error.status !== 412) throw error;
          props.onConflict();
          return;
        }
        say(t("Saved."));
        await props.onSaved();
      }}
    >
      <p class="lead">
        {refused === 0
          ? t("The latest {n} messages fit.", { n: check.messages.length })
          : t("{n} of the latest {all} messages would have been refused.", {
              n: refused,
              all: check.messages.length,
            })}
      </p>
      <Diff before={props.before} after={format(JSON.parse(props.text))} />
      <SelectField
        label={t("Compatibility")}
        value={compatibility}
        options={[
          ["none", t("Not checked")],
          ["backward", t("New readers read old messages")],
        ]}
        onChange={setCompatibility}
      />
    </FormDialog>
  );
}

function countRefused({ messages }: Check): number {
  return messages.filter(({ violations }) => violations.length > 0).length;
}

function format(document: unknown): string {
  return JSON.stringify(document, null, 2);
}
