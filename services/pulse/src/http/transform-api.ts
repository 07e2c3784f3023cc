// The transform of a topic over HTTP: describe, set, delete, and try a module on the latest messages.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  defineRoute,
  requirePreconditions,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { readText } from "../message/message.ts";
import { readLatest } from "../store/read-latest.ts";
import type { Store } from "../store/store.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Transforms } from "../transform/transforms.ts";
import { type Admission, tenantOf } from "./admission.ts";

const TRANSFORM_BYTES_MAX = 6 * 1024 * 1024;
/** Messages that a module is tried on. */
const TRIED_MAX = 20;
/** Characters of a payload in the result of a trial. */
const SHOWN_MAX = 65_536;
const PATH = "/api/v1/topics/{topic}/transform";

/** Options of the routes. */
export interface TransformRoutesOptions {
  admission: Admission;
  topics: Topics;
  transforms: Transforms;
  store: Store;
}

const moduleAnswer = z.object({ topic: z.string(), bytes: z.int(), sha256: z.string() });
const shownPayload = z.object({
  payload: z.string().describe("Text, otherwise base64."),
  bytes: z.int(),
  is_text: z.boolean(),
});

export function createTransformRoutes(options: TransformRoutesOptions): ApiRoute[] {
  const { topics, transforms, admission } = options;
  const common = { path: PATH, tag: "Rules of a topic" } as const;
  const change = { ...common, access: admission.managers } as const;
  const module = { bodyKind: "bytes", bodyBytesMax: TRANSFORM_BYTES_MAX } as const;
  return [
    defineRoute({
      ...common,
      method: "GET",
      summary: "Size and SHA-256 of the WebAssembly module that transforms payloads",
      access: admission.anyRight,
      problems: { 404: "The topic does not exist or has no transform." },
      answer: moduleAnswer,
      handle: ({ params, caller, answerHeaders }) => {
        const name = admission.allow(caller, "any", params["topic"]!);
        const topic = topics.get(tenantOf(caller), name);
        const described = transforms.describe(topic);
        if (described === undefined) {
          throw new PlatformError("not_found", "The topic has no transform.");
        }
        answerHeaders.set("ETag", tagOf(described)!);
        return { topic: name, ...described };
      },
    }),
    defineRoute({
      ...change,
      ...module,
      method: "POST",
      summary: "Set the WebAssembly module that transforms payloads; an empty body deletes it",
      answer: bytes("text/plain"),
      handle: async ({ params, body, caller }) => {
        const topic = await ensureTopic(options, caller, params["topic"]!);
        if (body.length === 0) {
          await transforms.clear(topic);
          return `Transform cleared for topic ${topic.name}\n`;
        }
        await transforms.register(topic, Buffer.from(body));
        return `Transform registered for topic ${topic.name}\n`;
      },
    }),
    defineRoute({
      ...change,
      ...module,
      method: "PUT",
      summary: "Set the WebAssembly module that transforms payloads",
      description:
        "With If-Match, only if the transform has this ETag; with `If-None-Match: *`, only if there is none.",
      problems: {
        400: "The body is not a module that can run.",
        412: "The transform has changed.",
      },
      answer: moduleAnswer,
      handle: async ({ params, body, headers, caller }) => {
        if (body.length === 0) throw new PlatformError("validation_failed", "The body is empty.");
        const topic = await ensureTopic(options, caller, params["topic"]!);
        requirePreconditions(headers, tagOf(transforms.describe(topic)));
        await transforms.register(topic, Buffer.from(body));
        return { topic: topic.name, ...transforms.describe(topic)! };
      },
    }),
    defineRoute({
      ...change,
      method: "DELETE",
      summary: "Delete the transform; payloads are stored as they are published",
      problems: { 412: "The transform has changed." },
      answer: NO_BODY,
      handle: async ({ params, headers, caller }) => {
        const name = admission.allow(caller, "manage", params["topic"]!);
        const topic = topics.get(tenantOf(caller), name);
        requirePreconditions(headers, tagOf(transforms.describe(topic)));
        await transforms.clear(topic);
      },
    }),
    createTrialRoute(options),
  ];
}

function createTrialRoute(options: TransformRoutesOptions): ApiRoute {
  const { topics, transforms, admission, store } = options;
  return defineRoute({
    method: "POST",
    path: `${PATH}/test`,
    summary: "Try a WebAssembly module on the latest messages, newest first",
    description:
      "Changes nothing. With an empty body, the module of the topic. Payloads are shown up to 65 536 characters. The stored messages have " +
      "passed the transform that the topic had when they were published.",
    tag: "Rules of a topic",
    access: admission.managers,
    bodyKind: "bytes",
    bodyBytesMax: TRANSFORM_BYTES_MAX,
    query: z.object({
      messages: z
        .string()
        .regex(/^\d{1,2}$/)
        .transform(Number)
        .refine(
          (count) => count >= 1 && count <= TRIED_MAX,
          `a whole number from 1 to ${TRIED_MAX}`,
        )
        .default(5),
    }),
    problems: { 404: "The topic does not exist, or has no transform and the body is empty." },
    answer: z.object({
      topic: z.string(),
      messages: z.array(
        z.object({
          partition: z.int(),
          offset: z.int(),
          before: shownPayload,
          after: shownPayload.nullable(),
          error: z.string().nullable(),
        }),
      ),
    }),
    handle: async ({ params, query, body, caller }) => {
      const name = admission.allow(caller, "manage", params["topic"]!);
      // Payloads are in the answer.
      const topic = topics.get(tenantOf(caller), admission.allow(caller, "subscribe", name));
      const run = await transforms.prepareTrial(
        topic,
        body.length === 0 ? undefined : Buffer.from(body),
      );
      const messages = [];
      for (const found of await readLatest(store, topic.stored.partitions, query.messages)) {
        const { partition, record } = found;
        const payload = record.value ?? Buffer.alloc(0);
        const result = await run(payload);
        messages.push({
          partition,
          offset: record.offset,
          before: show(payload),
          after: result.kind === "done" ? show(result.payload) : null,
          error: result.kind === "failed" ? result.reason : null,
        });
      }
      return { topic: topic.name, messages };
    },
  });
}

function tagOf(described: { sha256: string } | undefined): string | undefined {
  return described === undefined ? undefined : `"${described.sha256}"`;
}

function show(payload: Buffer) {
  const text = readText(payload);
  return {
    payload: (text ?? payload.toString("base64")).slice(0, SHOWN_MAX),
    bytes: payload.length,
    is_text: text !== undefined,
  };
}

function ensureTopic(
  { topics, admission }: TransformRoutesOptions,
  caller: Caller,
  name: string,
): Promise<Topic> {
  return topics.ensure(tenantOf(caller), admission.allow(caller, "manage", name));
}
