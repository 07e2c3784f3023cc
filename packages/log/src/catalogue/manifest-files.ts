// The manifest files: finds and reads the copies and chooses the one to use.
import { readFileIfThere } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import { decodeFileHeader, refuseNewer, scanFrames } from "../frame/frame.ts";
import type { Quarantine } from "../types.ts";
import type { CheckpointDocument, ManifestDocument } from "./manifest-documents.ts";

/** The folder of the manifest. */
export const MANIFEST_FOLDER = "manifest";

/** Name of a manifest file. `copy` is `undefined` in files of version 1, which had one copy. */
export interface ManifestName {
  number: number;
  copy: "a" | "b" | undefined;
  path: string;
}

/** A usable manifest: its documents up to the last checkpoint. */
interface ManifestCopy extends ManifestName {
  generation: number;
  /** Format version of the file. */
  version: 1 | 2 | 3;
  documents: ManifestDocument[];
  checkpoint: CheckpointDocument;
  headerDamage?: Quarantine;
}

/** The manifests of a folder. */
export interface LoadedManifest {
  /** The copy to use; `undefined` if no copy is usable. */
  chosen: ManifestCopy | undefined;
  /** Highest file number in use, 0 if there is no file. */
  numberMax: number;
  /** Damaged copies; they are replaced from the chosen one. */
  damaged: Quarantine[];
  /** The other copy of the chosen manifest is missing. */
  isPartnerMissing: boolean;
}

/** The path of a manifest copy. */
export function manifestPath(number: number, copy: "a" | "b"): string {
  return `${MANIFEST_FOLDER}/${String(number).padStart(16, "0")}.${copy}.manifest`;
}

/** The existing manifest files, ascending. */
export async function listManifests(disk: Disk): Promise<ManifestName[]> {
  const names = (await disk.list(MANIFEST_FOLDER)).flatMap((name): ManifestName[] => {
    const match = /^(\d{16})(?:\.([ab]))?\.manifest$/.exec(name);
    if (match === null) return [];
    const copy = match[2] as "a" | "b" | undefined;
    return [{ number: Number(match[1]), copy, path: `${MANIFEST_FOLDER}/${name}` }];
  });
  return names.sort((a, b) => a.number - b.number || (a.path < b.path ? -1 : 1));
}

/** Reads every manifest file and chooses the undamaged one of the highest generation. */
export async function loadManifest(disk: Disk): Promise<LoadedManifest> {
  const names = await listManifests(disk);
  const damaged: Quarantine[] = [];
  const usable: ManifestCopy[] = [];
  let before: { bytes: Buffer; read: ManifestCopy | Quarantine } | undefined;
  for (const name of names) {
    const bytes = (await readFileIfThere(disk, name.path)) ?? Buffer.alloc(0);
    // The copies are usually equal, so one parse is enough.
    const isSame = before?.bytes.equals(bytes) === true && !("reason" in before.read);
    const read = isSame
      ? { ...(before!.read as ManifestCopy), ...name }
      : await readCopy(name, bytes);
    before = { bytes, read };
    if ("reason" in read) {
      damaged.push(read);
      continue;
    }
    if (read.headerDamage !== undefined) damaged.push(read.headerDamage);
    usable.push(read);
  }
  let chosen: ManifestCopy | undefined;
  for (const copy of usable) {
    if (chosen === undefined || copy.generation >= chosen.generation) chosen = copy;
  }
  for (const copy of usable) {
    if (isStale(copy, chosen!)) {
      const reason = `it is of generation ${copy.generation}, the other copy of ${chosen!.generation}`;
      damaged.push({ file: copy.path, position: 0, length: 0, reason });
    }
  }
  const others = names.filter(({ path }) => path !== chosen?.path);
  return {
    chosen,
    numberMax: names.at(-1)?.number ?? 0,
    damaged,
    // An interrupted rewrite leaves older files, and the very first copy has no partner for a moment.
    isPartnerMissing: chosen?.copy !== undefined && others.length === 0 && chosen.number > 1,
  };
}

/** Names of the topics at the last checkpoint, without opening the log; another process may have it open. */
export async function readTopicNames(disk: Disk): Promise<string[]> {
  const { chosen } = await loadManifest(disk);
  const names = new Map<string, string>();
  for (const document of chosen?.documents ?? []) {
    if (document.kind === "topic") names.set(document.id, document.name);
    else if (document.kind === "topic-removed") names.delete(document.id);
  }
  return [...names.values()];
}

// Copy a is written first: it may be one generation ahead of b, and is never behind.
function isStale(copy: ManifestCopy, chosen: ManifestCopy): boolean {
  if (copy.number !== chosen.number || copy.path === chosen.path) return false;
  return copy.generation < chosen.generation - (copy.copy === "b" ? 1 : 0);
}

async function readCopy(name: ManifestName, bytes: Buffer): Promise<ManifestCopy | Quarantine> {
  const { path } = name;
  const damage = (position: number, length: number, reason: string): Quarantine => ({
    file: path,
    position,
    length,
    reason,
  });
  refuseNewer("manifest", bytes);
  const header = decodeFileHeader("manifest", bytes);
  if (header === undefined) return damage(0, bytes.length, "no valid header");
  const documents: ManifestDocument[] = [];
  let pending: ManifestDocument[] = [];
  let checkpoint: CheckpointDocument | undefined;
  const scan = await scanFrames(bytes, header, header.bytes, 0, {
    async accept(entries) {
      for (const entry of entries) {
        for (const document of JSON.parse(entry.toString("utf8")) as ManifestDocument[]) {
          pending.push(document);
          if (document.kind !== "checkpoint") continue;
          for (const done of pending) documents.push(done);
          pending = [];
          checkpoint = document;
        }
      }
    },
  });
  const [first] = scan.damaged;
  if (first !== undefined) return damage(first.position, first.length, "a frame is damaged");
  if (checkpoint === undefined) return damage(0, bytes.length, "no whole checkpoint");
  const { version } = header;
  const generation = checkpoint.generation ?? 0;
  const copy = { ...name, version, generation, documents, checkpoint };
  if (!header.isDamaged) return copy;
  return { ...copy, headerDamage: damage(0, header.bytes, "one copy of the header is damaged") };
}
