// Web Push: the key for browsers, and their subscriptions.
import { z } from "zod";
import type { EgressFetch } from "@platform/kernel/egress";
import { PlatformError } from "@platform/kernel/errors";
import {
  createValidationError,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import type { PushSubscriptionRow } from "../database/push.ts";
import { encryptPush } from "../push/encryption.ts";
import type { PushSubscriptions } from "../push/subscriptions.ts";
import type { Vapid } from "../push/vapid.ts";
import { clientOf, requireSender } from "./access.ts";
import { requireAllowedTarget } from "./target.ts";

/** Parts that the routes use. */
export interface PushParts {
  subscriptions: PushSubscriptions;
  vapid: Vapid;
  /** Fetches with the egress guard, to check endpoints. */
  fetch: EgressFetch;
  /** Allows endpoints without TLS, for push services of tests. */
  allowsHttp: boolean;
}

const KEY_BYTES = 65;
const AUTH_BYTES = 16;

const base64url = z.string().regex(/^[A-Za-z0-9_-]{1,128}={0,2}$/, "base64url");
const subscriber = z.string().min(1).max(320);

const subscriptionBody = z.strictObject({
  subscriber: subscriber.describe("The user to whom the browser belongs, as `to` names it."),
  subscription: z
    .object({
      endpoint: z.url({ protocol: /^https?$/ }).max(2_048),
      expirationTime: z.number().positive().nullish(),
      keys: z.object({ p256dh: base64url, auth: base64url }),
    })
    .describe("The browser's `PushSubscription` as JSON."),
});

const subscriptionAnswer = z.object({
  id: z.string(),
  subscriber: z.string(),
  push_service: z.string().describe("Host of the endpoint"),
  created_at: z.string(),
  expires_at: z.string().nullable(),
});

export function createPushRoutes(parts: PushParts): ApiRoute[] {
  const { subscriptions, vapid, fetch } = parts;
  const operation = { tag: "Web Push", access: requireSender } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/push/key",
      summary: "The key with which browsers subscribe (applicationServerKey)",
      answer: z.object({ public_key: z.string() }),
      handle: () => ({ public_key: vapid.publicKey }),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/push/subscriptions",
      summary: "Store a browser's subscription",
      description: "A subscription with the same endpoint is replaced.",
      body: subscriptionBody,
      status: 201,
      problems: { 422: "The endpoint is, or resolves to, a private address" },
      answer: subscriptionAnswer,
      handle: async ({ body, caller }) => {
        const { endpoint, expirationTime, keys } = body.subscription;
        checkSubscription(endpoint, keys, parts.allowsHttp);
        await requireAllowedTarget(fetch, endpoint, "subscription.endpoint");
        const row = await subscriptions.add({
          client: clientOf(caller),
          subscriber: body.subscriber,
          endpoint,
          ...keys,
          expires_at: typeof expirationTime === "number" ? Math.floor(expirationTime) : null,
        });
        return toSubscription(row);
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/push/subscriptions",
      summary: "List one's subscriptions",
      query: pageQuery.extend({ subscriber: subscriber.optional() }),
      answer: z.object({ subscriptions: z.array(subscriptionAnswer), next_cursor: nextCursor }),
      handle: async ({ query, caller }) => {
        const page = await readPage(query, {
          key: z.string().max(64),
          read: (limit, after) =>
            subscriptions.list(clientOf(caller), query.subscriber, limit, after),
          keyOf: ({ id }) => id,
        });
        return { subscriptions: page.items.map(toSubscription), next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/push/subscriptions/{id}",
      summary: "Delete a subscription",
      answer: NO_BODY,
      handle: async ({ params, caller }) => {
        if (await subscriptions.remove(params["id"]!, clientOf(caller))) return undefined;
        throw new PlatformError("not_found", "There is no such subscription.");
      },
    }),
  ];
}

function checkSubscription(
  endpoint: string,
  { p256dh, auth }: { p256dh: string; auth: string },
  allowsHttp: boolean,
): void {
  const fail = (field: string, message: string): never => {
    throw createValidationError([{ in: "body", path: `subscription.${field}`, message }]);
  };
  if (!allowsHttp && !endpoint.startsWith("https:")) fail("endpoint", "must be an https URL");
  const keys = { p256dh: Buffer.from(p256dh, "base64url"), auth: Buffer.from(auth, "base64url") };
  if (keys.auth.length !== AUTH_BYTES) fail("keys.auth", `must have ${AUTH_BYTES} bytes`);
  if (keys.p256dh.length !== KEY_BYTES) fail("keys.p256dh", `must have ${KEY_BYTES} bytes`);
  try {
    encryptPush(Buffer.alloc(0), keys);
  } catch {
    fail("keys.p256dh", "not a point of the curve P-256");
  }
}

function toSubscription({
  id,
  subscriber: name,
  endpoint,
  created_at,
  expires_at,
}: PushSubscriptionRow) {
  return {
    id,
    subscriber: name,
    push_service: new URL(endpoint).host,
    created_at: new Date(created_at).toISOString(),
    expires_at: expires_at === null ? null : new Date(expires_at).toISOString(),
  };
}
