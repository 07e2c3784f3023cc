// The uploads below the list: one cell a part, and what to do with those that stopped.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { formatBytes, formatDuration, formatNumber } from "../../format/format.ts";
import type { ApiFailure } from "../../api/api.ts";
import { Action } from "../../view/controls.tsx";
import { Problem } from "../../view/problem.tsx";
import { attempt } from "../../view/toast.tsx";
import { t } from "../../words/words.ts";
import { showKey } from "../objects.ts";
import { cancelUpload, removeEnded, uploads } from "./queue.ts";
import type { Upload, UploadPart } from "./upload.ts";

const TICK_MS = 500;
/** Uploads that are listed; the others are counted. */
const LISTED_MAX = 6;
const CELLS_MAX = 40;
/** Time over which the rate is measured. */
const RATE_MS = 5_000;

/** The dock; nothing without uploads. */
export function UploadDock() {
  const all = uploads.value;
  const rate = useRate();
  if (all.length === 0) return null;
  const done = all.filter(({ state }) => state.value.kind === "done");
  const open = all.filter(({ state }) => !["done", "cancelled"].includes(state.value.kind));
  const active = open.filter((upload) => upload.isActive);
  const left = active.reduce((sum, upload) => sum + upload.options.file.size - upload.sent, 0);
  const first = [...open].sort((one, other) => rank(one) - rank(other)).slice(0, LISTED_MAX);
  return (
    <section class="uploads" aria-label={t("Uploads")}>
      <header>
        <b>
          {open.length === 0
            ? t("{n} uploaded", { n: formatNumber(done.length) })
            : t("Uploading {n} of {all}", {
                n: formatNumber(open.length),
                all: formatNumber(all.length),
              })}
        </b>
        {active.length > 0 && (
          <small>
            {formatBytes(rate)}/s
            {rate > 0 && (
              <> · {t("{time} left", { time: formatDuration((left / rate) * 1_000) })}</>
            )}
          </small>
        )}
        <span class="grow" />
        {active.length > 0 && (
          <Action kind="quiet" onClick={() => active.forEach((upload) => upload.pause())}>
            {t("Pause all")}
          </Action>
        )}
        {active.length === 0 && open.some(isPaused) && (
          <Action
            kind="quiet"
            onClick={() => open.filter(isPaused).forEach((upload) => void upload.run())}
          >
            {t("Continue all")}
          </Action>
        )}
        {open.filter(hasFailed).length > 1 && (
          <Action
            kind="quiet"
            onClick={() => open.filter(hasFailed).forEach((upload) => void upload.run())}
          >
            {t("Retry all")}
          </Action>
        )}
        {active.length === 0 && (
          <Action kind="quiet" onClick={removeEnded}>
            {open.length === 0 ? t("Close") : t("Remove the finished")}
          </Action>
        )}
      </header>
      {first.map((upload) => (
        <Row key={`${upload.options.bucket}/${upload.options.key}`} upload={upload} />
      ))}
      {open.length > first.length && (
        <p class="i3">{t("{n} more", { n: formatNumber(open.length - first.length) })}</p>
      )}
    </section>
  );
}

function Row({ upload }: { upload: Upload }) {
  const { key, file } = upload.options;
  const state = upload.state.value;
  const name = showKey(key.split("/").findLast((part) => part !== "") ?? key);
  return (
    <div class="upload">
      <span class="mono cut" title={showKey(key)}>
        {name}
      </span>
      <span
        class="cells"
        role="progressbar"
        aria-label={t("Upload of {name}", { name })}
        aria-valuenow={Math.floor((upload.sent / Math.max(1, file.size)) * 100)}
      >
        {listCells(upload.parts).map((kind, index) => (
          <i key={index} class={kind} />
        ))}
      </span>
      <span class="mono i2 upload-note">{describeProgress(upload)}</span>
      <span class="acts">
        {state.kind === "exists" && (
          <Action onClick={() => void upload.replace()}>{t("Replace")}</Action>
        )}
        {state.kind === "failed" && (
          <Action onClick={() => void upload.run()} icon="again">
            {t("Retry")}
          </Action>
        )}
        {state.kind === "paused" && (
          <Action onClick={() => void upload.run()} icon="play">
            {t("Continue")}
          </Action>
        )}
        {upload.isActive && (
          <Action onClick={() => upload.pause()} icon="pause" kind="quiet">
            {t("Pause")}
          </Action>
        )}
        <Action onClick={() => void attempt(() => cancelUpload(upload))} icon="close" kind="quiet">
          {t("Cancel")}
        </Action>
      </span>
      {state.kind === "exists" && (
        <p class="upload-text">
          {t(
            "An object with this name exists, and the bucket keeps no versions: replacing deletes it.",
          )}
        </p>
      )}
      {state.kind === "failed" && (
        <div class="upload-text">
          <Problem failure={state.failure} />
          <Remedy of={state.failure} />
        </div>
      )}
    </div>
  );
}

