// A setting as JSON: edited, reviewed with its consequences, and saved only if nobody else changed it meanwhile.
import { useState } from "preact/hooks";
import type { ApiFailure } from "../api/api.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { Action } from "../view/controls.tsx";
import { CodeEditor } from "../view/code-editor.tsx";
import { ConflictNotice } from "../view/conflict.tsx";
import { Diff } from "../view/diff.tsx";
import { FormDialog } from "../view/dialog.tsx";
import type { EditorProblem } from "../view/editor-text.ts";
import { readJson } from "../view/json-fault.ts";
import { placeFaults } from "../view/json-place.ts";
import { toFailure, useLoad } from "../view/load.ts";
import { Loading, Problem } from "../view/problem.tsx";
import { StateMark } from "../view/state.tsx";
import { say } from "../view/toast.tsx";
import { describeFault } from "../words/fault.ts";
import { t } from "../words/words.ts";
import type { Bucket } from "./objects.ts";
import { readSetting, writeSetting, type StoredSetting } from "./setting.ts";
import type { Consequence, SettingKind } from "./setting-kinds.ts";

/** Properties of the editor. */
interface SettingEditorProps {
  bucket: Bucket;
  kind: SettingKind;
  /** Why it may not be changed. */
  denial: string | undefined;
  onSaved: () => Promise<void>;
}

/** The editor of one setting. */
export function SettingEditor(props: SettingEditorProps) {
  const { bucket, kind } = props;
  const loaded = useLoad(`${bucket.name} ${kind.name}`, (signal) =>
    readSetting(bucket.name, kind.name, signal),
  );
  // A new editor after each save: services add members, such as the ids of rules.
  const [savedCount, setSavedCount] = useState(0);
  return (
    <Loading of={loaded}>
      {(stored) => (
        <Editor
          key={savedCount}
          {...props}
          stored={stored}
          replace={async () => {
            await loaded.reload();
            setSavedCount((count) => count + 1);
            await props.onSaved();
          }}
          reload={() => void loaded.reload()}
        />
      )}
    </Loading>
  );
}

/** A change that waits for its confirmation. */
interface Review {
  document: unknown;
  consequences: readonly Consequence[];
}

/** Properties of the text and its buttons. */
interface EditorProps extends SettingEditorProps {
  stored: StoredSetting;
  reload: () => void;
  /** Shows what is stored now in a new editor; what was begun in this one is gone then. */
  replace: () => Promise<void>;
}

function Editor(props: EditorProps) {
  const { bucket, kind, denial, stored } = props;
  const before = stored.document === undefined ? "" : format(stored.document);
  const [started] = useState(before === "" ? format(kind.sample(bucket.name)) : before);
  const [text, setText] = useState(started);
  const release = useUnsaved(text !== started && text !== before);
  const [problems, setProblems] = useState<readonly EditorProblem[]>([]);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [review, setReview] = useState<Review | undefined>(undefined);
  const fail = (error: unknown): void => {
    const found = toFailure(error);
    const faults = found.fields.map((fault) => ({
      path: fault.path,
      message: describeFault(fault) ?? fault.message,
    }));
    const places = placeFaults(text, faults);
    setProblems(places);
    setFailure(places.length > 0 ? undefined : found);
  };
  const open = async (document: unknown): Promise<void> => {
    setProblems([]);
    setFailure(undefined);
    try {
      setReview({ document, consequences: await kind.describe(bucket, document) });
    } catch (error) {
      fail(error);
    }
  };
  const save = (): void => {
    const { value, problem } = readJson(text);
    if (problem !== undefined) setProblems([problem]);
    else if (isObject(value)) void open(value);
    else setProblems([{ line: 1, message: t("A setting is a JSON object: { … }") }]);
  };
  const write = async (): Promise<void> => {
    try {
      await writeSetting(bucket.name, kind.name, review!.document, stored.etag);
    } catch (error) {
      fail(error);
      return;
    }
    release();
    say(t("Saved."));
    // The dialog covers the editor until there is a new one.
    await props.replace();
  };
  return (
    <div class="setting-editor">
      {stored.document === undefined && (
        <p class="lead">{t("Not set. The text below is an example.")}</p>
      )}
      <CodeEditor
        label={t("{setting} as JSON", { setting: kind.label })}
        language="json"
        value={text}
        problems={problems}
        minLines={12}
        onInput={(next) => {
          setText(next);
          setProblems([]);
        }}
      />
      {kind.isOwn !== true && (
        <p class="hint">{t("Members are named as in the command line of AWS.")}</p>
      )}
      {failure !== undefined && <Problem failure={failure} />}
      {failure?.status === 412 && (
        <ConflictNotice
          onCompare={() => {
            setFailure(undefined);
            props.reload();
          }}
        />
      )}
      <div class="row">
        <Action
          kind="primary"
          isSmall={false}
          onClick={save}
          blocked={denial ?? (text === before ? t("Nothing was changed") : undefined)}
        >
          {t("Review and save…")}
        </Action>
        <Action
          kind="bad"
          isSmall={false}
          onClick={() => void open(undefined)}
          blocked={denial ?? (stored.document === undefined ? t("It is not set") : undefined)}
        >
          {t("Remove…")}
        </Action>
      </div>
      {review !== undefined && (
        <FormDialog
          title={
            review.document === undefined
              ? t("Remove: {setting} of {name}", { setting: kind.label, name: bucket.name })
              : t("Save: {setting} of {name}", { setting: kind.label, name: bucket.name })
          }
          submit={review.document === undefined ? t("Remove") : t("Save")}
          isDestructive={
            review.document === undefined || review.consequences.some((one) => one.isWarning)
          }
          isWide
          onClose={() => setReview(undefined)}
          onSubmit={write}
        >
          {review.consequences.map(({ text: said, isWarning = false }) => (
            <p key={said} class="lead">
              <StateMark kind={isWarning ? "warn" : "ok"} /> {said}
            </p>
          ))}
          <Diff
            before={before}
            after={review.document === undefined ? "" : format(review.document)}
          />
        </FormDialog>
      )}
    </div>
  );
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function format(document: unknown): string {
  return JSON.stringify(document, null, 2);
}
