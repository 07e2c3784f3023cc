// Keys of encrypted objects in the admin API: named keys, the key of SSE-S3, and the master key.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { compileKeyPolicy } from "../access/policy.ts";
import { formatKeyArn } from "../keys/key-name.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import type { KeyVersion, NamedKeyRecord } from "../keys/sealed-content.ts";
import type { SecretKeys } from "../keys/secret-keys.ts";
import type { Store } from "../object-store.ts";
import { asProblem } from "./problem.ts";

const TAG = "Encryption keys";
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
/** Names that stand for the key of `SSE-S3` and the master key. */
const STORAGE = "sse-s3";
const MASTER = "master";
const COUNTED_MAX = 10_000;
const DAYS = { min: 7, max: 30 };

const params = z.object({ name: z.string().min(1).max(250).describe("Its name, or its id.") });
const count = z.int().min(0).max(COUNTED_MAX);
const time = z.string().describe("RFC 3339.");
const versionAnswer = z.object({
  id: z.string(),
  created_at: time,
  objects: count.describe(`Bodies whose keys it wraps, counted up to ${COUNTED_MAX}.`),
  heads: count.describe("Records with it in their heads only: the job rewrite_heads ends that."),
  available: z.boolean().describe("False while its secret service cannot be reached."),
});
const keyAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    arn: z.string(),
    alias: z.string(),
    description: z.string(),
    source: z.enum(["local", "secret_service"]),
    state: z.enum(["enabled", "disabled", "pending_deletion"]),
    created_at: time,
    delete_at: time.nullable().describe("Of a pending deletion; objects that need it delay it."),
    policy: z.record(z.string(), z.unknown()).nullable(),
    versions: z.array(versionAnswer).describe("The current one first."),
  })
  .meta({ id: "EncryptionKey" });
const listAnswer = z.object({
  items: z.array(keyAnswer),
  sse_s3: z.object({ versions: z.array(versionAnswer) }).describe("The key of SSE-S3."),
  master: z.object({
    source: z.enum(["file", "setting", "secret_service"]),
    id: z.string().describe("Identifies the key without revealing it."),
    version: z.int().nullable().describe("Of the secret."),
  }),
  secret_service: z.object({
    configured: z.boolean(),
    fault: z.string().nullable().describe("The reason why keys could not be read last."),
  }),
});
const policy = z
  .record(z.string(), z.unknown())
  .describe(
    "Who may use it: statements with Principal and the actions kms:GenerateDataKey and kms:Decrypt. Without it, callers that may write or read an object may use its key.",
  );
const description = z.string().max(1_000);
const MISSING = { 404: "No such key" };

/** Options of the routes. */
export interface KeyRouteOptions {
  store: Store;
  ring: KeyRing;
  secrets: SecretKeys | undefined;
}

/** Routes that create, list, change, rotate and delete keys. */
export function createKeyRingRoutes(options: KeyRouteOptions): ApiRoute[] {
  return [
    createListRoute(options),
    createAddRoute(options),
    defineRoute({
      method: "GET",
      path: "/admin/encryption-keys/{name}",
      tag: TAG,
      summary: "A named key",
      params,
      answer: keyAnswer,
      problems: MISSING,
      handle: ({ params: { name } }) => showKey(requireKey(options, name), options),
    }),
    createChangeRoute(options),
    createRotateRoute(options),
    createStateRoute(options, "disable"),
    createStateRoute(options, "enable"),
    createDeleteRoute(options),
  ];
}

function createListRoute(options: KeyRouteOptions): ApiRoute {
  const { ring, secrets } = options;
  return defineRoute({
    method: "GET",
    path: "/admin/encryption-keys",
    tag: TAG,
    summary: "Named keys by name, the key of SSE-S3, and the source of the master key",
    answer: listAnswer,
    handle: () => {
      const { source, id, version = null } = ring.master;
      return {
        items: ring.list().map((key) => showKey(key, options)),
        sse_s3: { versions: ring.storage.map((one) => showVersion(one, options)) },
        master: { source, id, version },
        secret_service: { configured: secrets !== undefined, fault: secrets?.fault ?? null },
      };
    },
  });
}

function createAddRoute(options: KeyRouteOptions): ApiRoute {
  return defineRoute({
    method: "POST",
    path: "/admin/encryption-keys",
    tag: TAG,
    summary: "Create a named key",
    description:
      "Objects are encrypted with it on request (`x-amz-server-side-encryption: aws:kms`), or by the default of their bucket. With the source `secret_service`, the secret of its name must exist.",
    body: z.strictObject({
      name: z.string().regex(NAME, { error: "expected letters, digits, hyphens and underscores" }),
      description: description.default(""),
      source: z.enum(["local", "secret_service"]).default("local"),
      policy: policy.optional(),
    }),
    status: 201,
    answer: keyAnswer,
    problems: { 409: "A key has this name", 503: "The secret service cannot be reached" },
    handle: async ({ body }) => {
      if (body.name === STORAGE || body.name === MASTER)
        throw new PlatformError("conflict", `The name ${body.name} stands for another key.`);
      return asProblem(
        Promise.resolve().then(async () => {
          if (body.policy !== undefined) compileKeyPolicy(body.policy);
          return showKey(await options.ring.create(body), options);
        }),
      );
    },
  });
}

