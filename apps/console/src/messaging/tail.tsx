// The live tail of a topic: rows as they come, a filter, and the chosen message.
import type { Answer } from "../contract/answer.ts";
import "../view/tail.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { formatNumber, formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { Action, FilterField, Segments } from "../view/controls.tsx";
import { DEFAULT_TENANT, publishCommand, useListeners } from "../session/listeners.ts";
import { Empty, Split } from "../view/pane.tsx";
import { useTailCommands } from "../view/tail-commands.ts";
import { TailView } from "../view/tail-view.ts";
import { t } from "../words/words.ts";
import { type ApiFailure, withQuery } from "../api/api.ts";
import { isTransient } from "../api/retry.ts";
import { toFailure } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { callBroker, chosenTenant } from "./broker.ts";
import { compileFilter, createParser, type Filter, type Message } from "./messages.ts";
import { fillRow } from "./message-row.ts";
import { MessageDetail } from "./message-detail.tsx";
import { LagList } from "./lag-list.tsx";
import { TailStream } from "./tail-stream.ts";

const CAPACITY = 20_000;
const FIRST_ROWS = 200;
const COUNT_MS = 1_000;

export function TailTab({ topic, partitions }: { topic: string; partitions: number }) {
  const host = useRef<HTMLDivElement>(null);
  useListeners();
  const view = useRef<TailView<Message> | undefined>(undefined);
  const seen = useRef({ received: 0, kept: 0 });
  const [held, setHeld] = useState<{ isHeld: boolean; newer: number }>({ isHeld: false, newer: 0 });
  const [counts, setCounts] = useState({ received: 0, kept: 0, rate: 0, isEmpty: false });
  const chosen = useSignal<Message | undefined>(undefined);
  const text = queryValue("filter");
  const form = queryValue("form") === "json" ? "json" : "line";
  const filter = useMemo(() => compileFilter(text), [text]);
  const current = useRef({ filter, form });
  const filtered = useRef(text);
  current.current = { filter, form };
  const [first, setFirst] = useState<"loading" | "loaded" | ApiFailure>("loading");
  const stream = useMemo(() => {
    const parse = createParser();
    const add = (raw: string): void => {
      const message = parse(raw);
      stream.remember(message);
      seen.current.received += 1;
      if (!current.current.filter.accepts(raw, () => message)) return;
      seen.current.kept += 1;
      view.current?.push(raw);
    };
    // Messages that come while stored ones are loaded wait, so that each is shown once and in its order.
    let waiting: string[] | undefined;
    const load = async (): Promise<void> => {
      waiting = [];
      try {
        for (const message of await loadLatest(topic)) {
          if (stream.isKnown(message)) continue;
          stream.remember(message);
          const raw = JSON.stringify(message);
          if (current.current.filter.accepts(raw, () => message)) view.current?.push(raw);
        }
        setFirst("loaded");
      } catch (error) {
        // Of a lost connection the stream itself says so; when it is open again, they are loaded again.
        const failure = toFailure(error);
        if (!isTransient(failure)) setFirst(failure);
      } finally {
        const came = waiting;
        waiting = undefined;
        for (const raw of came) if (!stream.isKnown(parse(raw))) add(raw);
      }
    };
    return new TailStream(topic, partitions, {
      message: (raw) => (waiting === undefined ? add(raw) : waiting.push(raw)),
      open: () => {
        if (!stream.isComplete && waiting === undefined) void load();
      },
    });
  }, [topic, partitions]);

  useEffect(() => {
    const isPhone = matchMedia("(max-width: 760px)").matches;
    const tail = new TailView<Message>(host.current!, {
      capacity: CAPACITY,
      rowPx: isPhone ? 55 : 26,
      parse: createParser(),
      fill: (element, message) => fillRow(element, message, current.current.filter.mark, isPhone),
      onFollow: (following, newer) => setHeld({ isHeld: !following, newer }),
      onPick: (message) => {
        chosen.value = message;
      },
    });
    view.current = tail;
    let before = 0;
    const timer = setInterval(() => {
      const { received, kept } = seen.current;
      setCounts({ received, kept, rate: received - before, isEmpty: tail.kept === 0 });
      before = received;
    }, COUNT_MS);
    return () => {
      clearInterval(timer);
      tail.destroy();
      stream.close();
    };
  }, [stream]);
  useEffect(() => {
    const tail = view.current;
    if (tail === undefined) return;
    // The first rows come with the stream.
    if (text === filtered.current) return;
    filtered.current = text;
    const kept = [...tail.newest()].reverse();
    const parse = createParser();
    tail.clear();
    for (const raw of kept) if (filter.accepts(raw, () => parse(raw))) tail.push(raw);
    if (text === "" && tail.kept === 0) void refill(topic, tail, () => current.current.filter);
  }, [text]);

  const toggle = useTailCommands(view, held.isHeld);
  const state = stream.state.value;
  return (
    <Split
      pane={
        <>
          {chosen.value !== undefined && (
            <MessageDetail message={chosen.value} mark={filter.mark} />
          )}
          <LagList topic={topic} />
        </>
      }
      onClosePane={chosen.value === undefined ? undefined : () => (chosen.value = undefined)}
    >
      <div class="bar">
        <FilterField
          label={t("Text, or: ship_to = AT or total > 500")}
          value={text}
          isMono
          note={
            text === ""
              ? `${formatNumber(counts.rate)}/s`
              : t("{n} of {all}", {
                  n: formatNumber(counts.kept),
                  all: formatNumber(counts.received),
                })
          }
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Segments
          label={t("Form")}
          value={form}
          options={[
            ["line", t("Line")],
            ["json", "JSON"],
          ]}
          onChange={(value) => setQuery({ form: value === "line" ? undefined : value })}
        />
        <Action onClick={toggle} icon={held.isHeld ? "play" : "pause"} shortcut="space">
          {held.isHeld ? t("Continue") : t("Hold")}
        </Action>
      </div>
      {state.kind === "lost" && (
        <p class="banner" role="status">
          {t("The stream is lost since {time}; it continues where it was.", {
            time: formatTime(state.since),
          })}{" "}
          {state.reason}
        </p>
      )}
      {state.kind === "resumed" && (
        <p class="banner" role="status">
          {t("This page was too slow for the topic: the stream was resumed.")}
        </p>
      )}
      <div class="tail-frame">
        <div class="tail-head" aria-hidden="true">
          <span>{t("Time")}</span>
          <span>P</span>
          <span>Offset</span>
          <span>{t("Key")}</span>
          <span>{t("Payload")}</span>
        </div>
        <div
          ref={host}
          class={form === "json" ? "tail tail-json" : "tail"}
          role="grid"
          aria-label={t("Messages of {name}", { name: topic })}
          tabIndex={0}
        />
        {held.isHeld && (
          <button type="button" class="pill" onClick={() => view.current?.follow()}>
            {t("Held")}
            {held.newer > 0 && <> · {t("{n} newer", { n: formatNumber(held.newer) })}</>}
            <kbd>end</kbd>
          </button>
        )}
        {typeof first !== "string" && (
          <div class="tail-empty">
            <Problem failure={first} />
          </div>
        )}
        {first === "loading" && counts.isEmpty && (
          <p class="loading tail-empty" role="status">
            {t("Loading …")}
          </p>
        )}
        {first === "loaded" && counts.isEmpty && counts.received === 0 && (
          <div class="tail-empty">
            <Empty title={t("No messages yet")}>
              <div class="cmd">
                <i aria-hidden="true">$</i>
                <code>{publishCommand(topic, chosenTenant() ?? DEFAULT_TENANT)}</code>
              </div>
            </Empty>
          </div>
        )}
      </div>
    </Split>
  );
}

/** The last stored messages, so that the page begins with something to read. */
async function loadLatest(topic: string): Promise<Message[]> {
  const path = withQuery("/tail", { topic, n: FIRST_ROWS });
  return (await callBroker<Answer<"pulse", "GET /tail">>(path)).messages;
}

/** Shows the last stored messages again, after a filter has removed all rows. */
async function refill(
  topic: string,
  tail: TailView<Message>,
  readFilter: () => Filter,
): Promise<void> {
  const stored = await loadLatest(topic).catch(() => []);
  if (tail.kept > 0) return;
  // The filter may have changed meanwhile.
  const { accepts } = readFilter();
  for (const message of stored) {
    const raw = JSON.stringify(message);
    if (accepts(raw, () => message)) tail.push(raw);
  }
}
