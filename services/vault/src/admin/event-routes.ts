// Notification subscriptions and their deliveries in the admin API.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import {
  type ApiRoute,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { Delivery, SubscriptionState } from "../delivery/delivery.ts";
import type { Try } from "../delivery/tries.ts";
import { deriveWebhookSecret } from "../delivery/webhook.ts";
import type { NotificationRule } from "../model/event.ts";
import {
  subscriptionSchema,
  toNotificationRule,
  toSubscription,
} from "../s3/bucket/notification.ts";
import type { ObjectApi } from "../s3/context.ts";
import type { Store } from "../object-store.ts";
import { asProblem } from "./problem.ts";

/** Options of the routes. The secrets of webhooks are derived from `masterKey`. */
export interface EventRouteOptions {
  api: ObjectApi;
  masterKey: Buffer;
  delivery: Pick<Delivery, "describe" | "test">;
}

const count = z.int().min(0);
const tryAnswer = z.object({
  ended_at: z.string().describe("RFC 3339."),
  duration_ms: count,
  event: z.string().describe("`objstore:ObjectCreated:Put`."),
  key: z.string().describe("Key of the object."),
  attempt: count.describe("1 is the first attempt of the event."),
  outcome: z
    .enum(["delivered", "failed", "abandoned"])
    .describe("A failed event is sent again; an abandoned one is among the dead letters."),
  reason: z.string().optional(),
  status: count.optional().describe("Of the answer of a webhook."),
  next_at: z.string().optional().describe("Planned time of the next attempt of a failed event."),
});
const namedQuery = z.object({
  bucket: z.string().min(1).max(63),
  id: z.string().min(1).max(255),
});
const subscriptionAnswer = z.object({
  id: z.string(),
  bucket: z.string(),
  events: z.array(z.string()),
  webhook: z.string().optional(),
  stomp: z
    .object({ url: z.string(), destination: z.string(), user: z.string().optional() })
    .optional()
    .describe("Without its password."),
  filter: z.object({ prefix: z.string().optional(), suffix: z.string().optional() }),
});
const signedSubscription = subscriptionAnswer.extend({
  secret: z.string().optional().describe("Secret that signs the calls of a webhook."),
});
const deliveryAnswer = subscriptionAnswer.extend({
  waiting: count.describe("Events in memory that wait for their delivery."),
  has_more: z.boolean().describe("True if further events wait on disk."),
  delivered: count.describe("Since the start of the service, as the next two."),
  failed: count.describe("Attempts."),
  abandoned: count.describe("Events."),
  tries: z.array(tryAnswer).describe("The last 20 since the start, the newest first."),
});

/** Routes that add subscriptions, list them with the secrets of their webhooks, and show what became of events. */
export function createEventRoutes(options: EventRouteOptions): ApiRoute[] {
  return [
    createSubscribeRoute(options),
    createSubscriptionsRoute(options),
    createRemovalRoute(options),
    createTestRoute(options),
    createDeliveriesRoute(options),
  ];
}

function createDeliveriesRoute({ api, delivery }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/events/deliveries",
    tag: "Events",
    summary: "Subscriptions of all buckets, with what became of their last events",
    query: pageQuery,
    answer: z.object({
      items: z.array(deliveryAnswer),
      next_cursor: nextCursor,
    }),
    handle: ({ query }) =>
      readPage(query, {
        key: z.string(),
        keyOf: ({ bucket, id }: { bucket: string; id: string }) => orderOf(bucket, id),
        read: async (length, after = "") => describeDeliveries(api.store, delivery, length, after),
      }),
  });
}

function describeDeliveries(
  store: Store,
  delivery: Pick<Delivery, "describe">,
  length: number,
  after: string,
) {
  const describe = delivery.describe();
  return store.buckets
    .list()
    .flatMap(({ name, settings }) =>
      (settings.notification?.rules ?? [])
        .map((rule) => ({ bucket: name, rule, order: orderOf(name, rule.id) }))
        .sort((a, b) => (a.order < b.order ? -1 : 1)),
    )
    .filter(({ order }) => order > after)
    .slice(0, length)
    .map(({ bucket, rule }) => ({
      ...toSubscription(bucket, rule),
      ...describeState(describe(bucket, rule.id)),
    }));
}