function createChangeRoute(options: KeyRouteOptions): ApiRoute {
  return defineRoute({
    method: "PATCH",
    path: "/admin/encryption-keys/{name}",
    tag: TAG,
    summary: "Change the description or the policy of a key; null removes the policy",
    params,
    body: z.strictObject({
      description: description.exactOptional(),
      policy: policy.nullable().exactOptional(),
    }),
    answer: keyAnswer,
    problems: MISSING,
    handle: ({ params: { name }, body }) =>
      asProblem(
        Promise.resolve().then(() => {
          const { id } = requireKey(options, name);
          if (body.policy) compileKeyPolicy(body.policy);
          options.ring.describe(id, body);
          return showKey(requireKey(options, id), options);
        }),
      ),
  });
}

function createRotateRoute(options: KeyRouteOptions): ApiRoute {
  const { ring } = options;
  return defineRoute({
    method: "POST",
    path: "/admin/encryption-keys/{name}/rotate",
    tag: TAG,
    summary: "Replace a key by a new version",
    description: `New objects use it at once. The keys of others are wrapped again by the job rewrap; no object is written again. The name \`${STORAGE}\` rotates the key of SSE-S3, \`${MASTER}\` the master key.`,
    params,
    status: 202,
    answer: listAnswer.pick({ sse_s3: true, master: true }).extend({ key: keyAnswer.nullable() }),
    problems: { ...MISSING, 409: "There is no newer version in the secret service" },
    handle: async ({ params: { name } }) => {
      if (name === STORAGE) await asProblem(Promise.resolve().then(() => ring.rotateStorage()));
      else if (name === MASTER) await asProblem(ring.rotateMaster());
      else await asProblem(ring.rotateNamed(requireKey(options, name).id));
      const { source, id, version = null } = ring.master;
      const key = ring.get(name);
      return {
        key: key === undefined ? null : showKey(key, options),
        sse_s3: { versions: ring.storage.map((one) => showVersion(one, options)) },
        master: { source, id, version },
      };
    },
  });
}

function createStateRoute(options: KeyRouteOptions, action: "enable" | "disable"): ApiRoute {
  const isEnabling = action === "enable";
  return defineRoute({
    method: "POST",
    path: `/admin/encryption-keys/{name}/${action}`,
    tag: TAG,
    summary: isEnabling
      ? "Enable a key; ends its pending deletion"
      : "Disable a key: objects under it cannot be read or written until it is enabled",
    params,
    answer: keyAnswer,
    problems: MISSING,
    handle: ({ params: { name } }) => {
      const { id } = requireKey(options, name);
      options.ring.setState(id, isEnabling ? "enabled" : "disabled");
      return showKey(requireKey(options, id), options);
    },
  });
}

function createDeleteRoute(options: KeyRouteOptions): ApiRoute {
  const days = z.coerce.number().int().min(DAYS.min).max(DAYS.max).default(DAYS.max);
  return defineRoute({
    method: "DELETE",
    path: "/admin/encryption-keys/{name}",
    tag: TAG,
    summary: `Plan the deletion of a key in ${DAYS.min} to ${DAYS.max} days`,
    description:
      "It cannot be used from now on. It is not deleted while objects, older versions or parts of uploads need it. `enable` ends the plan.",
    params,
    query: z.object({ days }),
    status: 202,
    answer: keyAnswer,
    problems: MISSING,
    handle: ({ params: { name }, query }) => {
      const { id } = requireKey(options, name);
      options.ring.planDeletion(id, query.days);
      return showKey(requireKey(options, id), options);
    },
  });
}

function requireKey({ ring }: KeyRouteOptions, name: string): NamedKeyRecord {
  const found = ring.get(name);
  if (found !== undefined) return found;
  throw new PlatformError("not_found", `The key ${name} does not exist.`);
}

function showKey(key: NamedKeyRecord, options: KeyRouteOptions): z.input<typeof keyAnswer> {
  const { id, name, description: text, source, state, createdMs, deleteMs, versions } = key;
  return {
    id,
    name,
    arn: formatKeyArn(id),
    alias: `alias/${name}`,
    description: text,
    source,
    state,
    created_at: new Date(createdMs).toISOString(),
    delete_at: deleteMs === undefined ? null : new Date(deleteMs).toISOString(),
    policy: key.policy ?? null,
    versions: versions.map((version) => showVersion(version, options)),
  };
}

function showVersion({ id, createdMs }: KeyVersion, { store, ring, secrets }: KeyRouteOptions) {
  const { blobs: objects, heads } = store.keys.countUse(id, COUNTED_MAX);
  return {
    id,
    created_at: new Date(createdMs).toISOString(),
    objects,
    heads,
    available: ring.isLocal(id) || secrets?.isThere(id) === true,
  };
}
