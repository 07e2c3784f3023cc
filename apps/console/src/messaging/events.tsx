// Events of all topics in the order of time: the history of one key, or of everything.
import { useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatMoment, formatTime } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, Segments } from "../view/controls.tsx";
import { colourJson } from "../view/json.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";
import { MessageDetail } from "./message-detail.tsx";
import { TenantChip } from "./tenant.tsx";

type EventList = Answer<"pulse", "GET /events/">;
type ListedEvent = EventList["events"][number];

const PAGE = 100;
const SHOWN_CHARACTERS = 160;
const HOUR_MS = 3_600_000;
const RANGES = ["hour", "day", "week", "all"] as const;
type Range = (typeof RANGES)[number];
const RANGE_MS: Readonly<Record<Exclude<Range, "all">, number>> = {
  hour: HOUR_MS,
  day: 24 * HOUR_MS,
  week: 7 * 24 * HOUR_MS,
};

/** A page of the list, and the start of its range: a cursor belongs to the filters that it was given for. */
interface LoadedEvents extends EventList {
  from: string | undefined;
}

/** Filters, a page of events by cursor, and the chosen one. */
export function EventsPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Events") }]);
  const range = RANGES.find((one) => one === queryValue("range")) ?? "day";
  const filters = { key: queryValue("key"), topic: queryValue("topic"), type: queryValue("type") };
  const [cursor, start] = [queryValue("cursor"), queryValue("from")];
  const chosen = useSignal<ListedEvent | undefined>(undefined);
  const name = JSON.stringify([range, start, filters, cursor]);
  const loaded = useLoad(name, async (): Promise<LoadedEvents> => {
    const from = start || startOf(range);
    const asked = { ...filters, from, limit: PAGE, cursor };
    const given = Object.entries(asked).filter(([, value]) => value !== "");
    const path = withQuery("/events/", Object.fromEntries(given));
    return { ...(await callBroker<EventList>(path)), from };
  });
  const selected = chosen.value;
  return (
    <Split
      pane={selected === undefined ? undefined : <MessageDetail message={selected} />}
      onClosePane={() => (chosen.value = undefined)}
    >
      <Title
        actions={
          <>
            <TenantChip />
            <RangeChoice range={range} />
          </>
        }
      >
        {t("Events")}
      </Title>
      <EventFilters key={name} filters={filters} />
      <Loading of={loaded}>
        {({ events, next_cursor: next, from }) => (
          <>
            {events.length === 0 ? (
              <Empty title={next === null ? t("No events") : t("No event on this page")}>
                <p>{t("Events of the topics that you may read are listed by time.")}</p>
              </Empty>
            ) : (
              <EventTable
                events={events}
                selected={selected}
                onSelect={(event) => {
                  chosen.value = event;
                }}
              />
            )}
            {next !== null && (
              <div class="bar">
                <Action onClick={() => setQuery({ cursor: next, from })}>{t("Next page")}</Action>
              </div>
            )}
          </>
        )}
      </Loading>
    </Split>
  );
}

function startOf(range: Range): string | undefined {
  return range === "all" ? undefined : String(Date.now() - RANGE_MS[range]);
}

function RangeChoice({ range }: { range: Range }) {
  return (
    <Segments
      label={t("Time")}
      value={range}
      options={RANGES.map((one) => [one, describeRange(one)] as const)}
      onChange={(value) =>
        setQuery({
          range: value === "day" ? undefined : value,
          from: undefined,
          cursor: undefined,
        })
      }
    />
  );
}

function describeRange(range: Range): string {
  switch (range) {
    case "hour":
      return t("1 hour");
    case "day":
      return t("1 day");
    case "week":
      return t("1 week");
    case "all":
      return t("All");
    default:
      return range satisfies never;
  }
}

/** Texts of the fields; "" does not restrict. */
interface Filters {
  key: string;
  topic: string;
  type: string;
}

/** Applied by Enter, because each look reads up to 16 MiB of the log. */
function EventFilters({ filters }: { filters: Filters }) {
  const [key, setKey] = useState(filters.key);
  const [topic, setTopic] = useState(filters.topic);
  const [type, setType] = useState(filters.type);
  return (
    <form
      class="bar"
      aria-label={t("Events")}
      onSubmit={(event) => {
        event.preventDefault();
        setQuery({
          key: key || undefined,
          topic: topic || undefined,
          type: type || undefined,
          from: undefined,
          cursor: undefined,
        });
      }}
    >
      <FilterField label={t("Key")} value={key} isMono onInput={setKey} />
      <FilterField label={t("Topic or pattern")} value={topic} isMono onInput={setTopic} />
      <FilterField label={t("Type of event")} value={type} isMono onInput={setType} />
      <button type="submit" class="btn">
        {t("Show")}
      </button>
    </form>
  );
}

function EventTable(props: {
  events: readonly ListedEvent[];
  selected: ListedEvent | undefined;
  onSelect: (event: ListedEvent) => void;
}) {
  const { selected } = props;
  return (
    <Table
      label={t("Events")}
      rows={props.events}
      idOf={identify}
      selected={selected === undefined ? undefined : identify(selected)}
      onSelect={props.onSelect}
      columns={[
        {
          title: t("Time"),
          kind: "w-m mono",
          render: ({ timestamp }) => (
            <span class="i3" title={formatMoment(timestamp)}>
              {formatTime(timestamp, true)}
            </span>
          ),
        },
        { title: t("Topic"), kind: "w-m mono", render: ({ topic }) => topic },
        { title: t("Type"), kind: "w-m mono wide-only", render: ({ type }) => type ?? "–" },
        { title: t("Key"), kind: "w-m mono wide-only", render: ({ key }) => key ?? "–" },
        {
          title: t("Payload"),
          kind: "mono",
          render: ({ payload }) => colourJson(payload.slice(0, SHOWN_CHARACTERS)),
        },
      ]}
    />
  );
}

function identify({ topic, partition, offset }: ListedEvent): string {
  return `${topic} ${partition}:${offset}`;
}
