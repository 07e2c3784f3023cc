// Edits a route: fields or JSON on the left, beside them what saving would change, as the gateway finds it without saving.
import { useState } from "preact/hooks";
import type { ApiFailure, FieldProblem } from "../api/api.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { may } from "../session/session.ts";
import { useCommands } from "../stage/stage.ts";
import { CodeEditor } from "../view/code-editor.tsx";
import { Action, Segments } from "../view/controls.tsx";
import type { EditorProblem } from "../view/editor-text.ts";
import { readJson } from "../view/json-fault.ts";
import { toFailure } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { describeFault } from "../words/fault.ts";
import { t } from "../words/words.ts";
import { RouteConflictView, RouteDeleted } from "./route-conflict.tsx";
import { DryRun, useDryRun } from "./route-dry-run.tsx";
import { RouteForm } from "./route-form.tsx";
import { isSame, type Settings } from "./route-versions.ts";
import {
  CHANGE,
  formatSettings,
  nameOf,
  pathOfName,
  saveRoute,
  type Route,
  type RouteCheck,
} from "./routes.ts";

const PLACE = /^body:(\d+):(\d+)/;

/** Properties of the editor. */
interface RouteEditorProps {
  /** The route as it was when editing began; undefined for a new one. */
  base?: { settings: Settings; etag: string };
  /** Settings that a new route begins with. */
  draft?: Settings;
}

/** The page of the editor. */
export function RouteEditor({ base: opened, draft = {} }: RouteEditorProps) {
  const [base, setBase] = useState(opened?.settings);
  const [etag, setEtag] = useState(opened?.etag ?? null);
  const [text, setText] = useState(() => formatSettings(opened?.settings ?? draft));
  const [theirs, setTheirs] = useState<Settings | null | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const isJson = queryValue("as") === "json";
  const read = readJson(text);
  const settings = isSettings(read.value) ? read.value : undefined;
  const name = settings === undefined ? "" : safeNameOf(settings);
  // A dry run before a conflict was of another version of the route.
  const [round, setRound] = useState(0);
  const checked = useDryRun(text, read.problem === undefined, round);
  const fields = checked.failure?.fields ?? [];
  const isChanged = base === undefined || !isSame(settings, base);
  const release = useUnsaved(!isSame(settings, base ?? draft));
  // Another change of this route while it is edited here.
  const found = checked.check?.before;
  const isMine = base !== undefined && found !== undefined && safeNameOf(base) === name;
  const isStale = isMine && !isSame(found, base);
  const compare = (current: Settings | null | undefined, tag: string | null): void => {
    setTheirs(current);
    setEtag(tag);
    setRound(round + 1);
  };

  const save = async (check: RouteCheck): Promise<void> => {
    setBusy(true);
    setFailure(undefined);
    try {
      // A route with another name is replaced as it was shown.
      const conflict = await saveRoute(text, isMine ? etag : check.before_etag);
      if (conflict === undefined) {
        say(t("The route {name} was saved.", { name }));
        release();
        navigate(pathOfName(name));
      } else {
        compare(conflict.current, conflict.etag);
      }
    } catch (error) {
      setFailure(toFailure(error));
    } finally {
      setBusy(false);
    }
  };
  const blocked = isBusy
    ? t("Being saved")
    : !isChanged
      ? t("Nothing was changed")
      : checked.check === undefined
        ? t("The gateway does not accept the settings yet")
        : undefined;
  useCommands([
    {
      label: t("Save"),
      icon: "down",
      needs: CHANGE,
      run: () => {
        if (blocked === undefined && checked.check !== undefined) void save(checked.check);
      },
    },
  ]);
  if (theirs === null) {
    const addAgain = (): void => {
      setBase(undefined);
      setTheirs(undefined);
    };
    return <RouteDeleted name={name} onContinue={addAgain} onDiscard={release} />;
  }
  if (theirs !== undefined) {
    return (
      <Split>
        <Title isName>{name}</Title>
        <RouteConflictView
          base={base ?? {}}
          mine={settings ?? {}}
          theirs={theirs}
          onResolve={(merged) => {
            setText(formatSettings(merged));
            setBase(theirs);
            setTheirs(undefined);
          }}
        />
      </Split>
    );
  }
  return (
    <Split
      isWide
      pane={
        <DryRun
          checked={checked}
          isNew={base === undefined}
          isStale={isStale}
          renamed={base === undefined || isMine || found === undefined ? "" : safeNameOf(base)}
          onCompare={() => compare(found, checked.check?.before_etag ?? null)}
        />
      }
    >
      <Title
        isName={base !== undefined}
        actions={
          <>
            <a
              class="btn sm"
              href={href(base === undefined ? "/gateway/routes" : pathOfName(name))}
            >
              {t("Cancel")}
            </a>
            <Action
              kind="primary"
              needs={CHANGE}
              blocked={blocked}
              onClick={() => void save(checked.check!)}
            >
              {t("Save")}
            </Action>
          </>
        }
      >
        {base === undefined ? t("New route") : safeNameOf(base)}
      </Title>
      <div class="sec form">
        <Segments
          label={t("Edit as")}
          value={isJson ? "json" : "form"}
          options={[
            ["form", t("Fields")],
            ["json", "JSON"],
          ]}
          onChange={(as) => setQuery({ as: as === "json" ? as : undefined }, { replace: true })}
        />
        {failure !== undefined && <Problem failure={failure} />}
        {isJson || settings === undefined ? (
          <CodeEditor
            label={t("Route as JSON")}
            value={text}
            language="json"
            minLines={16}
            readOnly={!may(CHANGE)}
            problems={read.problem === undefined ? fields.map(placeProblem) : [read.problem]}
            onInput={setText}
          />
        ) : (
          <RouteForm
            settings={settings}
            problems={fields}
            isNamed={base !== undefined}
            onChange={(next) => setText(formatSettings(next))}
          />
        )}
      </div>
    </Split>
  );
}

function isSettings(value: unknown): value is Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// While it is typed, a name can have any type.
function safeNameOf({ host, prefix, methods, variant }: Settings): string {
  const list = Array.isArray(methods) ? { methods: methods.map(String) } : {};
  const own = {
    ...(typeof host === "string" ? { host } : {}),
    ...(typeof variant === "string" ? { variant } : {}),
  };
  return nameOf({ prefix: typeof prefix === "string" ? prefix : "", ...own, ...list } as Route);
}

function placeProblem(problem: FieldProblem): EditorProblem {
  const [, line = "1", column] = PLACE.exec(problem.source ?? "") ?? [];
  const message = describeFault(problem) ?? problem.message;
  return {
    line: Number(line),
    ...(column === undefined ? {} : { column: Number(column) }),
    message: problem.path === "" ? message : `${problem.path}: ${message}`,
  };
}
