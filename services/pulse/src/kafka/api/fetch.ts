// Fetch: returns stored batches unchanged; waiting requests hold no data.
import { BufferPool } from "@platform/kernel/memory";
import { compressionOf, readBatchHeader } from "@platform/log/batch";
import type { PartitionView, ReadOptions, ReadResult } from "@platform/log";
import { toAnswer } from "../answer.ts";
import { ColdReads } from "../cold-reads.ts";
import { findTopic, findTopicById, leaderEpochOf, mayUse, type KafkaBroker } from "../broker.ts";
import { ERROR_CODES, type ErrorCode } from "../protocol/error-codes.ts";
import { fetch } from "../protocol/messages/index.ts";
import type { Read, Written } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type RequestContext, type Route } from "../server/route.ts";
import { mute, principalOf } from "../server/session.ts";
import type { Principal } from "../../user/principal.ts";
import type { Topic } from "../../topic/topics.ts";

const ZSTD_VERSION_MIN = 10;
const TOPIC_ID_VERSION_MIN = 13;
/** Longest wait of a Fetch, whatever it requests. */
const WAIT_MS_MAX = 5 * 60_000;
/** Wait for records in object storage while there are others to answer: enough for those in its cache. */
const COLD_WAIT_MS = 50;

type Request = Read<typeof fetch.request>;
type PartitionAnswer = Written<typeof fetch.response>["topics"][number]["partitions"][number];

/** The answer of a partition, with the buffers that no other answer contains. */
type FetchAnswer = PartitionAnswer & { own?: readonly Buffer[] };

/** A requested partition: the position to read, or an error. */
interface FetchPartition {
  topic: Topic | undefined;
  index: number;
  offset: number;
  bytesMax: number;
  view: PartitionView | undefined;
  errorCode: ErrorCode;
}

/** Sources of records. */
interface FetchSource {
  broker: KafkaBroker;
  coldReads: ColdReads;
  memory: BufferPool;
}

/**
 * Sizes of the memory that records are read into: those of answers, and what an index leaves open; the larger ones for single
 * batches of up to 16 MiB.
 */
const READ_MEMORY = {
  sizes: [1, 2, 4, 8, 16, 32, 40, 64].map((times) => times * (256 + 32) * 1_024),
  spareMax: 8,
  spareBytesMax: 64 * 1_024 * 1_024,
};

/** Creates the route of Fetch. Fetch sessions (KIP-227) are not supported: the session id is always 0. */
export function createFetchRoutes(broker: KafkaBroker): Route[] {
  const memory = new BufferPool(READ_MEMORY);
  const coldReads = new ColdReads((view, offset, bytesMax, signal) =>
    readFilled(broker, view, offset, bytesMax, { signal, memory }),
  );
  const source = { broker, coldReads, memory };
  return [
    route(
      fetch,
      requireRight("subscribe", refuseFetch, async (request, context) => {
        if (request.sessionId !== 0) {
          return { throttleTimeMs: 0, errorCode: ERROR_CODES.fetchSessionIdNotFound, topics: [] };
        }
        const waitMs = Math.min(Math.max(0, request.maxWaitMs), WAIT_MS_MAX);
        const coldUntilMs = performance.now() + Math.max(COLD_WAIT_MS, waitMs);
        // Afterwards everything that earlier requests of the connection create and write is there.
        await context.turn();
        const principal = principalOf(context.session);
        const topics = request.topics.map((topic) => ({
          name: topic.name,
          topicId: topic.topicId,
          partitions: findPartitions(broker, principal, topic, context.version),
        }));
        const partitions = topics.flatMap((topic) => topic.partitions);
        await waitForBytes(broker, partitions, request, context);
        // The client has read most of the earlier answers: reading before would hold bytes for nothing.
        await context.turn();
        refuseForbidden(partitions, principal);
        const bytesMax = Math.max(1, Math.min(request.maxBytes, broker.fetchBytesMax));
        const answers = await readWithRoom(source, partitions, { bytesMax, coldUntilMs }, context);
        const throttleTimeMs = broker.quotas.fetch.charge(
          principal.tenant,
          countBytes(answers.values()),
        );
        if (throttleTimeMs > 0) mute(context.session, throttleTimeMs);
        context.onSent(() => recycle(answers.values(), memory));
        return {
          throttleTimeMs,
          topics: topics.map(({ name, topicId, partitions: own }) => ({
            name,
            topicId,
            partitions: own.map((partition) => answers.get(partition)!),
          })),
        };
      }),
    ),
  ];
}

function refuseFetch({ topics }: Request) {
  return {
    throttleTimeMs: 0,
    topics: topics.map(({ name, topicId, partitions }) => ({
      name,
      topicId,
      partitions: partitions.map(({ partition }) =>
        describe(partition, ERROR_CODES.topicAuthorizationFailed, undefined),
      ),
    })),
  };
}

