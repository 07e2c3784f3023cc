// Fetch: stored batches as they are, waited for without holding any.
import { compressionOf, readBatchHeader } from "@platform/log/batch";
import type { PartitionView, ReadResult } from "@platform/log";
import { toAnswer } from "../answer.ts";
import { findTopic, leaderEpochOf, type KafkaBroker } from "../broker.ts";
import { errorCodes, type ErrorCode } from "../protocol/error-codes.ts";
import { fetch } from "../protocol/messages/index.ts";
import type { Read, Written } from "../protocol/schema.ts";
import { route, type Exchange, type Route } from "../server/route.ts";
import { mute, principalOf } from "../server/session.ts";
import type { Tenant } from "../../topic/name.ts";
import type { Topic } from "../../topic/topics.ts";

const zstdVersionMin = 10;
const topicIdVersionMin = 13;
/** Longest wait of a Fetch, whatever it asks for. */
const waitMsMax = 5 * 60_000;

type Request = Read<typeof fetch.request>;
type PartitionAnswer = Written<typeof fetch.response>["topics"][number]["partitions"][number];

/** A partition that is asked for: where to read, or why not. */
type Wish = {
  topic: Topic | undefined;
  index: number;
  offset: number;
  bytesMax: number;
  view: PartitionView | undefined;
  errorCode: ErrorCode;
};

/** The route of Fetch. Sessions (KIP-227) are not kept: the answer's session id is always 0. */
export function fetchRoutes(broker: KafkaBroker): Route[] {
  return [
    route(fetch, async (request, exchange) => {
      if (request.sessionId !== 0) {
        return { throttleTimeMs: 0, errorCode: errorCodes.fetchSessionIdNotFound, topics: [] };
      }
      const { tenant } = principalOf(exchange.session);
      const topics = request.topics.map((topic) => ({
        name: topic.name,
        topicId: topic.topicId,
        wishes: findWishes(broker, tenant, topic, exchange.version),
      }));
      const wishes = topics.flatMap((topic) => topic.wishes);
      await waitForBytes(broker, wishes, request, exchange);
      // Answers are sent in order: to read before this one's turn would be to hold bytes for nothing.
      await exchange.turn();
      const bytesMax = Math.max(1, Math.min(request.maxBytes, broker.fetchBytesMax));
      const answers = await readWithRoom(broker, wishes, bytesMax, exchange);
      const throttleTimeMs = broker.quotas.fetch.charge(tenant, countBytes(answers.values()));
      if (throttleTimeMs > 0) mute(exchange.session, throttleTimeMs);
      return {
        throttleTimeMs,
        topics: topics.map(({ name, topicId, wishes: own }) => ({
          name,
          topicId,
          partitions: own.map((wish) => answers.get(wish)!),
        })),
      };
    }),
  ];
}

function findWishes(
  broker: KafkaBroker,
  tenant: Tenant,
  asked: Request["topics"][number],
  version: number,
): Wish[] {
  const isById = version >= topicIdVersionMin;
  const topic = isById
    ? broker.topics.findById(tenant, Buffer.from(asked.topicId, "hex"))
    : findTopic(broker.topics, tenant, asked.name);
  return asked.partitions.map((partition) => {
    const view = topic?.stored.partitions[partition.partition];
    const missing =
      isById && topic === undefined
        ? errorCodes.unknownTopicId
        : errorCodes.unknownTopicOrPartition;
    return {
      topic,
      index: partition.partition,
      offset: partition.fetchOffset,
      bytesMax: partition.partitionMaxBytes,
      view,
      errorCode: view === undefined ? missing : checkPosition(view, partition),
    };
  });
}

