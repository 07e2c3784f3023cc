// The transform of a topic: a WebAssembly module, tried on the latest messages before it is set.
import type { Answer } from "../contract/answer.ts";
import { useRef, useState } from "preact/hooks";
import { ApiFailure, segment } from "../api/api.ts";
import { onlyIf, readVersioned } from "../api/versioned.ts";
import { formatBytes, formatJson, formatNumber } from "../format/format.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { Diff } from "../view/diff.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Split } from "../view/pane.tsx";
import { Loading, Problem } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { brokerPath, callBroker } from "./broker.ts";

/** Limit of the service. */
const MODULE_BYTES_MAX = 6 * 1024 * 1024;
/** Characters of a payload in a comparison. */
const SHOWN_MAX = 20_000;

type Shown = Tried["before"];

type Tried = Answer<"pulse", "POST /topics/{topic}/transform/test">["messages"][number];

type Described = Answer<"pulse", "GET /topics/{topic}/transform">;

export function TransformTab({ topic, onChanged }: { topic: string; onChanged: () => void }) {
  const path = `/topics/${segment(topic)}/transform`;
  const loaded = useLoad(`transform ${topic}`, (signal) =>
    readVersioned<Described>(brokerPath(path), signal),
  );
  const headers = onlyIf(loaded.data.value?.etag);
  const [file, setFile] = useState<File | undefined>(undefined);
  const [tried, setTried] = useState<readonly Tried[] | undefined>(undefined);
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  useUnsaved(file !== undefined, ["tenant"]);
  const [isRemoving, setRemoving] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setFailure(undefined);
    try {
      await work();
    } catch (error) {
      const found = toFailure(error);
      setFailure(found);
      // The other module is shown; the next attempt replaces that.
      if (found.status === 412) void loaded.reload();
    }
  };
  const attempts = useRef(0);
  const attempt = (bytes: Blob): Promise<void> =>
    run(async () => {
      setTried(undefined);
      const mine = (attempts.current += 1);
      const answer = await callBroker<Answer<"pulse", "POST /topics/{topic}/transform/test">>(
        `${path}/test`,
        {
          method: "POST",
          bytes,
        },
      );
      // Another module was chosen meanwhile.
      if (mine === attempts.current) setTried(answer.messages);
    });
  const choose = (chosen: File | undefined): void => {
    setTried(undefined);
    setFailure(undefined);
    setFile(chosen);
    if (chosen === undefined) return;
    if (chosen.size > MODULE_BYTES_MAX) {
      const detail = t("The module has {size}; {max} is the limit.", {
        size: formatBytes(chosen.size),
        max: formatBytes(MODULE_BYTES_MAX),
      });
      setFailure(new ApiFailure(413, { detail }));
      setFile(undefined);
      return;
    }
    void attempt(chosen);
  };
  const save = (): Promise<void> =>
    run(async () => {
      await callBroker(path, { method: "PUT", bytes: file!, headers });
      say(t("The transform was set."));
      setFile(undefined);
      await loaded.reload();
      onChanged();
    });
  const isTried = tried !== undefined && (failure === undefined || failure.status === 412);
  return (
    <Split>
      <div class="narrow">
        <Loading of={loaded}>
          {({ document: set }) => (
            <Section
              title={t("Transform")}
              note={set === undefined ? t("payloads are stored as they are published") : undefined}
              action={
                set !== undefined && (
                  <>
                    <Action kind="quiet" onClick={() => void attempt(new Blob([]))}>
                      {t("Try it")}
                    </Action>
                    <Action kind="quiet" onClick={() => setRemoving(true)}>
                      {t("Remove…")}
                    </Action>
                  </>
                )
              }
            >
              {set !== undefined && (
                <Facts>
                  <FactRow term={t("Size")} isMono>
                    {formatBytes(set.bytes)}
                  </FactRow>
                  <FactRow term="SHA-256" isMono>
                    <span class="wrap">{set.sha256}</span>
                  </FactRow>
                </Facts>
              )}
            </Section>
          )}
        </Loading>
        <Section title={t("Another module")}>
          <p class="lead">
            {t(
              "A WASI command (payload on stdin, result on stdout) or a module that exports alloc and transform. It is tried on the latest messages, and only then set.",
            )}
          </p>
          <input
            ref={input}
            type="file"
            accept=".wasm,application/wasm"
            hidden
            onChange={(event) => {
              choose(event.currentTarget.files?.[0]);
              event.currentTarget.value = "";
            }}
          />
          <div class="acts">
            <Action icon="up" onClick={() => input.current?.click()}>
              {t("Choose a module…")}
            </Action>
            <Action
              kind="primary"
              onClick={() => void save()}
              blocked={
                file === undefined
                  ? t("Choose a module first")
                  : isTried
                    ? undefined
                    : t("It has not been tried")
              }
            >
              {t("Set the transform")}
            </Action>
          </div>
          {file !== undefined && (
            <p class="hint mono wrap">{`${file.name}, ${formatBytes(file.size)}`}</p>
          )}
          {failure !== undefined && <Problem failure={failure} />}
        </Section>
        {tried !== undefined && <Trial tried={tried} />}
      </div>
      {isRemoving && (
        <ConfirmDialog
          title={t("Remove the transform")}
          name={topic}
          submit={t("Remove")}
          onClose={() => setRemoving(false)}
          onSubmit={async () => {
            await callBroker(path, { method: "DELETE", headers });
            await loaded.reload();
            onChanged();
          }}
        >
          <p>{t("Payloads are stored as they are published afterwards.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

function Trial({ tried }: { tried: readonly Tried[] }) {
  const failed = tried.filter(({ error }) => error !== null).length;
  return (
    <Section
      title={t("Tried on the latest messages")}
      note={t("{n} of {all} failed", { n: failed, all: tried.length })}
    >
      {tried.length === 0 && <p class="lead">{t("The topic has no messages to try it on.")}</p>}
      {tried.map(({ partition, offset, before, after, error }) => (
        <div key={`${partition}/${offset}`} class="trial">
          <p class="mono i2">
            {t("Partition {partition}, offset {offset}", {
              partition,
              offset: formatNumber(offset),
            })}
          </p>
          {after === null ? (
            <p class="hint hint-bad wrap">{error}</p>
          ) : (
            <Diff
              before={describe(before)}
              after={describe(after)}
              label={t("Partition {partition}, offset {offset}", { partition, offset })}
            />
          )}
        </div>
      ))}
    </Section>
  );
}

function describe({ payload, bytes, is_text: isText }: Shown): string {
  if (!isText)
    return t("{n} bytes that are no text: {start}", { n: bytes, start: payload.slice(0, 200) });
  return formatJson(payload.slice(0, SHOWN_MAX));
}
