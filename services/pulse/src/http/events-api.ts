// The events of many topics in the order of time: an audit trail, or the history of one key.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, nextCursor, type ApiRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { StoredRecord } from "@platform/log/batch";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { formatMessage, messageAnswer, toMessage, type Message } from "../message/message.ts";
import { MergedReader, type MergedSource } from "../store/merged-reader.ts";
import type { Store } from "../store/store.ts";
import { compilePattern, isPattern } from "../topic/pattern.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";
import { answerWithClaim, type ClaimedRead } from "./claimed-answer.ts";
import type { EventCursors, EventList, EventPosition } from "./event-cursor.ts";

/** Partitions of one list. */
const PARTITIONS_MAX = 256;
/** Stored bytes that one request looks through. */
const SCAN_BYTES_MAX = 16 * 1024 * 1024;
/** Payloads of an answer. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** A position for each of the partitions. */
const CURSOR_CHARACTERS_MAX = 12_000;
/** Headers that name the type of an event: CloudEvents over Kafka, over HTTP, and the plain word. */
const TYPE_HEADERS = ["ce_type", "ce-type", "type"];

/** Options of the routes. */
export interface EventRoutesOptions {
  admission: Admission;
  topics: Topics;
  deadLetters: Pick<DeadLetterWriter, "isDeadLetterName">;
  store: Store;
  eventCursors: EventCursors;
}

/** Part of a partition in a list of events. */
interface EventSource extends MergedSource {
  readonly topic: Topic;
}

const time = z
  .union([
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
    z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
  ])
  .optional();
const eventQuery = z.object({
  topic: z.string().max(1_024).optional().describe("Name or pattern. Default: all topics."),
  key: z.string().max(32_768).optional().describe("Events with exactly this key."),
  type: z.string().min(1).max(1_024).optional(),
  from: time.describe("RFC 3339 or epoch ms, inclusive. Default: the oldest."),
  to: time.describe("RFC 3339 or epoch ms, exclusive. Default: the end at the first page."),
  limit: z
    .string()
    .regex(/^\d{1,3}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 500, "a whole number from 1 to 500")
    .default(100),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .describe("`next_cursor` of the previous page, with the same filters."),
});
type EventQuery = z.output<typeof eventQuery>;

const eventAnswer = messageAnswer.extend({ type: z.string().nullable() }).meta({ id: "Event" });

/** The route that lists events. */
export function createEventRoutes(options: EventRoutesOptions): ApiRoute[] {
  const { admission } = options;
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/events/",
      summary: "Events of all topics in the order of time",
      description:
        "Those that the caller may subscribe to; dead letter topics only by name. Ordered by time, topic, partition and offset; " +
        "within a partition by offset, where a time below an earlier one counts as that one. `type` is the header `ce_type`, " +
        "`ce-type` or `type`, else the text `type` of a JSON payload. A request looks through 16 MiB and answers with 4 MiB at " +
        "most, so that a page may be short, or empty with a filter, although more follow.",
      tag: "Read",
      access: admission.subscribers,
      query: eventQuery,
      problems: {
        404: "The topic does not exist.",
        422: "`too_many_partitions`: the topics have more than 256 together.",
      },
      answer: z.object({ events: z.array(eventAnswer), next_cursor: nextCursor }),
      handle: ({ query, caller, rawResponse }) =>
        answerWithClaim(rawResponse, PAGE_BYTES_MAX, (claimed) =>
          readPage(options, caller, query, claimed),
        ),
    }),
  ];
}

async function readPage(
  options: EventRoutesOptions,
  caller: Caller,
  query: EventQuery,
  bytesMax: number,
): Promise<ClaimedRead> {
  const { store, eventCursors } = options;
  const { topic, key, type, from, to } = query;
  const list: EventList = { tenant: tenantOf(caller), topic, key, type, from, to };
  const position =
    query.cursor === undefined
      ? await begin(options, caller, list)
      : await eventCursors.read(list, query.cursor);
  const sources = findSources(options, caller, position);
  const wantedKey = key === undefined ? undefined : Buffer.from(key);
  const { floor } = position;
  const reader = new MergedReader(store, sources, {
    floor,
    bytesMax: SCAN_BYTES_MAX,
    key: wantedKey,
  });
  const lines: string[] = [];
  let bytes = 0;
  while (lines.length < query.limit) {
    const found = await reader.peek();
    if (found === undefined) break;
    const event = selectEvent(found.source, found.record, wantedKey, type);
    if (event !== undefined) {
      bytes += event.message.payload.length;
      if (lines.length > 0 && bytes > bytesMax) break;
      lines.push(formatMessage(event.message, { type: event.type }));
    }
    reader.take();
  }
  const rest = reader.rest().map(({ source: { topic: own, partition, until }, offset }) => {
    return { topicId: own.stored.id, partition: partition.index, from: offset, until };
  });
  const cursor =
    rest.length === 0
      ? null
      : await eventCursors.write(list, { floor: reader.floor, places: rest });
  return { body: `{"events":[${lines.join(",")}],"next_cursor":${JSON.stringify(cursor)}}` };
}

