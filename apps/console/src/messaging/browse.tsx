// Stored messages: the latest ones, from a time, or from an offset.
import type { Answer } from "../contract/answer.ts";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { FilterField, Segments } from "../view/controls.tsx";
import { colourJson } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { withQuery } from "../api/api.ts";
import { callBroker } from "./broker.ts";
import { MessageDetail } from "./message-detail.tsx";
import { compileFilter, type Message } from "./messages.ts";

const COUNTS = ["100", "500", "1000"] as const;
const SHOWN_CHARACTERS = 160;

export function BrowseTab({ topic }: { topic: string }) {
  const chosen = useSignal<Message | undefined>(undefined);
  const text = queryValue("filter");
  const count = COUNTS.find((one) => one === queryValue("n")) ?? "100";
  const filter = useMemo(() => compileFilter(text), [text]);
  const loaded = useLoad(`${topic} ${count}`, () =>
    callBroker<Answer<"pulse", "GET /tail">>(withQuery("/tail", { topic, n: count })),
  );
  const selected = chosen.value;
  return (
    <Split
      pane={
        selected === undefined ? undefined : <MessageDetail message={selected} mark={filter.mark} />
      }
      onClosePane={() => (chosen.value = undefined)}
    >
      <div class="bar">
        <FilterField
          label={t("Text, or: ship_to = AT or total > 500")}
          value={text}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Segments
          label={t("Latest messages")}
          value={count}
          options={COUNTS.map((one) => [one, t("Latest {n}", { n: one })] as const)}
          onChange={(value) => setQuery({ n: value })}
        />
      </div>
      <Loading of={loaded}>
        {({ messages }) => {
          const shown = messages
            .filter((message) => filter.accepts(JSON.stringify(message), () => message))
            .reverse();
          if (shown.length === 0) {
            return (
              <Empty title={text === "" ? t("No messages yet") : t("No message matches")}>
                {text !== "" && (
                  <p>{t("The filter covers the {n} latest messages.", { n: count })}</p>
                )}
              </Empty>
            );
          }
          return (
            <Table
              label={t("Messages of {name}", { name: topic })}
              rows={shown}
              idOf={({ partition, offset }) => `${partition}:${offset}`}
              selected={
                selected === undefined ? undefined : `${selected.partition}:${selected.offset}`
              }
              onSelect={(message) => {
                chosen.value = message;
              }}
              columns={[
                {
                  title: t("Time"),
                  kind: "w-m mono",
                  render: ({ timestamp }) => <span class="i3">{formatTime(timestamp, true)}</span>,
                },
                { title: "P", kind: "w-xs mono wide-only", render: ({ partition }) => partition },
                { title: "Offset", kind: "w-s mono wide-only", render: ({ offset }) => offset },
                { title: t("Key"), kind: "w-m mono wide-only", render: ({ key }) => key ?? "–" },
                {
                  title: t("Payload"),
                  kind: "mono",
                  render: ({ payload }) =>
                    colourJson(payload.slice(0, SHOWN_CHARACTERS), filter.mark),
                },
              ]}
            />
          );
        }}
      </Loading>
    </Split>
  );
}
