// Notification subscriptions in the admin API.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
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
}

/** Routes that add subscriptions and list them with the secrets of their webhooks. */
export function createEventRoutes(options: EventRouteOptions): ApiRoute[] {
  return [createSubscribeRoute(options), createSubscriptionsRoute(options)];
}

function createSubscribeRoute({ api, masterKey }: EventRouteOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/api/v1/events/subscribe",
    summary: "Add a notification subscription",
    description: "The answer contains the secret that signs webhooks.",
    body: subscriptionSchema,
    status: 201,
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
    summary: "Subscriptions of a bucket, with the secrets that sign webhooks",
    description: "Includes subscriptions created with PutBucketNotificationConfiguration.",
    query: z.object({ bucket: z.string().min(1).max(63) }),
    handle: async ({ query: { bucket } }) => {
      const rules = await asProblem(readRules(api.store, bucket));
      return { subscriptions: rules.map((rule) => showSubscription(masterKey, bucket, rule)) };
    },
  });
}

function showSubscription(masterKey: Buffer, bucket: string, rule: NotificationRule) {
  const { kind, url } = rule.target as { kind: string; url: string };
  const secret = kind === "webhook" ? { secret: deriveWebhookSecret(masterKey, bucket, url) } : {};
  return { ...toSubscription(bucket, rule), ...secret };
}

async function readRules(store: Store, bucket: string) {
  return store.buckets.require(bucket).settings.notification?.rules ?? [];
}