/** The position before the first event: all partitions, up to their ends of this moment. */
async function begin(
  options: EventRoutesOptions,
  caller: Caller,
  list: EventList,
): Promise<EventPosition> {
  const topics = selectTopics(options, caller, list);
  const count = topics.reduce((sum, { stored }) => sum + stored.partitions.length, 0);
  if (count > PARTITIONS_MAX) {
    throw new PlatformError(
      "too_many_partitions",
      `The topics have ${count} partitions; one list covers ${PARTITIONS_MAX} at most. Narrow it with "topic".`,
    );
  }
  const { log } = options.store;
  const places = [];
  for (const { stored } of topics) {
    for (const partition of stored.partitions) {
      const { index, logStart, durableEnd } = partition;
      const [first, last] = await Promise.all(
        [list.from, list.to].map(async (at) =>
          at === undefined ? undefined : log.findTimestamp(partition, at),
        ),
      );
      const from = list.from === undefined ? logStart : (first?.offset ?? durableEnd);
      const until = Math.min(durableEnd, last?.offset ?? durableEnd);
      if (from < until) places.push({ topicId: stored.id, partition: index, from, until });
    }
  }
  return { floor: 0, places };
}

/** The topics of a new list, by name. */
function selectTopics(
  { admission, topics, deadLetters }: EventRoutesOptions,
  caller: Caller,
  { tenant, topic: asked }: EventList,
): Topic[] {
  if (asked !== undefined && !isPattern(asked)) {
    return [topics.get(tenant, admission.allow(caller, "subscribe", asked))];
  }
  const rights = admission.rightsOf(caller);
  const matches = asked === undefined ? () => true : compilePattern(asked);
  return Array.from(topics.list(tenant))
    .filter(({ name }) => rights.covers("subscribe", name) && matches(name))
    .filter(({ name }) => !deadLetters.isDeadLetterName(tenant, name))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Partitions that are there and that the caller may still read. */
function findSources(
  { admission, topics }: EventRoutesOptions,
  caller: Caller,
  { places }: EventPosition,
): EventSource[] {
  const rights = admission.rightsOf(caller);
  return places.flatMap(({ topicId, partition: index, from, until }) => {
    const topic = topics.findById(tenantOf(caller), topicId);
    const partition = topic?.stored.partitions[index];
    if (topic === undefined || partition === undefined) return [];
    if (!rights.covers("subscribe", topic.name)) return [];
    return [{ topic, partition, from: Math.max(from, partition.logStart), until }];
  });
}

function selectEvent(
  { topic, partition }: EventSource,
  record: StoredRecord,
  key: Buffer | undefined,
  type: string | undefined,
): { message: Message; type: string | null } | undefined {
  if (key !== undefined && record.key?.equals(key) !== true) return undefined;
  const message = toMessage(topic, partition.index, record);
  const own = readType(message);
  return type === undefined || type === own ? { message, type: own } : undefined;
}

function readType({ headers, payload }: Message): string | null {
  for (const name of TYPE_HEADERS) {
    const found = headers.find(({ key, value }) => key.toLowerCase() === name && value !== null);
    if (found !== undefined) return found.value!.toString("utf8");
  }
  // Most payloads without a type are not worth parsing.
  if (!payload.includes('"type"')) return null;
  try {
    const content: unknown = JSON.parse(payload.toString("utf8"));
    if (typeof content !== "object" || content === null || Array.isArray(content)) return null;
    const { type } = content as { type?: unknown };
    return typeof type === "string" && Object.hasOwn(content, "type") ? type : null;
  } catch {
    return null;
  }
}
