// The log of all services: lines as they are written, a filter, and the chosen line.
import type { Answer } from "../contract/answer.ts";
import "../view/tail.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { LogLine } from "@platform/console/contract";
import { type ApiFailure, withQuery } from "../api/api.ts";
import { isTransient } from "../api/retry.ts";
import { compareTimes, formatMoment, formatNumber, formatTime } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { JsonBlock } from "../view/json.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import { useTailCommands } from "../view/tail-commands.ts";
import { TailView } from "../view/tail-view.ts";
import { t } from "../words/words.ts";
import { ErrorDetail, readError } from "./error-detail.tsx";
import { LogStream, type LogFilter } from "./log-stream.ts";
import { isTraceId, tracePath } from "./trace.ts";

const CAPACITY = 20_000;
const FIRST_LINES = 300;
/** A filter is applied when typing has paused. */
const TYPING_MS = 250;
/** Pages of 8 MiB that are searched for the first lines. */
const PAGES_MAX = 5;
const LEVELS = ["debug", "info", "warn", "error"] as const;

export function LogsPage() {
  useCrumbs([{ label: t("Runtime") }, { label: t("Logs") }]);
  const filter: LogFilter = {
    service: queryValue("service"),
    level: queryValue("level"),
    q: queryValue("q"),
  };
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<TailView<LogLine> | undefined>(undefined);
  const chosen = useSignal<LogLine | undefined>(undefined);
  const [held, setHeld] = useState({ isHeld: false, newer: 0 });
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [first, setFirst] = useState<"loading" | "loaded" | "empty">("loading");
  const [stream, setStream] = useState<LogStream | undefined>(undefined);
  const names = useLoad("names", () =>
    callService<Answer<"runtime", "GET /services">>("runtime", "/services"),
  );
  const key = JSON.stringify(filter);
  useEffect(() => {
    const stop = new AbortController();
    let opened: LogStream | undefined;
    const isPhone = matchMedia("(max-width: 760px)").matches;
    const tail = new TailView<LogLine>(host.current!, {
      capacity: CAPACITY,
      rowPx: isPhone ? 55 : 26,
      parse: (raw) => JSON.parse(raw) as LogLine,
      fill: (element, line) => fillLine(element, line, filter.q),
      onFollow: (following, newer) => setHeld({ isHeld: !following, newer }),
      onPick: (line) => {
        chosen.value = line;
      },
    });
    view.current = tail;
    setFirst("loading");
    const open = (): void => {
      const shown = new Set<string>();
      let last = "";
      const add = (lines: readonly LogLine[]): void => {
        for (const line of lines) {
          if (shown.has(line.id)) continue;
          tail.push(JSON.stringify(line));
          last = line.id;
        }
        setFirst(tail.kept === 0 ? "empty" : "loaded");
      };
      // Lines that come while the first ones are loaded wait, so that the order is that of the log.
      let waiting: LogLine[] | undefined = [];
      const load = async (): Promise<void> => {
        const newest = await loadLines(filter, stop.signal);
        // After a loss the rows stay, and those that were missed follow; after a long one there would be a gap.
        const known = newest.findIndex(({ id }) => id === last);
        if (known === -1) tail.clear();
        add(newest.slice(known + 1));
        for (const { id } of newest) shown.add(id);
        add(waiting ?? []);
        waiting = undefined;
        shown.clear();
        setFailure(undefined);
      };
      opened = new LogStream(
        filter,
        (lines) => (waiting === undefined ? add(lines.toSorted(byTime)) : waiting.push(...lines)),
        () => {
          waiting ??= [];
          load().catch((error: unknown) => {
            const found = toFailure(error);
            // Without an answer the stream is lost, too, and says so; they are loaded when it is open again.
            if (!stop.signal.aborted && !isTransient(found)) setFailure(found);
          });
        },
      );
      setStream(opened);
    };
    const timer = setTimeout(open, TYPING_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
      opened?.close();
      tail.destroy();
    };
  }, [key]);

  const toggle = useTailCommands(view, held.isHeld);
  const state = stream?.state.value;
  const missed = stream?.missed.value ?? 0;
  // A stream that is refused says no reason; the list of services requires the same permission.
  const refusal =
    failure ?? (names.failure.value?.status === 403 ? names.failure.value : undefined);
  return (
    <Split
      pane={chosen.value === undefined ? undefined : <LinePane line={chosen.value} />}
      onClosePane={() => (chosen.value = undefined)}
    >
      <h1 class="hidden">{t("Logs")}</h1>
      <div class="bar">
        <FilterField
          label={t("Text in the message or a field")}
          value={filter.q}
          isMono
          onInput={(value) => setQuery({ q: value }, { replace: true })}
        />
        <select
          class="field field-auto"
          aria-label={t("Service")}
          value={filter.service}
          onChange={(event) => setQuery({ service: event.currentTarget.value })}
        >
          <option value="">{t("All services")}</option>
          <option value="platform">platform</option>
          {(names.data.value?.items ?? []).map(({ id, label }) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
        <select
          class="field field-auto"
          aria-label={t("Level")}
          value={filter.level}
          onChange={(event) => setQuery({ level: event.currentTarget.value })}
        >
          <option value="">{t("All levels")}</option>
          {LEVELS.slice(1).map((level) => (
            <option key={level} value={level}>
              {t("{level} and above", { level })}
            </option>
          ))}
        </select>
        <Action onClick={toggle} icon={held.isHeld ? "play" : "pause"} shortcut="space">
          {held.isHeld ? t("Continue") : t("Hold")}
        </Action>
      </div>
      {refusal !== undefined && <Problem failure={refusal} />}
      {state?.kind === "lost" && refusal === undefined && (
        <p class="banner" role="status">
          {t("The stream is lost since {time}; it is connected again.", {
            time: formatTime(state.since),
          })}
        </p>
      )}
      {missed > 0 && (
        <p class="banner" role="status">
          {t("{n} lines came faster than this page reads; they are in the log.", {
            n: formatNumber(missed),
          })}
        </p>
      )}
      <div class="tail-frame log">
        <div class="tail-head" aria-hidden="true">
          <span>{t("Time")}</span>
          <span>{t("Level")}</span>
          <span>{t("Service")}</span>
          <span>{t("Message")}</span>
        </div>
        <div ref={host} class="tail" role="grid" aria-label={t("Lines of the log")} tabIndex={0} />
        {held.isHeld && (
          <button type="button" class="pill" onClick={() => view.current?.follow()}>
            {t("Held")}
            {held.newer > 0 && <> · {t("{n} newer", { n: formatNumber(held.newer) })}</>}
            <kbd>end</kbd>
          </button>
        )}
        {first === "loading" && refusal === undefined && (
          <p class="loading tail-empty" role="status">
            {t("Loading …")}
          </p>
        )}
        {first === "empty" && (
          <div class="tail-empty">
            <Empty title={t("No line matches")} />
          </div>
        )}
      </div>
    </Split>
  );
}

/** Services write side by side, so that their lines do not arrive in the order of the time that is shown. */
const byTime = (one: LogLine, other: LogLine): number =>
  compareTimes(one.timestamp, other.timestamp);

/** The newest lines, oldest first. A page of the log can be empty although older ones match. */
async function loadLines(filter: LogFilter, signal: AbortSignal): Promise<LogLine[]> {
  const found: LogLine[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX && found.length < FIRST_LINES; page += 1) {
    const path = withQuery("/logs", { ...filter, limit: FIRST_LINES, cursor });
    const { items, next_cursor: next } = await callService<Answer<"runtime", "GET /logs">>(
      "runtime",
      path,
      { signal },
    );
    found.push(...items);
    if (next === null) break;
    cursor = next;
  }
  return found.reverse().sort(byTime);
}

/** Fills a pooled row by text nodes: messages contain data of strangers. */
function fillLine(element: HTMLElement, line: LogLine, mark: string): void {
  const kind = line.level === "error" ? "bad" : line.level === "warn" ? "warn" : "i3";
  const cells: [string, string][] = [
    ["tail-time", formatTime(line.timestamp, true)],
    [kind, line.level],
    ["i2", line.service],
    ["tail-payload", `${line.msg}${describeFields(line.fields)}`],
  ];
  element.replaceChildren(
    ...cells.map(([name, text], index) => {
      const cell = document.createElement("span");
      cell.className = name;
      cell.setAttribute("role", "gridcell");
      cell.append(...(index === 3 ? markText(text, mark) : [text]));
      return cell;
    }),
  );
}

function markText(text: string, mark: string): (string | Node)[] {
  const at = mark === "" ? -1 : text.toLowerCase().indexOf(mark.toLowerCase());
  if (at === -1) return [text];
  const marked = document.createElement("mark");
  marked.textContent = text.slice(at, at + mark.length);
  return [text.slice(0, at), marked, text.slice(at + mark.length)];
}

const FIELDS_SHOWN = 6;

function describeFields(fields: Record<string, unknown>): string {
  return Object.entries(fields)
    .filter(([name]) => name !== "span_id" && name !== "version")
    .slice(0, FIELDS_SHOWN)
    .map(
      ([name, value]) => `  ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    )
    .join("");
}

function LinePane({ line }: { line: LogLine }) {
  const error = readError(line.fields);
  return (
    <>
      <Section
        title={line.service}
        note={line.level}
        action={<CopyButton text={JSON.stringify(line, null, 2)} label={t("Copy the line")} />}
      >
        <p class="log-message">{line.msg}</p>
        <div class="space" />
        <Facts>
          <FactRow term={t("Time")}>{formatMoment(line.timestamp)}</FactRow>
          {line.trace_id !== "" && (
            <FactRow term={t("Trace")} isMono>
              <span class="wrap">{line.trace_id}</span>{" "}
              {isTraceId(line.trace_id) && (
                <a class="link" href={href(tracePath(line.trace_id))}>
                  {t("All of this trace")}
                </a>
              )}
            </FactRow>
          )}
        </Facts>
      </Section>
      {error !== undefined && (
        <Section title={t("Error")}>
          <ErrorDetail of={error} />
        </Section>
      )}
      <Section title={t("Fields")}>
        <JsonBlock text={JSON.stringify(line.fields, null, 2)} mark="" />
      </Section>
    </>
  );
}
