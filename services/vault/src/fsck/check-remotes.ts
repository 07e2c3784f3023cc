// Reads every body in remotes against its checksums, and lists keys there that no object needs.
import { createEgressGuard } from "@platform/kernel/egress";
import { systemClock } from "@platform/kernel/time";
import { decodeHead, decodeTrailer, measureFrames } from "../blob/layout.ts";
import { readFrames } from "../blob/frame-reader.ts";
import { type IndexConnection, openIndexReader } from "../index/schema.ts";
import { matchesSeal, type RemoteBlobRow, sealRemote, sealRemoteBlob } from "../index/seal.ts";
import type { RemoteDocument, SecretSealer } from "../model/remote.ts";
import { Remotes } from "../remote/remotes.ts";
import { readDeletion } from "../transaction/remote-rows.ts";
import { nameObjects } from "./check-bodies.ts";

/** Options of the check. */
export interface RemoteCheckOptions {
  /** Opens the secret keys of remotes. */
  readonly secrets: SecretSealer;
  /** Private addresses and ranges that remotes may have. */
  readonly networks: readonly string[];
}

/** The result of the check. */
export interface RemoteBodiesReport {
  bodies: number;
  /** Objects whose bytes in a remote are missing or other ones. */
  lost: string[];
  /** Bodies that could not be read, with the reason: nothing is known about them. */
  unread: string[];
  /** Keys of this store that no object and no task refers to, by remote and bucket. */
  unused: string[];
}

/** Name of the object that says whose keys these are. */
const MARKER = "store.json";
const UNREAD_MAX = 20;

/** Checks the bodies in remotes of an index. Rejects if the index cannot be opened. */
export async function checkRemotes(
  indexPath: string,
  { secrets, networks }: RemoteCheckOptions,
): Promise<RemoteBodiesReport> {
  const index = openIndexReader(indexPath);
  const guard = createEgressGuard({ allowedNetworks: networks });
  const remotes = new Remotes({ secrets, guard, clock: systemClock });
  try {
    const store = index.sql("select value from facts where name = 'store'").get();
    remotes.storeId = String(store?.["value"] ?? "");
    for (const row of index.sql("select name, document, seal from remotes").all()) {
      const [name, document] = [String(row["name"]), String(row["document"])];
      if (row["seal"] === sealRemote(name, document))
        remotes.put(JSON.parse(document) as RemoteDocument);
    }
    const report: RemoteBodiesReport = { bodies: 0, lost: [], unread: [], unused: [] };
    await checkBodies(index, remotes, report);
    await listUnused(index, remotes, report);
    return report;
  } finally {
    remotes.close();
    index.close();
  }
}

async function checkBodies(
  index: IndexConnection,
  remotes: Remotes,
  report: RemoteBodiesReport,
): Promise<void> {
  for (const found of index.sql("select * from remote_blobs order by remote, blob").iterate()) {
    const row = found as unknown as RemoteBlobRow & { seal: number };
    // A damaged row is a finding of the index.
    if (!matchesSeal(row.seal, sealRemoteBlob(row))) continue;
    report.bodies += 1;
    try {
      await readRecord(remotes, row);
    } catch (error) {
      const isLost = (error as { code?: string }).code === "InternalError";
      const reason = error instanceof Error ? error.message : String(error);
      if (isLost)
        report.lost.push(...nameObjects(index, row.blob).map((name) => `${name}: ${reason}`));
      else if (report.unread.length < UNREAD_MAX) report.unread.push(`${row.key}: ${reason}`);
    }
  }
}

async function readRecord(remotes: Remotes, row: RemoteBlobRow): Promise<void> {
  const remote = remotes.require(row.remote);
  const { copy: _, ...place } = row;
  const head = decodeHead(await remote.read(place, 0, row.position));
  if (head?.id !== row.blob) throw damaged("another record");
  const source = {
    read: (position: number, length: number) => remote.read(place, position, position + length),
    failCorrupt: () => damaged("other bytes"),
  };
  const wanted = { position: row.position, start: 0, end: head.stored, window: undefined };
  let bytes = 0;
  for await (const chunk of readFrames(source, head, wanted)) bytes += chunk.length;
  const trailerAt = row.position + measureFrames(head.stored);
  const trailer = decodeTrailer(await remote.read(place, trailerAt, row.bytes));
  if (trailer === undefined || bytes !== head.stored) throw damaged("no trailer");
}

async function listUnused(
  index: IndexConnection,
  remotes: Remotes,
  report: RemoteBodiesReport,
): Promise<void> {
  const known = new Set<string>();
  const buckets = new Map<string, Set<string>>();
  const note = (remote: string, bucket: string, key: string): void => {
    known.add(`${remote}/${bucket}/${key}`);
    buckets.set(remote, (buckets.get(remote) ?? new Set()).add(bucket));
  };
  for (const row of index.sql("select remote, bucket, key from remote_blobs").iterate())
    note(String(row["remote"]), String(row["bucket"]), String(row["key"]));
  for (const row of index.sql("select rule, key from tasks where kind = 'delete-remote'").all()) {
    const key = readDeletion(row as unknown as { rule: string; key: Uint8Array });
    note(key.remote, key.bucket, key.key);
  }
  for (const [name, names] of buckets) {
    const remote = remotes.find(name);
    if (remote === undefined) continue;
    const folder = `${remote.settings.prefix}${remotes.storeId}/`;
    for (const bucket of names) {
      try {
        for await (const { key } of remote.client(bucket).listAll(folder)) {
          const isOwn = known.has(`${name}/${bucket}/${key}`) || key === `${folder}${MARKER}`;
          if (!isOwn) report.unused.push(`${name}: ${bucket}/${key}`);
        }
      } catch (error) {
        report.unread.push(`${name}: ${bucket}: ${error instanceof Error ? error.message : ""}`);
      }
    }
  }
}

function damaged(what: string): Error {
  return Object.assign(new Error(what), { code: "InternalError" });
}
