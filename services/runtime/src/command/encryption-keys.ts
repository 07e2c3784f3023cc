// `platform encryption-key list`, `create`, `rotate`, `enable`, `disable`, `delete`, `rewrap`: the keys that storage encrypts with.
import { connectStorage } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { type Item, type ListOptions, showValue } from "./list.ts";
import { formatTextTable } from "./text-table.ts";

const PATH = "/admin/encryption-keys";
/** Objects are counted up to this number. */
const COUNTED_MAX = 10_000;
/** Jobs that end the use of former versions, in their order. */
const REWRAP = "rewrap";
const HEADS = "rewrite_heads";

/** Prints the named keys, then the key of SSE-S3 and the master key. */
export async function runKeyList({ data, json }: ListOptions): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const answer = await storage.call("GET", PATH);
  const { items, sse_s3: own, master } = answer as { items: Item[]; sse_s3: Item; master: Item };
  if (json) {
    for (const key of [...items, { name: "sse-s3", ...own }, { name: "master", ...master }])
      process.stdout.write(`${JSON.stringify(key)}\n`);
    return;
  }
  const rows = items.map((key) => [
    showValue(key["name"]),
    describeState(key),
    showValue(key["source"]),
    ...describeVersions(key),
  ]);
  process.stdout.write(
    formatTextTable([
      ["key", "state", "source", "versions", "objects", "rotated"],
      ...rows,
      ["sse-s3", "enabled", "local", ...describeVersions(own)],
      ["master", "enabled", showValue(master["source"]), "1", "–", "–"],
    ]),
  );
}

/** Creates a named key, and prints its ARN. */
export async function runKeyCreate(
  data: string,
  name: string,
  { source, description }: { source: string; description: string },
): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const { arn } = await storage.call("POST", PATH, { name, source, description });
  process.stdout.write(`${showValue(arn)}\n`);
}

/** Adds a version to a named key, `sse-s3` or `master`. */
export async function runKeyRotate(data: string, name: string): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  await storage.call("POST", `${PATH}/${encodeURIComponent(name)}/rotate`);
  process.stderr.write(
    `key ${name} has a new version; the job ${REWRAP} wraps the keys of objects again\n`,
  );
}

/** Enables a key, which ends its pending deletion, or disables it. */
export async function runKeyState(
  data: string,
  name: string,
  action: "enable" | "disable",
): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const key = await storage.call("POST", `${PATH}/${encodeURIComponent(name)}/${action}`);
  process.stderr.write(`key ${name} is ${describeState(key)}\n`);
}

/** Plans the deletion of a key. */
export async function runKeyDelete(data: string, name: string, days: number): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const path = `${PATH}/${encodeURIComponent(name)}?days=${days}`;
  const key = await storage.call("DELETE", path);
  process.stderr.write(
    `key ${name}: ${describeState(key)}, unless objects need it then; "encryption-key enable" keeps it\n`,
  );
}

/** Starts the job that wraps keys again, or with `heads` the one that writes former keys in heads of records anew; prints both. */
export async function runKeyRewrap(data: string, options: { heads: boolean }): Promise<void> {
  const storage = connectStorage(await findTarget(data));
  const kind = options.heads ? HEADS : REWRAP;
  await storage.call("POST", `/api/v1/jobs/${kind}/start`);
  const { items } = await storage.call("GET", "/api/v1/jobs");
  const jobs = (items as Item[]).filter((job) => [REWRAP, HEADS].includes(String(job["kind"])));
  const rows = jobs.map((job) => {
    const last = job["last"] as Item | null;
    const counts = Object.entries((last?.["counts"] ?? {}) as Record<string, number>);
    return [
      showValue(job["kind"]),
      showValue(job["state"]),
      last === null ? "–" : showValue(last["outcome"]),
      last === null ? "–" : showValue(last["ended_at"]),
      counts.map(([name, count]) => `${name} ${count}`).join(", "),
    ];
  });
  process.stdout.write(formatTextTable([["job", "state", "last run", "ended", "counts"], ...rows]));
}

function describeState(key: Item): string {
  const { state, delete_at: at } = key;
  return state === "pending_deletion" ? `to be deleted ${showValue(at)}` : showValue(state);
}

/** Columns: versions, objects under them, and the time of the newest one. */
function describeVersions(key: Item): string[] {
  const versions = key["versions"] as { created_at: string; objects: number }[];
  const objects = versions.reduce((sum, version) => sum + version.objects, 0);
  const isMore = versions.some((version) => version.objects >= COUNTED_MAX);
  return [
    String(versions.length),
    `${isMore ? "≥ " : ""}${objects}`,
    showValue(versions[0]?.created_at),
  ];
}