function checkPosition(
  view: PartitionView,
  { fetchOffset, currentLeaderEpoch }: { fetchOffset: number; currentLeaderEpoch: number },
): ErrorCode {
  if (currentLeaderEpoch >= 0) {
    const epoch = leaderEpochOf(view);
    if (currentLeaderEpoch < epoch) return errorCodes.fencedLeaderEpoch;
    if (currentLeaderEpoch > epoch) return errorCodes.unknownLeaderEpoch;
  }
  const isInside = fetchOffset >= view.logStart && fetchOffset <= view.durableEnd;
  return isInside ? errorCodes.none : errorCodes.offsetOutOfRange;
}

/**
 * Waits until `minBytes` are there, for `maxWaitMs` at most; an error is told at once. What is there is not read
 * meanwhile: how far the partitions have grown says how much it is.
 */
async function waitForBytes(
  broker: KafkaBroker,
  wishes: readonly Wish[],
  request: Request,
  { signal }: Exchange,
): Promise<void> {
  if (wishes.some(({ errorCode }) => errorCode !== errorCodes.none)) return;
  const endMs = performance.now() + Math.min(Math.max(0, request.maxWaitMs), waitMsMax);
  const views = wishes.map(({ view }) => view!);
  const isThere = () => wishes.some(({ view, offset }) => view!.durableEnd > offset);
  const countBytes = () => views.reduce((sum, view) => sum + view.bytes, 0);
  const before = countBytes();
  // Of what was there at the start only this is known: enough for the usual wish for a single byte.
  const hadSome = isThere();
  if (request.minBytes <= 0 || (hadSome && request.minBytes <= 1)) return;
  let positions = wishes.map(({ view, offset }) => ({ partition: view!, offset }));
  if (hadSome) {
    const known = await measure(broker, wishes, request.minBytes);
    if (known >= request.minBytes) return;
    positions = views.map((partition) => ({ partition, offset: partition.durableEnd }));
  }
  for (;;) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || signal.aborted) return;
    if (!(await broker.store.waitForData(positions, leftMs, signal))) return;
    if (views.some(({ live }) => !live)) return;
    if (countBytes() - before >= request.minBytes) return;
    positions = views.map((partition) => ({ partition, offset: partition.durableEnd }));
  }
}

/** Bytes that can be read now, counted up to `enough`; nothing is kept. */
async function measure(
  broker: KafkaBroker,
  wishes: readonly Wish[],
  enough: number,
): Promise<number> {
  let bytes = 0;
  for (const { view, offset, bytesMax } of wishes) {
    if (bytes >= enough || view === undefined || view.durableEnd <= offset) continue;
    const wanted = Math.min(bytesMax, enough - bytes, broker.fetchBytesMax);
    const found = await broker.store.read(view, offset, Math.max(1, wanted)).catch(() => undefined);
    bytes += found?.bytes ?? enough;
  }
  return bytes;
}

/**
 * Reads up to `bytesMax` bytes, fewer while clients have much to read. When they have too much, small batches are read all the
 * same, so that consumers that keep up go on; larger ones wait for room, and without room in time there are no records: the
 * consumer asks again.
 */
async function readWithRoom(
  broker: KafkaBroker,
  wishes: readonly Wish[],
  bytesMax: number,
  exchange: Exchange,
): Promise<Map<Wish, PartitionAnswer>> {
  let bytes = 0;
  let batchBytes = 0;
  for (const { view, offset, bytesMax: own } of wishes) {
    if (view === undefined || view.durableEnd <= offset) continue;
    bytes += Math.min(Math.max(1, own), view.bytes);
    batchBytes = Math.max(batchBytes, Math.min(broker.settings.batchBytesMax, view.bytes));
  }
  const { version } = exchange;
  if (bytes === 0) return readAll(broker, wishes, { bytesMax: 0 }, version);
  const smallMax = Math.min(bytesMax, await exchange.reserveSmall(batchBytes));
  if (smallMax > 0) {
    const answers = await readAll(broker, wishes, { bytesMax: smallMax, isStrict: true }, version);
    if (!isEmpty(answers.values())) return answers;
  }
  const granted = await exchange.reserve(Math.min(bytes, bytesMax), batchBytes);
  return readAll(broker, wishes, { bytesMax: granted }, version);
}

