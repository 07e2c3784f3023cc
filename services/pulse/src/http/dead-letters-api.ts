// Dead letters of all topics: by cause, requeued or dropped many at a time, with one patch.
import { z } from "zod";
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import {
  cursorQuery,
  decodeCursor,
  defineRoute,
  encodeCursor,
  nextCursor,
  type ApiRoute,
} from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import {
  type DeadLetterQueue,
  deadLetterCause,
  readPayload,
  toCause,
} from "../deadletter/dead-letter-queue.ts";
import { deadLetter, type Envelope } from "../deadletter/dead-letter-writer.ts";
import { changePayload, conversionsSchema, type LetterChange } from "../deadletter/convert.ts";
import { jsonPatchSchema } from "../deadletter/json-patch.ts";
import { readText } from "../message/message.ts";
import type { PublishOutcome } from "../publish/publish-input.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { type Admission, isForAllTenants, tenantOf } from "./admission.ts";

/** Letters of one request, and those that it looks through. */
const LETTERS_MAX = 500;
const SCANNED_MAX = 10_000;
const CAUSES_MAX = 1_000;
/** Payloads of one answer. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;

export interface DeadLetterRoutesOptions {
  admission: Admission;
  topics: Topics;
  deadLetterQueue: DeadLetterQueue<PublishOutcome>;
}

/** A dead letter with its topic. */
interface FoundLetter {
  topic: Topic;
  letter: Envelope & { offset: number };
}

const causeSchema = z.string().min(1).max(200).describe("As `cause` in the list.");
const topicName = z.string().min(1).max(255);
const listQuery = z.object({
  topic: topicName.optional(),
  cause: causeSchema.optional(),
  cursor: cursorQuery,
  limit: z
    .string()
    .regex(/^\d{1,3}$/)
    .transform(Number)
    .refine(
      (limit) => limit >= 1 && limit <= LETTERS_MAX,
      `a whole number from 1 to ${LETTERS_MAX}`,
    )
    .default(100),
});
const choice = {
  topic: topicName.optional().describe("Only letters of this topic."),
  cause: causeSchema.optional(),
  ids: z.array(z.string().min(1).max(1_024)).min(1).max(LETTERS_MAX).optional(),
  cursor: cursorQuery,
};
const hasChoice = ({ cause, ids }: { cause?: string | undefined; ids?: unknown }) =>
  (cause === undefined) !== (ids === undefined);
const CHOICE_ERROR = "expected either cause or ids";
const requeueBody = z
  .strictObject({
    ...choice,
    convert: conversionsSchema
      .optional()
      .describe("Values to convert without loss, before the patch."),
    patch: jsonPatchSchema.optional().describe("JSON Patch (RFC 6902) of each payload."),
    dry_run: z.boolean().default(false).describe("Only shows the patched payloads."),
  })
  .refine(hasChoice, CHOICE_ERROR);
const deleteBody = z.strictObject(choice).refine(hasChoice, CHOICE_ERROR);
const CHOICE_NOTE = `One request looks through ${SCANNED_MAX} letters: \`next_cursor\` continues, also if it chose none.`;
const placeSchema = z.tuple([z.string(), z.int().min(-1)]);

const settledLetter = z.object({
  topic: z.string(),
  message_id: z.string(),
  payload: z.string().optional().describe("The patched payload, of a trial."),
  error: z.object({ code: z.string(), detail: z.string() }).nullable(),
});
const settledLetters = z.object({
  succeeded: z.int(),
  failed: z.int(),
  items: z.array(settledLetter),
  next_cursor: nextCursor,
});