function findPartitions(
  broker: KafkaBroker,
  principal: Principal,
  asked: Request["topics"][number],
  version: number,
): FetchPartition[] {
  const isById = version >= TOPIC_ID_VERSION_MIN;
  const topic = isById
    ? findTopicById(broker.topics, principal, "subscribe", asked.topicId)
    : findTopic(broker.topics, principal, "subscribe", asked.name);
  const explainMissing = (): ErrorCode => {
    if (!isById && !mayUse(principal, "subscribe", asked.name))
      return ERROR_CODES.topicAuthorizationFailed;
    return isById && topic === undefined
      ? ERROR_CODES.unknownTopicId
      : ERROR_CODES.unknownTopicOrPartition;
  };
  return asked.partitions.map((partition) => {
    const view = topic?.stored.partitions[partition.partition];
    const missing = explainMissing();
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

/** The topic rules may have changed while the request waited. */
function refuseForbidden(partitions: readonly FetchPartition[], principal: Principal): void {
  for (const partition of partitions) {
    const { topic } = partition;
    if (topic === undefined || principal.rights.covers("subscribe", topic.name)) continue;
    partition.errorCode = ERROR_CODES.topicAuthorizationFailed;
  }
}

function checkPosition(
  view: PartitionView,
  { fetchOffset, currentLeaderEpoch }: { fetchOffset: number; currentLeaderEpoch: number },
): ErrorCode {
  if (currentLeaderEpoch >= 0) {
    const epoch = leaderEpochOf(view);
    if (currentLeaderEpoch < epoch) return ERROR_CODES.fencedLeaderEpoch;
    if (currentLeaderEpoch > epoch) return ERROR_CODES.unknownLeaderEpoch;
  }
  const isInside = fetchOffset >= view.logStart && fetchOffset <= view.durableEnd;
  return isInside ? ERROR_CODES.none : ERROR_CODES.offsetOutOfRange;
}

/**
 * Waits for `minBytes`, at most `maxWaitMs`; returns immediately if there is an error. Nothing is read meanwhile: the
 * growth of the partitions tells how much data there is.
 */
async function waitForBytes(
  broker: KafkaBroker,
  partitions: readonly FetchPartition[],
  request: Request,
  { signal }: RequestContext,
): Promise<void> {
  if (partitions.some(({ errorCode }) => errorCode !== ERROR_CODES.none)) return;
  const endMs = performance.now() + Math.min(Math.max(0, request.maxWaitMs), WAIT_MS_MAX);
  const views = partitions.map(({ view }) => view!);
  const isThere = () => partitions.some(({ view, offset }) => view!.durableEnd > offset);
  const countBytes = () => views.reduce((sum, view) => sum + view.bytes, 0);
  const before = countBytes();
  // Initially it is only known whether there is data, which is enough for the usual minimum of one byte.
  const hadSome = isThere();
  if (request.minBytes <= 0 || (hadSome && request.minBytes <= 1)) return;
  let positions = partitions.map(({ view, offset }) => ({ partition: view!, offset }));
  if (hadSome) {
    const known = await measure(broker, partitions, request.minBytes);
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

/** Counts readable bytes up to `enough`, without keeping them. */
async function measure(
  broker: KafkaBroker,
  partitions: readonly FetchPartition[],
  enough: number,
): Promise<number> {
  let bytes = 0;
  for (const { view, offset, bytesMax } of partitions) {
    if (bytes >= enough || view === undefined || view.durableEnd <= offset) continue;
    // Records in object storage are not fetched only to be counted.
    if (broker.store.log.isRemote(view, offset)) {
      bytes += enough;
      continue;
    }
    const wanted = Math.min(bytesMax, enough - bytes, broker.fetchBytesMax);
    const found = await broker.store.read(view, offset, Math.max(1, wanted)).catch(() => undefined);
    bytes += found?.bytes ?? enough;
  }
  return bytes;
}

/**
 * Reads up to `bytesMax` bytes, fewer while clients have much to read. At the limit, small batches are still read, so that
 * consumers that keep up continue; larger ones wait for room, and without room in time the answer is empty and the
 * consumer retries.
 */
async function readWithRoom(
  source: FetchSource,
  partitions: readonly FetchPartition[],
  { bytesMax, coldUntilMs }: ReadBounds,
  context: RequestContext,
): Promise<Map<FetchPartition, FetchAnswer>> {
  const { settings } = source.broker;
  let bytes = 0;
  let batchBytes = 0;
  for (const { view, offset, bytesMax: own } of partitions) {
    if (view === undefined || view.durableEnd <= offset) continue;
    bytes += Math.min(Math.max(1, own), view.bytes);
    batchBytes = Math.max(batchBytes, Math.min(settings.limits.batchBytesMax, view.bytes));
  }
  const { version } = context;
  if (bytes === 0) return readAll(source, partitions, { bytesMax: 0, coldUntilMs }, version);
  const smallMax = Math.min(bytesMax, await context.reserveSmall(batchBytes));
  if (smallMax > 0) {
    const answers = await readAll(
      source,
      partitions,
      { bytesMax: smallMax, isStrict: true, coldUntilMs },
      version,
    );
    if (!isEmpty(answers.values())) return answers;
  }
  const granted = await context.reserve(Math.min(bytes, bytesMax), batchBytes);
  return readAll(source, partitions, { bytesMax: granted, coldUntilMs }, version);
}

/** True if there is neither a record nor an error. */
function isEmpty(answers: Iterable<FetchAnswer>): boolean {
  for (const { records, errorCode } of answers) {
    if (errorCode !== ERROR_CODES.none || (records?.length ?? 0) > 0) return false;
  }
  return true;
}

/**
 * Bounds of an answer. `isStrict`: also for its first batch, which may otherwise have any size, to ensure progress (KIP-74).
 * `coldUntilMs`: time of `performance.now()` until which records in object storage are waited for.
 */
interface ReadBounds {
  bytesMax: number;
  isStrict?: boolean;
  coldUntilMs: number;
}

/**
 * Reads the partitions in order until `bytesMax` is reached: first those on the disk, which do not wait for those in object
 * storage.
 */
async function readAll(
  source: FetchSource,
  partitions: readonly FetchPartition[],
  { bytesMax, isStrict = false, coldUntilMs }: ReadBounds,
  version: number,
): Promise<Map<FetchPartition, FetchAnswer>> {
  const answers = new Map<FetchPartition, FetchAnswer>();
  const { log } = source.broker.store;
  const isCold = ({ view, offset }: FetchPartition) =>
    view !== undefined && view.durableEnd > offset && log.isRemote(view, offset);
  const cold = partitions.filter(isCold);
  const hot = cold.length === 0 ? partitions : partitions.filter((each) => !cold.includes(each));
  let left = bytesMax;
  for (const partition of [...hot, ...cold]) {
    const soonMs = performance.now() + COLD_WAIT_MS;
    const untilMs = left < bytesMax ? Math.min(coldUntilMs, soonMs) : coldUntilMs;
    const bounds = { bytesMax: left, isStrict, coldUntilMs: untilMs };
    const answer = await readPartition(source, partition, bounds, version);
    for (const buffer of answer.records ?? []) left -= buffer.length;
    answers.set(partition, answer);
  }
  return answers;
}

function recycle(answers: Iterable<FetchAnswer>, memory: BufferPool): void {
  for (const { own = [] } of answers) for (const buffer of own) memory.recycle(buffer);
}

function countBytes(answers: Iterable<FetchAnswer>): number {
  let bytes = 0;
  for (const { records } of answers) {
    for (const buffer of records ?? []) bytes += buffer.length;
  }
  return bytes;
}

async function readPartition(
  { broker, coldReads, memory }: FetchSource,
  { topic, view, index, offset, bytesMax, errorCode }: FetchPartition,
  { bytesMax: left, isStrict = false, coldUntilMs }: ReadBounds,
  version: number,
): Promise<FetchAnswer> {
  if (view === undefined || errorCode !== ERROR_CODES.none) return describe(index, errorCode, view);
  if (left <= 0 || view.durableEnd <= offset) return describe(index, ERROR_CODES.none, view);
  try {
    const readMax = Math.max(1, Math.min(bytesMax, left));
    const isCold = broker.store.log.isRemote(view, offset);
    const coldBounds = { bytesMax: readMax, isStrict, untilMs: coldUntilMs };
    const found = await (isCold
      ? coldReads.read(view, offset, coldBounds)
      : readFilled(broker, view, offset, readMax, { memory }));
    // The read goes on, for the next request of the client.
    if (found === undefined) return describe(index, ERROR_CODES.none, view);
    const { buffers, bytes, nextOffset } = found;
    if (isStrict && bytes > readMax) return describe(index, ERROR_CODES.none, view);
    if (version < ZSTD_VERSION_MIN && buffers.some(holdsZstd)) {
      return describe(index, ERROR_CODES.unsupportedCompressionType, view);
    }
    broker.backlog.noteConsumed(topic!, index, nextOffset);
    const answer = { ...describe(index, ERROR_CODES.none, view), records: buffers };
    return coldReads.isShared(found) ? answer : { ...answer, own: buffers };
  } catch (error) {
    return describe(index, toAnswer(error).errorCode, view);
  }
}

/**
 * Skips batches without records (all were compacted away, or could not be transformed): kafkajs takes an answer with only
 * such batches for the end of the partition and would skip the rest.
 */
async function readFilled(
  { store }: KafkaBroker,
  view: PartitionView,
  offset: number,
  bytesMax: number,
  options: ReadOptions,
): Promise<ReadResult> {
  for (let from = offset; ;) {
    const result = await store.read(view, from, bytesMax, options);
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
