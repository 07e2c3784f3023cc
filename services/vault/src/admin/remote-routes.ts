// Remotes in the admin API: other stores that objects are moved to.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { Store } from "../object-store.ts";
import type { RemoteState } from "../store/remote-service.ts";
import { asProblem } from "./problem.ts";

const TAG = "Remotes";
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const LIST_MAX = 100;
const count = z.int().min(0);
const params = z.object({ name: z.string().min(1).max(80) });
const settings = {
  endpoint: z.string().min(1).max(2_048).describe("`http://` or `https://`, host, optional port."),
  region: z.string().min(1).max(64),
  access_key: z.string().min(1).max(256),
  path_style: z.boolean().describe("False puts the bucket into the host name."),
  ca_file: z
    .string()
    .min(1)
    .max(4_096)
    .describe("Certificates (PEM) of trusted authorities, a path on this machine."),
  prefix: z
    .string()
    .max(256)
    .regex(/^(?:[A-Za-z0-9._-]+\/)*$/, { error: "expected folders that end with a slash" })
    .describe("Put before all keys there."),
  allow: z
    .array(z.string().min(1).max(63))
    .max(LIST_MAX)
    .describe("Names of buckets whose owners may use it, with `*`. Root may always."),
  rate_bytes: count.describe("Bytes per second of moves and restores; 0 is no limit."),
  classes: z
    .array(z.string().regex(/^[A-Z][A-Z0-9_]{0,31}$/))
    .max(16)
    .describe("Storage classes of lifecycle rules whose objects go to `bucket` there."),
  bucket: z.string().min(3).max(63).describe("The bucket there for `classes`."),
};
const secret = z.string().min(1).max(1_024);
const addBody = z.strictObject({
  ...settings,
  name: z.string().regex(NAME, { error: "expected lower-case letters, digits and hyphens" }),
  secret_key: secret,
  region: settings.region.default("us-east-1"),
  path_style: settings.path_style.default(true),
  ca_file: settings.ca_file.exactOptional(),
  prefix: settings.prefix.default(""),
  allow: settings.allow.default([]),
  rate_bytes: settings.rate_bytes.default(0),
  classes: settings.classes.default([]),
  bucket: settings.bucket.exactOptional(),
});
const changeBody = z.strictObject({ ...settings, secret_key: secret }).partial();
const remoteAnswer = z.object({
  name: z.string(),
  ...settings,
  ca_file: settings.ca_file.nullable(),
  bucket: settings.bucket.nullable(),
  blobs: count.describe("Bodies of objects there; each part of a multipart object is one."),
  bytes: count.describe("Their bytes there."),
  state: z.enum(["unknown", "up", "failing"]).describe("By the last request."),
  state_at: z.string().nullable().describe("RFC 3339."),
  reason: z.string().nullable(),
});
const checkAnswer = z.object({
  outcome: z.enum(["ok", "warning", "failed"]),
  steps: z.array(
    z.object({
      step: z.enum([
        "bucket",
        "put",
        "ranged_get",
        "checksum",
        "delete",
        "versioning",
        "object_lock",
        "lifecycle",
      ]),
      outcome: z.enum(["ok", "warning", "failed", "skipped"]),
      detail: z.string(),
    }),
  ),
});
const MISSING = { 404: "No such remote" };

/** Routes that register, list, change, try and remove remotes. */
export function createRemoteRoutes(store: Store): ApiRoute[] {
  const { remotes } = store;
  return [
    defineRoute({
      method: "GET",
      path: "/admin/remotes",
      tag: TAG,
      summary: "Remotes by name, without their secrets",
      answer: z.object({ items: z.array(remoteAnswer) }),
      handle: () => ({ items: remotes.list().map(show) }),
    }),
    defineRoute({
      method: "POST",
      path: "/admin/remotes",
      tag: TAG,
      summary: "Register a remote",
      description: "Nothing is sent to it: `POST /admin/remotes/{name}/check` tries it.",
      body: addBody,
      status: 201,
      answer: remoteAnswer,
      problems: { 409: "A remote has this name" },
      handle: async ({ body: { secret_key: secretKey, ...added } }) => {
        if (remotes.find(added.name) !== undefined)
          throw new PlatformError("conflict", `The remote ${added.name} exists.`);
        return show(await asProblem(remotes.add(added, secretKey)));
      },
    }),
    defineRoute({
      method: "GET",
      path: "/admin/remotes/{name}",
      tag: TAG,
      summary: "A remote, without its secret",
      params,
      answer: remoteAnswer,
      problems: MISSING,
      handle: ({ params: { name } }) => show(requireRemote(store, name)),
    }),
    createChangeRoute(store),
    createCheckRoute(store),
    defineRoute({
      method: "DELETE",
      path: "/admin/remotes/{name}",
      tag: TAG,
      summary: "Remove a remote that is not used",
      params,
      answer: NO_BODY,
      problems: { ...MISSING, 409: "Objects, a cold tier or deletions use it" },
      handle: async ({ params: { name } }) => asProblem(remotes.remove(name)),
    }),
  ];
}

function createChangeRoute(store: Store): ApiRoute {
  return defineRoute({
    method: "PATCH",
    path: "/admin/remotes/{name}",
    tag: TAG,
    summary: "Change a remote, or its credentials",
    description: "From the next request on; requests in flight end with the former settings.",
    params,
    body: changeBody,
    answer: remoteAnswer,
    problems: { ...MISSING, 409: "Objects are at its endpoint" },
    handle: async ({ params: { name }, body }) => {
      requireRemote(store, name);
      const entries = Object.entries(body).filter(([, value]) => value !== undefined);
      return show(await asProblem(store.remotes.change(name, Object.fromEntries(entries))));
    },
  });
}

function createCheckRoute(store: Store): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/admin/remotes/{name}/check",
    tag: TAG,
    summary: "Try a bucket of a remote with an object that is deleted again",
    params,
    body: z.strictObject({ bucket: z.string().min(3).max(63).optional() }),
    answer: checkAnswer,
    problems: MISSING,
    handle: async ({ params: { name }, body }) => {
      const { settings: known } = requireRemote(store, name).remote;
      const bucket = body.bucket ?? known.bucket;
      if (bucket === undefined)
        throw new PlatformError("validation_failed", "bucket: required, since the remote has none");
      const steps = await asProblem(store.remotes.check(name, bucket));
      const outcomes = new Set(steps.map(({ outcome }) => outcome));
      const worst = outcomes.has("failed") ? "failed" : outcomes.has("warning") ? "warning" : "ok";
      return { outcome: worst, steps } as const;
    },
  });
}

function requireRemote(store: Store, name: string): RemoteState {
  const found = store.remotes.describe(name);
  if (found !== undefined) return found;
  throw new PlatformError("not_found", `The remote ${name} does not exist.`);
}

function show({ remote, usage: { blobs, bytes } }: RemoteState): z.input<typeof remoteAnswer> {
  const { settings: known, health } = remote;
  const { state, sinceMs, reason = null } = health;
  return {
    ...known,
    allow: [...known.allow],
    classes: [...known.classes],
    ca_file: known.ca_file ?? null,
    bucket: known.bucket ?? null,
    blobs,
    bytes,
    state,
    state_at: sinceMs === undefined ? null : new Date(sinceMs).toISOString(),
    reason,
  };
}
