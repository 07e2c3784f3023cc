// Two running stores for tests of replication, each a remote of the other.
import assert from "node:assert/strict";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";

const { accessKey: access_key, secretKey: secret_key } = vaultRoot;

/** Two stores: `near` knows the other one as `far`, and the other way round. */
export interface TwoStores extends AsyncDisposable {
  near: Serving;
  far: Serving;
}

/** The status document of a rule. */
export interface RuleState {
  id: string;
  pending: number;
  failed: number;
  completed: number;
  paused_until: string | null;
  failures: { key: string; version_id: string; reason: string }[];
}

export async function startTwoStores(): Promise<TwoStores> {
  const [near, far] = await Promise.all([serve(), serve()]);
  await addRemote(near, "far", far.vault.url);
  await addRemote(far, "near", near.vault.url);
  return {
    near,
    far,
    async [Symbol.asyncDispose]() {
      await Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]);
    },
  };
}

export async function addRemote(
  serving: Serving,
  name: string,
  endpoint: string,
  more: object = {},
): Promise<void> {
  const body = { name, endpoint, access_key, secret_key, ...more };
  await readJson(callJson(serving, "POST", "/admin/remotes", body), 201);
}

/** Creates a bucket with versions. */
export async function makeBucket({ s3 }: Serving, bucket: string, isLocked = false): Promise<void> {
  const headers = isLocked ? { "x-amz-bucket-object-lock-enabled": "true" } : {};
  await s3.must("PUT", `/${bucket}`, { headers });
  const body = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
  if (!isLocked) await s3.must("PUT", `/${bucket}?versioning`, { body });
}

/** The document of one rule; `more` goes before its destination. */
export function describeRule(arn: string, more = "", destination = ""): string {
  return (
    `<ReplicationConfiguration><Role></Role><Rule><ID>r</ID><Priority>1</Priority><Status>Enabled</Status>` +
    `<Filter><Prefix></Prefix></Filter><DeleteMarkerReplication><Status>Enabled</Status></DeleteMarkerReplication>${more}` +
    `<Destination><Bucket>${arn}</Bucket>${destination}</Destination></Rule></ReplicationConfiguration>`
  );
}

/** Sends the versions of a bucket to one of the same name in a remote. */
export async function replicate(
  { s3 }: Serving,
  bucket: string,
  remote: string,
  more = "",
  destination = "",
): Promise<void> {
  const body = describeRule(`arn:objstore:replication::${remote}:${bucket}`, more, destination);
  await s3.must("PUT", `/${bucket}?replication`, { body });
}

export async function readStates({ s3 }: Serving, bucket: string): Promise<RuleState[]> {
  const { text } = await s3.must("GET", `/${bucket}?replication&status`);
  return (JSON.parse(text) as { rules: RuleState[] }).rules;
}

/** Waits until nothing waits to be sent. */
export async function settle(serving: Serving, bucket: string): Promise<void> {
  await waitFor(
    async () => (await readStates(serving, bucket)).every(({ pending }) => pending === 0),
    `all versions of ${bucket} to be sent`,
    60_000,
  );
}

/** The versions of a bucket in their order: key, id, whether it is a marker, entity tag. */
export async function listVersions({ s3 }: Serving, bucket: string): Promise<string[]> {
  const { text } = await s3.must("GET", `/${bucket}?versions`);
  const rows = text.matchAll(/<(Version|DeleteMarker)>(.*?)<\/\1>/gs);
  return [...rows].map(([, kind, inner = ""]) => {
    const read = (name: string): string =>
      new RegExp(`<${name}>(.*?)</${name}>`, "s").exec(inner)?.[1] ?? "";
    const parts = [read("Key"), read("VersionId"), read("IsLatest"), read("LastModified")];
    return [kind, ...parts, read("ETag")].join(" ");
  });
}

export async function requireSame(one: Serving, other: Serving, bucket: string): Promise<void> {
  assert.deepEqual(await listVersions(other, bucket), await listVersions(one, bucket));
}