// Names of buckets contain no NUL: the order is that of the buckets, then of the identifiers.
function orderOf(bucket: string, id: string): string {
  return `${bucket}\0${id}`;
}

function describeState({ hasMore, tries, ...counts }: SubscriptionState) {
  return { ...counts, has_more: hasMore, tries: tries.map(describeTry) };
}

function describeTry(one: Try) {
  const { endedMs, durationMs, name, key, attempt, outcome, reason, status, nextMs } = one;
  return {
    ended_at: new Date(endedMs).toISOString(),
    duration_ms: durationMs,
    event: `objstore:${name}`,
    key,
    attempt,
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(status === undefined ? {} : { status }),
    ...(nextMs === undefined ? {} : { next_at: new Date(nextMs).toISOString() }),
  };
}

function createSubscribeRoute({ api, masterKey }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/events/subscribe",
    tag: "Events",
    summary: "Add a notification subscription",
    description: "The answer contains the secret that signs webhooks.",
    body: subscriptionSchema,
    status: 201,
    answer: signedSubscription,
    handle: async ({ body }) => {
      const bucket = body.bucket ?? "";
      const rule = await asProblem(
        Promise.resolve().then(() => toNotificationRule(body, "objstore", api.eventPolicy)),
      );
      await asProblem(api.store.buckets.addSubscription(bucket, rule));
      return showSubscription(masterKey, bucket, rule);
    },
  });
}

function createSubscriptionsRoute({ api, masterKey }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/events/subscriptions",
    tag: "Events",
    summary: "Subscriptions of a bucket, with the secrets that sign webhooks",
    description: "Includes subscriptions created with PutBucketNotificationConfiguration.",
    query: z.object({ bucket: z.string().min(1).max(63) }),
    answer: z.object({ subscriptions: z.array(signedSubscription) }),
    handle: async ({ query: { bucket } }) => {
      const rules = await asProblem(readRules(api.store, bucket));
      return { subscriptions: rules.map((rule) => showSubscription(masterKey, bucket, rule)) };
    },
  });
}

function createRemovalRoute({ api }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "DELETE",
    path: "/api/v1/events/subscriptions",
    tag: "Events",
    summary: "Delete a subscription",
    description: "Its waiting events are dropped; those in flight may still arrive.",
    query: namedQuery,
    status: 204,
    answer: NO_BODY,
    handle: async ({ query: { bucket, id } }) => {
      await findRule(api.store, bucket, id);
      await asProblem(api.store.buckets.removeSubscription(bucket, id));
    },
  });
}

function createTestRoute({ api, delivery }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/events/test",
    tag: "Events",
    summary: "Send a test message to the target of a subscription, once",
    description:
      "Signed as an event, with `Event: objstore:TestEvent` instead of records. At most 4 tests run at a time.",
    body: namedQuery.strict(),
    answer: z.object({
      outcome: z.enum(["delivered", "failed"]),
      duration_ms: count,
      status: count.optional().describe("Of the answer of a webhook."),
      reason: z.string().optional(),
    }),
    handle: async ({ body: { bucket, id } }) => {
      const done = await delivery.test(bucket, await findRule(api.store, bucket, id));
      if (done === undefined)
        throw createRetryLaterError("too_many_requests", "Too many tests run at this moment.", 5);
      const { outcome, durationMs } = done;
      return {
        outcome: outcome.kind === "delivered" ? ("delivered" as const) : ("failed" as const),
        duration_ms: durationMs,
        ...(outcome.status === undefined ? {} : { status: outcome.status }),
        ...(outcome.kind === "delivered" ? {} : { reason: outcome.reason }),
      };
    },
  });
}

async function findRule(store: Store, bucket: string, id: string): Promise<NotificationRule> {
  const rule = (await asProblem(readRules(store, bucket))).find((one) => one.id === id);
  if (rule !== undefined) return rule;
  throw new PlatformError("not_found", `The bucket ${bucket} has no subscription ${id}.`);
}

function showSubscription(masterKey: Buffer, bucket: string, rule: NotificationRule) {
  const { kind, url } = rule.target as { kind: string; url: string };
  const secret = kind === "webhook" ? { secret: deriveWebhookSecret(masterKey, bucket, url) } : {};
  return { ...toSubscription(bucket, rule), ...secret };
}

async function readRules(store: Store, bucket: string) {
  return store.buckets.require(bucket).settings.notification?.rules ?? [];
}
