// `platform remote list`, `remote check`, `federation list`, `replication show`, `tier sweep`: storage beyond one place.
import { ApiError } from "../client/api-client.ts";
import { connectObjects, connectStorage } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { type Item, type ListOptions, printPages, showValue } from "./list.ts";
import { formatTextTable } from "./text-table.ts";

/** A sweep answers after 30 s and continues. */
const SWEEP_MS = 60_000;
/** A trial sends several requests to a remote that may be slow. */
const CHECK_MS = 120_000;

/** Prints the registered remotes, without their secrets. */
export async function runRemoteList({ data, json }: ListOptions): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const header = ["remote", "endpoint", "region", "state", "bytes", "reason"];
  await printPages(json, header, storage, "/admin/remotes", [
    (remote) => showValue(remote["name"]),
    (remote) => showValue(remote["endpoint"]),
    (remote) => showValue(remote["region"]),
    (remote) => showValue(remote["state"]),
    (remote) => showValue(remote["bytes"]),
    (remote) => showValue(remote["reason"] ?? ""),
  ]);
}

/** Tries a bucket of a remote, and prints the steps. Resolves to 1 if one has failed. */
export async function runRemoteCheck(
  data: string,
  name: string,
  bucket: string | undefined,
): Promise<number> {
  const storage = connectStorage(await findTarget(data), CHECK_MS);
  const path = `/admin/remotes/${encodeURIComponent(name)}/check`;
  const report = await storage.call("POST", path, bucket === undefined ? {} : { bucket });
  const rows = (report["steps"] as Item[]).map((step) =>
    ["step", "outcome", "detail"].map((member) => showValue(step[member])),
  );
  process.stdout.write(formatTextTable([["step", "outcome", "detail"], ...rows]));
  return report["outcome"] === "failed" ? 1 : 0;
}

/** Prints the rules of federation, the longest prefix first. */
export async function runFederationList({ data, json }: ListOptions): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  await printPages(json, ["buckets", "remote", "endpoint", "rule"], storage, "/admin/federation", [
    (rule) => `${showValue(rule["prefix"])}*`,
    (rule) => showValue(rule["remote"]),
    (rule) => showValue(rule["endpoint"]),
    (rule) => showValue(rule["id"]),
  ]);
}

/** Prints the state of a bucket's replication rules, with some of what has failed. */
export async function runReplicationShow({
  data,
  json,
  bucket,
}: ListOptions & { bucket: string }): Promise<void> {
  const objects = connectObjects(await findTarget(data));
  const path = `/${encodeURIComponent(bucket)}?replication=&status=`;
  const { rules } = await objects.call("GET", path).catch((error: unknown) => {
    const isMissing = error instanceof ApiError && error.status === 404;
    throw isMissing
      ? new Error(`the bucket ${bucket} does not exist, or has no replication`)
      : error;
  });
  const states = rules as Item[];
  if (json) {
    for (const state of states) process.stdout.write(`${JSON.stringify(state)}\n`);
    return;
  }
  const header = ["rule", "destination", "state", "waiting", "failed", "sent", "lag s"];
  const rows = states.map((state) => [
    showValue(state["id"]),
    showValue(state["destination"]),
    nameState(state),
    ...["pending", "failed", "completed", "lag_seconds"].map((member) => showValue(state[member])),
  ]);
  process.stdout.write(formatTextTable([header, ...rows]));
  const since = states[0]?.["counted_since"];
  if (since !== undefined) process.stdout.write(`sent since ${showValue(since)}\n`);
  for (const state of states) {
    if (state["suspended"] !== null) process.stdout.write(`${showValue(state["suspended"])}\n`);
    for (const failure of state["failures"] as Item[]) {
      const [key, version, reason] = ["key", "version_id", "reason"].map((member) =>
        showValue(failure[member]),
      );
      process.stdout.write(`failed: ${key} (${version}): ${reason}\n`);
    }
  }
}

function nameState({ enabled, suspended, paused_until: pausedUntil }: Item): string {
  if (enabled !== true) return "disabled";
  if (suspended !== null) return "suspended";
  return pausedUntil === null ? "active" : `paused until ${showValue(pausedUntil)}`;
}

/** Moves what is due of a bucket to its cold tier, and prints the counts. */
export async function runTierSweep(data: string, bucket: string): Promise<void> {
  const objects = connectObjects(await findTarget(data), SWEEP_MS);
  const path = `/${encodeURIComponent(bucket)}?cold-tier=&sweep=`;
  const report = await objects.call("POST", path).catch((error: unknown) => {
    const isMissing = error instanceof ApiError && error.status === 404;
    throw isMissing ? new Error(`the bucket ${bucket} does not exist, or has no cold tier`) : error;
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
}
