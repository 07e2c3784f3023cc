// Buckets with a second copy and a cold tier, for pages that show both.
import type { Platform } from "../../identity/platform.ts";

const JSON_TYPE = { "content-type": "application/json" };
const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

/** Makes a bucket with versions. */
export async function makeVersioned(platform: Platform, name: string): Promise<void> {
  await platform.storage("PUT", `/${name}`);
  await platform.storage("PUT", `/${name}?versioning`, VERSIONED);
}

/** Registers a remote that nothing is sent to. */
export async function makeRemote(platform: Platform, name: string): Promise<void> {
  const place = { name, endpoint: "http://127.0.0.1:9", region: "eu" };
  const remote = JSON.stringify({ ...place, access_key: name, secret_key: `secret-of-${name}` });
  await platform.storage("POST", "/admin/remotes", remote, JSON_TYPE);
}

/** A replication document with one rule to a bucket of the same storage. */
export function describeReplication(target: string): object {
  return {
    Role: "",
    Rules: [
      {
        ID: "copy",
        Priority: 1,
        Filter: { Prefix: "" },
        Status: "Enabled",
        DeleteMarkerReplication: { Status: "Enabled" },
        Destination: { Bucket: `arn:aws:s3:::${target}` },
      },
    ],
  };
}

/** Gives a bucket a rule to another one, and a cold tier in a remote. */
export async function makePlaces(
  platform: Platform,
  bucket: string,
  target: string,
  remote: string,
): Promise<void> {
  for (const name of [bucket, target]) await makeVersioned(platform, name);
  const config = `/api/v1/buckets/${bucket}/config`;
  const replication = JSON.stringify(describeReplication(target));
  await platform.storage("PUT", `${config}/replication`, replication, JSON_TYPE);
  const tier = JSON.stringify({ days: 30, remote, bucket: "cold" });
  await platform.storage("PUT", `${config}/cold-tier`, tier, JSON_TYPE);
}
