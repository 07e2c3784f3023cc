// `platform credentials list`, `rotate`: the generated credentials.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { createIdSource } from "@platform/kernel/ids";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import { connectPlatform } from "../client/connect.ts";
import { explainStopped, findTarget, type Target } from "../client/target.ts";
import { CredentialStore } from "../credentials/credential-store.ts";
import { findRotatable, requireRotatable } from "../services/rotatable.ts";
import {
  explainFileError,
  formatFolder,
  isUsedFolder,
  lockExisting,
} from "../data-folder/data-folder.ts";
import { locatePlatform } from "../data-folder/platform-list.ts";
import { readRunning } from "../data-folder/running-file.ts";
import { CREDENTIALS } from "../services/credential-table.ts";
import { LOG_FILE } from "./logs.ts";
import { formatTextTable } from "./text-table.ts";

/** Prints the credentials as a table, or one JSON document a line. */
export async function runCredentialsList({ data, json }: { data: string; json: boolean }) {
  const dataDir = locatePlatform(data);
  if (!isUsedFolder(dataDir)) throw explainStopped(dataDir);
  const store = await openStore(dataDir);
  const items = store.list().map(({ name, madeAtMs, formerEndsAtMs }) => {
    const { opens, users } = CREDENTIALS.find((one) => one.name === name) ?? NO_ENTRY;
    return {
      name,
      opens,
      used_by: users,
      made_at: formatTime(madeAtMs),
      former_ends_at: formatTime(formerEndsAtMs),
    };
  });
  if (json) {
    for (const item of items) process.stdout.write(`${JSON.stringify(item)}\n`);
    return;
  }
  const rows = items.map(({ name, opens, used_by, made_at, former_ends_at }) => [
    name,
    opens,
    used_by.join(", "),
    made_at?.slice(0, 10) ?? "unknown",
    former_ends_at === null ? "" : `until ${former_ends_at}`,
  ]);
  process.stdout.write(
    formatTextTable([["credential", "opens", "used by", "made", "former value"], ...rows]),
  );
}

/** Of a value that the operator has added. */
const NO_ENTRY = { opens: "", users: [] as readonly string[] };

function formatTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** Options of {@link runCredentialsRotate}. */
export interface RotateOptions {
  data: string;
  name: string;
  /** Time in seconds for which the former value is accepted. */
  overlapS: number;
}

/** Replaces a credential, and prints what must be told to whom. */
export async function runCredentialsRotate(options: RotateOptions): Promise<void> {
  const { name } = options;
  const dataDir = locatePlatform(options.data);
  const isRunning = readRunning(dataDir) !== undefined;
  const rotated = isRunning
    ? await rotateRunning(await findTarget(options.data), options)
    : await rotateStopped(dataDir, options);
  const { tell } = findRotatable(name);
  const ended = Date.parse(rotated.formerEndsAt) <= Date.now();
  const lines = [
    `${name} has a new value, in ${formatFolder(join(dataDir, "credentials.env"))}`,
    ended
      ? "  the former value is refused from now on"
      : `  the former value is accepted until ${rotated.formerEndsAt}`,
    ...(rotated.followed.length > 0 ? [`  follow already: ${rotated.followed.join(", ")}`] : []),
    ...rotated.pending.map(
      (label) => `  restart before then: ${label}, which has not confirmed the new value`,
    ),
    ...(isRunning ? [] : ["  the services have it when the platform starts"]),
    ...(tell === undefined ? [] : [`  to do: ${tell}`]),
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

interface Rotated {
  /** RFC 3339. */
  formerEndsAt: string;
  followed: readonly string[];
  pending: readonly string[];
}

async function rotateRunning(target: Target, { name, overlapS }: RotateOptions): Promise<Rotated> {
  const path = `/api/v1/credentials/${encodeURIComponent(name)}/rotate`;
  const answer = await connectPlatform(target).call("POST", path, { overlap_seconds: overlapS });
  const {
    former_ends_at: formerEndsAt,
    followed,
    pending,
  } = answer as unknown as {
    former_ends_at: string;
    followed: string[];
    pending: string[];
  };
  return { formerEndsAt, followed, pending };
}

// The lock keeps a platform from starting meanwhile.
async function rotateStopped(dataDir: string, { name, overlapS }: RotateOptions): Promise<Rotated> {
  const release = isUsedFolder(dataDir) ? await lockExisting(dataDir) : undefined;
  if (release === undefined) throw explainStopped(dataDir);
  try {
    const store = await openStore(dataDir);
    requireRotatable(store, name, overlapS * 1_000);
    const now = systemClock.now();
    const endsAtMs = now + overlapS * 1_000;
    store.offer(name);
    store.commit(name, endsAtMs);
    if (overlapS === 0) store.endFormer(name);
    const formerEndsAt = new Date(endsAtMs).toISOString();
    noteAudit(dataDir, name, formerEndsAt);
    return { formerEndsAt, followed: [], pending: [] };
  } catch (error) {
    throw explainFileError(error, dataDir);
  } finally {
    release();
  }
}

// As the running platform does: in its log.
function noteAudit(dataDir: string, name: string, formerEndsAt: string): void {
  const log = createLogger({
    service: "platform",
    format: "json",
    write: (line) => appendFileSync(join(dataDir, LOG_FILE), line, { mode: 0o600 }),
  });
  log.info("credential rotated", {
    audit: true,
    caller: "operator",
    target: name,
    former_ends_at: formerEndsAt,
    followed: [],
  });
}

function openStore(folder: string): Promise<CredentialStore> {
  const now = (): number => systemClock.now();
  return CredentialStore.open({ folder, env: process.env, ids: createIdSource(), now });
}
