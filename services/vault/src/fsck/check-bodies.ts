// Reads every body that an index refers to against its checksums, and names the objects with damaged bodies.
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { closeFile, openFile, type StoreFolders } from "../disk/files.ts";
import { scanRecords } from "../blob/record-scan.ts";
import type { DriveSet } from "../blob/drive/drive-set.ts";
import { openIndexReader, type IndexConnection } from "../index/schema.ts";
import { listBodies, readBodyId } from "./records.ts";

/** The result of checking bodies. */
export interface BodiesReport {
  bodies: number;
  /** Objects with bodies, or parts, that cannot be restored. */
  lost: string[];
  /** Copies and shards that are damaged or missing on one drive and intact on others. */
  healable: number;
  /** Files in quarantine that are in use; a repair moves them back. */
  returned: number;
  /** Bodies that the index does not refer to. */
  unused: number;
}

/** Checks the bodies of a store whose index is at `indexPath`. */
export async function checkBodies(
  indexPath: string,
  drives: DriveSet,
  isRepair: boolean,
): Promise<BodiesReport> {
  const report: BodiesReport = { bodies: 0, lost: [], healable: 0, returned: 0, unused: 0 };
  const found: Bodies[] = [];
  for (const { folders, isPresent } of drives.all) {
    found.push(isPresent ? await scanFolder(folders) : new Map());
  }
  const index = openIndexReader(indexPath);
  try {
    const used = new Set<number>();
    const rows = index.sql("select id, kind, segment from blobs where kind <> 'inline'").iterate();
    for (const row of rows) {
      const id = Number(row["id"]);
      used.add(id);
      // A manifest, or the stub of a body in a remote, is only needed to rebuild the index.
      if (row["kind"] === "parts" || row["kind"] === "remote") continue;
      report.bodies += 1;
      const segment = row["kind"] === "segment" ? Number(row["segment"]) : undefined;
      const wanted = segment === undefined ? drives.rankShards(id) : drives.rankCopies(segment);
      const needed = segment === undefined ? drives.data : 1;
      let whole = 0;
      for (const { slot, folders } of drives.all) {
        const path = segment === undefined ? folders.file(id) : folders.segment(segment);
        if (hasBody(found[slot]!, id, path, isRepair, report)) whole += 1;
      }
      if (whole < needed) report.lost.push(...nameObjects(index, id));
      else report.healable += Math.max(0, wanted.length - whole);
    }
    const all = new Set(found.flatMap((bodies) => [...bodies.keys()]));
    report.unused = [...all].filter((id) => !used.has(id)).length;
    return report;
  } finally {
    index.close();
  }
}

// Paths of the files that contain an intact copy of the body.
type Bodies = Map<number, string[]>;

async function scanFolder(folders: StoreFolders): Promise<Bodies> {
  const bodies: Bodies = new Map();
  for (const path of listBodies(folders)) {
    const fd = await openFile(path, "r");
    try {
      for await (const record of scanRecords(fd)) {
        if ((await record.verify()) >= 0) continue;
        bodies.set(record.id, [...(bodies.get(record.id) ?? []), path]);
      }
    } finally {
      await closeFile(fd);
    }
  }
  return bodies;
}

function hasBody(
  bodies: Bodies,
  id: number,
  path: string,
  isRepair: boolean,
  report: BodiesReport,
): boolean {
  const paths = bodies.get(id) ?? [];
  if (paths.includes(path)) return true;
  const elsewhere = paths.find((other) => readBodyId(other) === readBodyId(path));
  if (elsewhere === undefined || existsSync(path)) return false;
  report.returned += 1;
  if (!isRepair) return true;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  renameSync(elsewhere, path);
  // The other bodies of a segment move with it.
  for (const list of bodies.values()) {
    const at = list.indexOf(elsewhere);
    if (at >= 0) list[at] = path;
  }
  return true;
}

/** Names of the objects that a blob, or a part of them, belongs to. */
export function nameObjects(index: IndexConnection, blob: number): string[] {
  const names = index
    .sql(
      "select b.name, o.key, o.version from (select bucket, key, version, blob from current union all " +
        "select bucket, key, version, blob from versions) o join buckets b on b.id = o.bucket " +
        "where o.blob = ?1 or o.blob in (select blob from blob_parts where part = ?1)",
    )
    .all(blob)
    .map((row) => {
      const key = Buffer.from(row["key"] as Uint8Array).toString("utf8");
      const version = row["version"] === "null" ? "" : `?versionId=${String(row["version"])}`;
      return `${String(row["name"])}/${key}${version}`;
    });
  return names.length > 0 ? names : [`a part of an upload (blob ${blob.toString(16)})`];
}