/** Routes for dead letters of all topics. */
export function createDeadLettersRoutes(options: DeadLetterRoutesOptions): ApiRoute[] {
  const { admission, deadLetterQueue } = options;
  const common = { path: "/api/v1/dlq", tag: "Dead letters" } as const;
  return [
    defineRoute({
      ...common,
      method: "GET",
      summary: "Dead letters of all topics, by topic, oldest first",
      description: `One request looks through ${SCANNED_MAX} letters, so that a page may be short although more follow.`,
      access: admission.subscribers,
      query: listQuery,
      answer: z.object({
        items: z.array(
          deadLetter.extend({ topic: z.string(), cause: z.string(), offset: z.int() }),
        ),
        next_cursor: nextCursor,
      }),
      handle: ({ query, caller }) => listLetters(options, caller, query),
    }),
    createCausesRoute(options),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/dlq/requeue",
      summary: `Requeue up to ${LETTERS_MAX} dead letters, with one change`,
      description: `Each succeeds or fails on its own. ${CHOICE_NOTE}`,
      access: admission.managers,
      body: requeueBody,
      answer: z.object({
        dry_run: z.boolean(),
        ...settledLetters.shape,
      }),
      handle: async ({ body, caller }) => {
        const { found, next } = await findLetters(options, caller, body);
        const items = [];
        for (const one of found) items.push(await requeue(deadLetterQueue, one, body));
        return { dry_run: body.dry_run, ...count(items), next_cursor: next };
      },
    }),
    defineRoute({
      ...common,
      method: "DELETE",
      summary: `Drop up to ${LETTERS_MAX} dead letters`,
      description: CHOICE_NOTE,
      access: admission.managers,
      body: deleteBody,
      answer: settledLetters,
      handle: async ({ body, caller }) => {
        const { found, next } = await findLetters(options, caller, body);
        const items = [];
        for (const { topic, letter } of found) {
          items.push(
            await attempt(topic, letter, async () => {
              await deadLetterQueue.discard(topic, letter.message_id, letter.offset);
              return {};
            }),
          );
        }
        return { ...count(items), next_cursor: next };
      },
    }),
  ];
}

function createCausesRoute({ admission, topics, deadLetterQueue }: DeadLetterRoutesOptions) {
  return defineRoute({
    method: "GET",
    path: "/api/v1/dlq/causes",
    summary: "Causes of the dead letters of all topics, most frequent first",
    description:
      `Counts the newest letters, ${SCANNED_MAX} in all; \`is_complete\` is false for causes of a topic that has more. ` +
      "Of the caller's tenant; the operator chooses one with `tenant`, or all with `*`.",
    tag: "Dead letters",
    access: admission.subscribers,
    query: z.object({ topic: topicName.optional() }),
    answer: z.object({
      causes: z.array(
        deadLetterCause.omit({ sample_ids: true }).extend({
          topic: z.string(),
          tenant: z.string().optional().describe("In the list of all tenants."),
          is_complete: z.boolean(),
        }),
      ),
      total: z.int(),
      is_complete: z.boolean(),
    }),
    handle: async ({ query: { topic: only }, caller }) => {
      const isForAll = isForAllTenants(caller);
      const rights = admission.rightsOf(caller);
      const all = isForAll ? topics.all() : topics.list(tenantOf(caller));
      const chosen = [...all].filter(
        (topic) =>
          (only === undefined || topic.name === only) &&
          rights.covers("subscribe", topic.name) &&
          deadLetterQueue.countOf(topic) > 0,
      );
      const causes = [];
      let total = 0;
      let left = SCANNED_MAX;
      let isComplete = true;
      for (const [index, topic] of chosen.entries()) {
        // Topics may use the share that those before them left.
        const share = Math.floor(left / (chosen.length - index));
        const summary = await deadLetterQueue.summarize(topic, share);
        left -= summary.counted;
        total += summary.total;
        isComplete &&= summary.is_complete;
        for (const { sample_ids: _, ...cluster } of summary.clusters) {
          const tenant = isForAll ? { tenant: topic.tenant } : {};
          causes.push({
            topic: topic.name,
            ...tenant,
            is_complete: summary.is_complete,
            ...cluster,
          });
        }
      }
      causes.sort((a, b) => b.count - a.count);
      const shown = causes.slice(0, CAUSES_MAX);
      return { causes: shown, total, is_complete: isComplete && shown.length === causes.length };
    },
  });
}

