// Federation in the admin API: which buckets are those of a remote.
import { type ApiRoute, defineRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { FederationRule } from "../model/federation.ts";
import type { Store } from "../object-store.ts";
import { asProblem } from "./problem.ts";

const TAG = "Remotes";
const prefix = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,61}$/, { error: "expected the beginning of the name of a bucket" })
  .describe("Beginning of the names of buckets; of several rules the longest counts.");
const addBody = z.union([
  z.strictObject({ prefix, remote: z.string().min(1).max(80).describe("A registered remote.") }),
  z.strictObject({
    prefix,
    endpoint: z
      .string()
      .min(1)
      .max(2_048)
      .describe("`http://` or `https://`, host, optional port."),
    region: z.string().min(1).max(64).default("us-east-1"),
    access_key: z.string().min(1).max(256),
    secret_key: z.string().min(1).max(1_024),
  }),
]);
const ruleAnswer = z.object({
  id: z.string(),
  prefix: z.string(),
  remote: z.string(),
  endpoint: z.string(),
  region: z.string(),
  created_at: z.string().describe("RFC 3339."),
});

/** Routes that add, list and remove rules of federation. */
export function createFederationRoutes(store: Store): ApiRoute[] {
  const { federation } = store;
  return [
    defineRoute({
      method: "GET",
      path: "/admin/federation",
      tag: TAG,
      summary: "Rules of federation, the longest prefix first",
      answer: z.object({ items: z.array(ruleAnswer) }),
      handle: () => ({ items: federation.list().map((rule) => show(store, rule)) }),
    }),
    defineRoute({
      method: "POST",
      path: "/admin/federation",
      tag: TAG,
      summary: "Pass requests about buckets on to a remote",
      description:
        "Requests about buckets with such a name are authorized by the policies of their sender, signed again with the keys of the remote, and passed on.",
      body: addBody,
      status: 201,
      answer: ruleAnswer,
      problems: { 409: "A bucket here, or another rule, has such a name" },
      handle: async ({ body: { prefix: beginning, ...place } }) =>
        show(store, await asProblem(federation.add(beginning, place))),
    }),
    defineRoute({
      method: "DELETE",
      path: "/admin/federation/{id}",
      tag: TAG,
      summary: "Remove a rule; the buckets of the remote stay there",
      params: z.object({ id: z.string().min(1).max(64) }),
      answer: NO_BODY,
      problems: { 404: "No such rule" },
      handle: async ({ params: { id } }) => asProblem(federation.remove(id)),
    }),
  ];
}

function show({ remotes }: Store, { id, prefix: beginning, remote, createdMs }: FederationRule) {
  const settings = remotes.find(remote)?.settings;
  return {
    id,
    prefix: beginning,
    remote,
    endpoint: settings?.endpoint ?? "",
    region: settings?.region ?? "",
    created_at: new Date(createdMs).toISOString(),
  };
}
