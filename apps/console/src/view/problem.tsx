// A failure as the user sees it: the sentence, code, trace id to copy, and the time until a retry.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { ApiFailure } from "../api/api.ts";
import { isTransient } from "../api/retry.ts";
import { formatTime } from "../format/format.ts";
import { href } from "../router/router.ts";
import { loss } from "../stage/loss.ts";
import { t } from "../words/words.ts";
import { StateMark } from "./state.tsx";
import { CopyButton } from "./copy.tsx";
import type { Loaded } from "./load.ts";
import { Empty } from "./pane.tsx";
import { ProblemText } from "./problem-text.tsx";

/** A failure, with a button that repeats what failed. */
export function Problem(props: {
  failure: ApiFailure;
  retry?: () => void;
  /** Epoch ms of the first failure of something that is tried again by itself. */
  sinceMs?: number | undefined;
}) {
  const { failure, retry, sinceMs } = props;
  const [left, setLeft] = useState(failure.retryAfterS ?? 0);
  useEffect(() => {
    setLeft(failure.retryAfterS ?? 0);
    if (failure.retryAfterS === undefined) return undefined;
    const timer = setInterval(() => setLeft((value) => Math.max(0, value - 1)), 1000);
    return () => clearInterval(timer);
  }, [failure]);
  return (
    <div class="problem" role="alert">
      <StateMark kind={failure.status === 403 || failure.status === 501 ? "warn" : "bad"} />
      <div>
        <b>{titleOf(failure)}</b>
        <ProblemText failure={failure} />
        {sinceMs !== undefined && (
          <p>{t("Since {time}; retried automatically.", { time: formatTime(sinceMs) })}</p>
        )}
        <p class="problem-meta">
          {failure.status > 0 && <code>{failure.status}</code>}
          {failure.code !== "" && <code>{failure.code}</code>}
          {failure.traceId !== "" && (
            <>
              <code>{failure.traceId}</code>
              <CopyButton text={failure.traceId} label={t("Copy trace id")} />
            </>
          )}
        </p>
        {retry !== undefined && (
          <button type="button" class="btn sm" disabled={left > 0} onClick={retry}>
            {left > 0 ? t("Retry in {n} s", { n: left }) : t("Retry")}
          </button>
        )}
      </div>
    </div>
  );
}

/** The list in which something that does not exist would be. */
export interface Whole {
  /** Path below `/ui`. */
  to: string;
  label: string;
}

/** Says that something does not exist, with the way to all that does. */
export function Missing({ children, to, label }: Whole & { children: ComponentChildren }) {
  return (
    <Empty title={t("Not found")}>
      {children}
      <a class="link" href={href(to)}>
        {label}
      </a>
    </Empty>
  );
}

/**
 * The failure of a load. Data of before stays in use: then one line says that it is older, unless the trace strip does
 * already.
 */
export function LoadProblem<Data>({ of }: { of: Loaded<Data> }) {
  const failure = of.failure.value;
  if (failure === undefined) return null;
  const retry = (): void => void of.reload();
  const isRepeated = isTransient(failure);
  const sinceMs = isRepeated ? of.failedMs.value : undefined;
  if (!isRepeated || of.data.value === undefined) {
    return <Problem failure={failure} retry={retry} sinceMs={sinceMs} />;
  }
  if (loss.value !== undefined) return null;
  return (
    <p class="banner" role="status">
      {t("No answer since {time}; earlier data is shown.", {
        time: formatTime(sinceMs ?? Date.now()),
      })}{" "}
      <button type="button" class="link" onClick={retry}>
        {t("Retry")}
      </button>
    </p>
  );
}

/** Shows a failure, nothing while loading, or the data. */
export function Loading<Data>({
  of,
  whole,
  children,
}: {
  of: Loaded<Data>;
  /** Shown if the data does not exist. */
  whole?: Whole | undefined;
  children: (data: Data) => ComponentChildren;
}) {
  const data = of.data.value;
  const failure = of.failure.value;
  if (failure?.status === 404 && whole !== undefined) {
    return (
      <Missing {...whole}>
        <ProblemText failure={failure} />
      </Missing>
    );
  }
  return (
    <>
      <LoadProblem of={of} />
      {data === undefined
        ? failure === undefined && (
            <p class="loading" role="status">
              {t("Loading …")}
            </p>
          )
        : children(data)}
    </>
  );
}

function titleOf(failure: ApiFailure): string {
  if (failure.status === 0 || failure.reason === "service_down") return t("No answer");
  if (failure.status === 501) return t("Not in this version");
  if (failure.status === 403) return t("Not permitted");
  if (failure.status === 404) return t("Not found");
  if (failure.status === 412) return t("Changed meanwhile");
  if (failure.status === 429) return t("Too many requests");
  if (failure.status >= 500) return t("The service failed");
  return t("Refused");
}
