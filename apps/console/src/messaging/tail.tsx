// The live tail of a topic: rows as they come, a filter, and the chosen message.
import "../view/tail.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { formatNumber, formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { Action, FilterField, Segments } from "../view/controls.tsx";
import { formatListener, useListeners } from "../session/listeners.ts";
import { Empty, Split } from "../view/pane.tsx";
import { useTailCommands } from "../view/tail-commands.ts";
import { TailView } from "../view/tail-view.ts";
import { t } from "../words/words.ts";
import { withQuery } from "../api/api.ts";
import { callBroker } from "./broker.ts";
import { compileFilter, createParser, type Filter, type Message } from "./messages.ts";
import { fillRow } from "./message-row.ts";
import { MessageDetail } from "./message-detail.tsx";
import { LagList } from "./lag-list.tsx";
import { TailStream } from "./tail-stream.ts";

const CAPACITY = 20_000;
const FIRST_ROWS = 200;
const COUNT_MS = 1_000;

/** The tab. */
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
  current.current = { filter, form };
  const stream = useMemo(() => {
    const parse = createParser();
    return new TailStream(topic, partitions, (raw) => {
      seen.current.received += 1;
      const message = parse(raw);
      stream.remember(message.partition, message.offset);
      if (!current.current.filter.accepts(raw, () => message)) return;
      seen.current.kept += 1;
      view.current?.push(raw);
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
    void loadLatest(topic, tail, () => current.current.filter);
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
    const kept = [...tail.newest()].reverse();
    const parse = createParser();
    tail.clear();
    for (const raw of kept) if (filter.accepts(raw, () => parse(raw))) tail.push(raw);
    if (text === "") void loadLatest(topic, tail, () => current.current.filter);
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
        {counts.isEmpty && counts.received === 0 && (
          <div class="tail-empty">
            <Empty title={t("No messages yet")}>
              <div class="cmd">
                <i aria-hidden="true">$</i>
                <code>{`echo hello | kcat -P -b ${formatListener("pulse/kafka")} -t ${topic}`}</code>
              </div>
            </Empty>
          </div>
        )}
      </div>
    </Split>
  );
}

/** The last stored messages, so that the page begins with something to read. */
async function loadLatest(
  topic: string,
  tail: TailView<Message>,
  readFilter: () => Filter,
): Promise<void> {
  if (tail.kept > 0) return;
  const path = withQuery("/tail", { topic, n: FIRST_ROWS });
  const found = await callBroker<{ messages: Message[] }>(path).catch(() => undefined);
  if (found === undefined || tail.kept > 0) return;
  // The filter may have changed meanwhile.
  const { accepts } = readFilter();
  for (const message of found.messages) {
    const raw = JSON.stringify(message);
    if (accepts(raw, () => message)) tail.push(raw);
  }
}