/** Whether there is neither a record nor an error to tell. */
function isEmpty(answers: Iterable<PartitionAnswer>): boolean {
  for (const { records, errorCode } of answers) {
    if (errorCode !== errorCodes.none || (records?.length ?? 0) > 0) return false;
  }
  return true;
}

/** Bounds of an answer. `isStrict`: also of its first batch, which otherwise may have any size, or no consumer got past it (KIP-74). */
interface ReadBounds {
  bytesMax: number;
  isStrict?: boolean;
}

/** Reads the wishes in their order until `bytesMax` are there. */
async function readAll(
  broker: KafkaBroker,
  wishes: readonly Wish[],
  { bytesMax, isStrict = false }: ReadBounds,
  version: number,
): Promise<Map<Wish, PartitionAnswer>> {
  const answers = new Map<Wish, PartitionAnswer>();
  let left = bytesMax;
  for (const wish of wishes) {
    const answer = await readWish(broker, wish, { bytesMax: left, isStrict }, version);
    for (const buffer of answer.records ?? []) left -= buffer.length;
    answers.set(wish, answer);
  }
  return answers;
}

function countBytes(answers: Iterable<PartitionAnswer>): number {
  let bytes = 0;
  for (const { records } of answers) {
    for (const buffer of records ?? []) bytes += buffer.length;
  }
  return bytes;
}

async function readWish(
  broker: KafkaBroker,
  { topic, view, index, offset, bytesMax, errorCode }: Wish,
  { bytesMax: left, isStrict = false }: ReadBounds,
  version: number,
): Promise<PartitionAnswer> {
  if (view === undefined || errorCode !== errorCodes.none) return describe(index, errorCode, view);
  if (left <= 0 || view.durableEnd <= offset) return describe(index, errorCodes.none, view);
  try {
    const readMax = Math.max(1, Math.min(bytesMax, left));
    const { buffers, bytes, nextOffset } = await readFilled(broker, view, offset, readMax);
    if (isStrict && bytes > readMax) return describe(index, errorCodes.none, view);
    if (version < zstdVersionMin && buffers.some(holdsZstd)) {
      return describe(index, errorCodes.unsupportedCompressionType, view);
    }
    broker.backlog.noteTaken(topic!, index, nextOffset);
    return { ...describe(index, errorCodes.none, view), records: buffers };
  } catch (error) {
    return describe(index, toAnswer(error).errorCode, view);
  }
}

/**
 * Reads past batches that hold no record (all of theirs were compacted away, or could not be transformed): kafkajs
 * takes an answer of nothing else for the end of the partition and would skip what comes behind.
 */
async function readFilled(
  { store }: KafkaBroker,
  view: PartitionView,
  offset: number,
  bytesMax: number,
): Promise<ReadResult> {
  for (let from = offset; ;) {
    const result = await store.read(view, from, bytesMax);
    if (result.nextOffset >= view.durableEnd || !result.buffers.every(holdsNothing)) return result;
    from = result.nextOffset;
  }
}

function holdsNothing(buffer: Buffer): boolean {
  for (let at = 0; ;) {
    const header = readBatchHeader(buffer, at);
    if (header === undefined) return true;
    if (header.recordCount > 0) return false;
    at += header.bytes;
  }
}

function describe(
  partitionIndex: number,
  errorCode: ErrorCode,
  view: PartitionView | undefined,
): PartitionAnswer {
  const end = view?.durableEnd ?? -1;
  return {
    partitionIndex,
    errorCode,
    highWatermark: end,
    lastStableOffset: end,
    logStartOffset: view?.logStart ?? -1,
    abortedTransactions: null,
    records: [],
  };
}

function holdsZstd(buffer: Buffer): boolean {
  for (let at = 0; ;) {
    const header = readBatchHeader(buffer, at);
    if (header === undefined) return false;
    if (compressionOf(header.attributes) === "zstd") return true;
    at += header.bytes;
  }
}