async function listLetters(
  options: DeadLetterRoutesOptions,
  caller: Caller,
  { topic: only, cause, cursor, limit }: z.output<typeof listQuery>,
) {
  const items = [];
  let bytes = 0;
  let at = readPlace(cursor);
  for await (const found of scan(options, caller, "subscribe", only, at)) {
    if (found !== undefined) {
      const { topic, letter } = found;
      const place: [string, number] = [topic.name, letter.offset];
      if (cause === undefined || toCause(letter.failure_reason) === cause) {
        bytes += letter.original_payload.length;
        if (items.length >= limit || (items.length > 0 && bytes > PAGE_BYTES_MAX)) {
          return { items, next_cursor: encodeCursor(at ?? place) };
        }
        items.push({ topic: topic.name, cause: toCause(letter.failure_reason), ...letter });
      }
      at = place;
      continue;
    }
    return { items, next_cursor: at === undefined ? null : encodeCursor(at) };
  }
  return { items, next_cursor: null };
}

/** Letters in the order of their topics' names; `undefined` at the end of what one request looks through. */
async function* scan(
  { topics, admission, deadLetterQueue }: DeadLetterRoutesOptions,
  caller: Caller,
  right: "subscribe" | "manage",
  only: string | undefined,
  after?: [string, number],
): AsyncGenerator<FoundLetter | undefined> {
  const rights = admission.rightsOf(caller);
  const chosen = [...topics.list(tenantOf(caller))]
    .filter(({ name }) => only === undefined || name === only)
    .filter(({ name }) => rights.covers(right, name))
    .filter(({ name }) => after === undefined || name >= after[0])
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  let scanned = 0;
  for (const topic of chosen) {
    const from = topic.name === after?.[0] ? after[1] : -1;
    for await (const letter of deadLetterQueue.letters(topic, from)) {
      if (scanned++ >= SCANNED_MAX) {
        yield undefined;
        return;
      }
      yield { topic, letter };
    }
  }
}

async function findLetters(
  options: DeadLetterRoutesOptions,
  caller: Caller,
  { topic, cause, ids, cursor }: z.output<typeof deleteBody>,
): Promise<{ found: FoundLetter[]; next: string | null }> {
  if (topic !== undefined) options.admission.allow(caller, "manage", topic);
  const wanted = new Set(ids);
  const chosen: FoundLetter[] = [];
  let at = readPlace(cursor);
  let isEnd = true;
  for await (const found of scan(options, caller, "manage", topic, at)) {
    const isFull = chosen.length >= (ids?.length ?? LETTERS_MAX);
    if (found === undefined || isFull) {
      isEnd = isFull && ids !== undefined;
      break;
    }
    const { message_id: id, failure_reason: reason, offset } = found.letter;
    if (ids === undefined ? toCause(reason) === cause : wanted.has(id)) chosen.push(found);
    at = [found.topic.name, offset];
  }
  if (chosen.length > 0 || !isEnd) {
    return { found: chosen, next: isEnd || at === undefined ? null : encodeCursor(at) };
  }
  throw new PlatformError("not_found", "There are no such dead letters.");
}

function requeue(
  queue: DeadLetterQueue<PublishOutcome>,
  { topic, letter }: FoundLetter,
  { dry_run: isDryRun, ...change }: LetterChange & { dry_run: boolean },
) {
  return attempt(topic, letter, async () => {
    const payload = readPayload(letter);
    const patched = changePayload(payload, change);
    if (!isDryRun) {
      await queue.requeue(topic, letter.message_id, () => patched, letter.offset);
      return {};
    }
    const shown = patched ?? payload;
    return { payload: readText(shown) ?? shown.toString("base64") };
  });
}

async function attempt(topic: Topic, letter: Envelope, work: () => Promise<{ payload?: string }>) {
  const named = { topic: topic.name, message_id: letter.message_id };
  try {
    return { ...named, ...(await work()), error: null };
  } catch (error) {
    const { code, detail } = toPlatformError(error);
    return { ...named, error: { code, detail } };
  }
}

function count(items: readonly z.infer<typeof settledLetter>[]) {
  const failed = items.filter(({ error }) => error !== null).length;
  return { succeeded: items.length - failed, failed, items };
}

function readPlace(cursor: string | undefined): [string, number] | undefined {
  return cursor === undefined ? undefined : decodeCursor(cursor, placeSchema);
}