function Remedy({ of: { status, details } }: { of: ApiFailure }) {
  if (status === 507) {
    return (
      <p class="hint">
        {t(
          "The free space is down to the reserve of the drives. Delete objects or add space, then retry: parts that arrived are kept.",
        )}
      </p>
    );
  }
  if (details["s3_code"] === "QuotaExceeded") {
    return (
      <p class="hint">
        {t(
          "The bucket's quota is used up. Delete objects or versions, or raise it in the settings.",
        )}
      </p>
    );
  }
  if (status === 403) {
    return (
      <p class="hint">
        {t(
          "No policy allows s3:PutObject here, or one denies it. The policies of your roles and of the bucket decide.",
        )}
      </p>
    );
  }
  return null;
}

function describeProgress(upload: Upload): string {
  const { file } = upload.options;
  const { kind } = upload.state.value;
  if (kind === "waiting") return t("waiting");
  if (kind === "checking") return t("checking");
  if (kind === "paused") return t("paused");
  if (kind === "exists") return t("exists");
  const again = upload.parts.find(({ tries, etag }) => tries > 1 && etag === undefined);
  if (kind === "sending" && again !== undefined) {
    return t("part {n}, try {tries}", { n: again.part, tries: again.tries });
  }
  return t("{n} of {all}", { n: formatBytes(upload.sent), all: formatBytes(file.size) });
}

/** Classes of at most 40 cells; a cell of several parts is done when all of them are. */
function listCells(parts: readonly UploadPart[]): string[] {
  const each = Math.ceil(parts.length / CELLS_MAX);
  const count = Math.ceil(parts.length / each);
  return Array.from({ length: count }, (_, index) => {
    const own = parts.slice(index * each, (index + 1) * each);
    if (own.every(({ etag }) => etag !== undefined)) return "done";
    if (own.some(({ tries, etag }) => tries > 1 && etag === undefined)) return "again";
    return own.some(({ sent }) => sent > 0) ? "sending" : "";
  });
}

/** Bytes a second of all uploads; renders the dock while they are active. */
function useRate(): number {
  const tick = useSignal(0);
  const samples = useRef<{ at: number; sent: number }[]>([]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!uploads.value.some((upload) => upload.isActive)) return;
      const now = performance.now();
      const sent = uploads.value.reduce((sum, upload) => sum + upload.sent, 0);
      samples.current = [...samples.current, { at: now, sent }].filter(
        ({ at }) => now - at <= RATE_MS,
      );
      tick.value += 1;
    }, TICK_MS);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  const [from, to] = [samples.current[0], samples.current.at(-1)];
  if (from === undefined || to === undefined || to.at === from.at) return 0;
  return Math.max(0, ((to.sent - from.sent) / (to.at - from.at)) * 1_000);
}

function isPaused({ state }: Upload): boolean {
  return state.value.kind === "paused";
}

function hasFailed({ state }: Upload): boolean {
  return state.value.kind === "failed";
}

/** Those that need the user first, then those that send. */
function rank({ state }: Upload): number {
  const order = ["failed", "exists", "sending", "checking", "paused", "waiting"];
  return order.indexOf(state.value.kind);
}
