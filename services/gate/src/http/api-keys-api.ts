// API keys of tenants: /api/v1/admin/api-keys.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { RATE_MAX } from "@platform/kernel/route-rules";
import { z } from "zod";
import type { AccessControl } from "../access/access-control.ts";
import type { ApiKeyRecord } from "../access/api-key-record.ts";
import { readJsonBody } from "./json-body.ts";
import { readChangeRequest } from "./request.ts";

const PATH = "/api/v1/admin/api-keys";
const BODY_BYTES_MAX = 65_536;
const ROUTES_MAX = 100;

const name = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    .regex(/^[^\p{Cc}]*$/u, { error: "expected no control characters" });

const newApiKeySchema = z.strictObject({
  tenant: name(256)
    .min(1)
    .meta({ description: "tenant of the key; upstreams get it in X-Tenant-Id" }),
  name: name(256).default("").meta({ description: "purpose of the key" }),
  rate_limit_rpm: z
    .int()
    .min(1)
    .max(RATE_MAX)
    .nullable()
    .default(null)
    .meta({ description: "maximum requests with this key in any 60 s, on all routes together" }),
  routes: z.array(name(4_096).min(1)).max(ROUTES_MAX).default([]).meta({
    description:
      "routes that the key opens, as in metrics: the prefix, preceded by the host if the route has one; empty: all that admit its tenant",
  }),
});

const shownSchema = z.object({
  id: z.string(),
  tenant: z.string(),
  name: z.string(),
  rate_limit_rpm: z.int().nullable(),
  routes: z.array(z.string()),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
});

/** Creates the endpoints for API keys. */
export function createApiKeyRoutes(access: AccessControl): ApiRoute[] {
  const own = { tag: "API keys" } as const;
  const byId = { ...own, path: `${PATH}/{id}`, params: z.object({ id: z.string().max(64) }) };
  const problems = { 404: "The key does not exist" };
  const changeProblems = {
    ...problems,
    409: "The state cannot be stored",
    507: "The disk is full",
  };
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: PATH,
      summary: "List API keys, revoked ones included",
      query: z.object({ tenant: z.string().optional() }),
      answer: z.array(shownSchema),
      handle: ({ query: { tenant } }) =>
        access
          .listKeys()
          .filter((key) => tenant === undefined || key.tenant === tenant)
          .map(show),
    }),
    defineRoute({
      ...own,
      method: "POST",
      path: PATH,
      summary: "Create an API key",
      description: "The response contains the key; it cannot be shown again.",
      bodyKind: "bytes",
      bodyBytesMax: BODY_BYTES_MAX,
      status: 201,
      problems: {
        400: "The settings are invalid",
        409: "The state cannot be stored",
        507: "There are too many keys, or the disk is full",
      },
      answer: shownSchema.extend({ key: z.string() }),
      handle: async (exchange) => {
        const { caller } = readChangeRequest(exchange);
        const wanted = readJsonBody(exchange.body, exchange.headers, newApiKeySchema);
        const { rate_limit_rpm: rateLimitRpm, ...rest } = wanted;
        const { record, plain } = await access.createKey({ ...rest, rateLimitRpm }, caller);
        exchange.answerHeaders.set("Cache-Control", "no-store");
        const { id, ...shown } = show(record);
        return { id, key: plain, ...shown };
      },
    }),
    defineRoute({
      ...byId,
      method: "GET",
      summary: "Show an API key",
      answer: shownSchema,
      problems,
      handle: ({ params }) => show(access.getKey(params.id)),
    }),
    defineRoute({
      ...byId,
      method: "DELETE",
      summary: "Revoke an API key",
      description: "Requests with the key get 401 from now on; its streams and WebSockets end.",
      answer: shownSchema,
      problems: changeProblems,
      handle: async (exchange) => {
        const { caller } = readChangeRequest(exchange);
        return show(await access.revokeKey(exchange.params.id, caller));
      },
    }),
  ];
}

function show({ hash: _hash, ...key }: ApiKeyRecord): z.infer<typeof shownSchema> {
  return key;
}
