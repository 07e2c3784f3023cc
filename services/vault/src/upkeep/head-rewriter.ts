// Writes the heads of records again whose keys were wrapped with another key since, so that the former key can be forgotten.
import { statSync } from "node:fs";
import type { Drive } from "../blob/drive/drive.ts";
import { rewriteHeads } from "../blob/rewrite-heads.ts";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { BlobId, WrappedCipher } from "../model/blob.ts";
import {
  listHeadKeks,
  listOldHeads,
  listOldHeadsOfSegment,
  type OldHead,
} from "../query/key-usage.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";

const PAGE = 500;
/** Bytes that are copied before other disk users get a turn. */
const PAUSE_EVERY_BYTES = 8 * 1024 * 1024;
const PAUSE_MS = 50;
/** The open segment closes when its waiting records are written. */
const ROLL_MS_MAX = 1_000;

/** The result of a round. */
export interface HeadReport {
  /** Heads that have the present key now. */
  rewritten: number;
  /** Heads of bodies in remotes, which stay as they are. */
  remote: number;
  /** Heads that stay for now: their file is in use or damaged, or a drive is absent. */
  left: number;
}

/** Options of {@link HeadRewriter}. */
export interface HeadRewriterOptions {
  environment: Pick<ServiceEnvironment, "blobs" | "writer">;
  index: IndexConnection;
  freeSpace: FreeSpace;
}

/** Copies files with former keys in heads, one after the other. */
export class HeadRewriter {
  readonly #options: HeadRewriterOptions;
  #copiedBytes = 0;

  constructor(options: HeadRewriterOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<HeadReport> {
    const report: HeadReport = { rewritten: 0, remote: 0, left: 0 };
    const { index } = this.#options;
    await this.#roll();
    const segments = new Set<number>();
    for (const kek of listHeadKeks(index)) {
      for (let after: BlobId = 0; ;) {
        const rows = listOldHeads(index, kek, after, PAGE);
        const last = rows.at(-1);
        if (last === undefined) break;
        after = last.id;
        for (const row of rows) {
          if (signal.aborted) return report;
          if (row.kind === "remote") report.remote += 1;
          else if (row.segment === null) await this.#rewriteFile(row, report);
          else if (!segments.has(row.segment)) {
            segments.add(row.segment);
            await this.#rewriteSegment(row.segment, report);
          }
        }
      }
    }
    return report;
  }

  async #roll(): Promise<void> {
    const { segments } = this.#options.environment.blobs;
    segments.roll();
    const endMs = performance.now() + ROLL_MS_MAX;
    while (segments.hasOpen && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, 10));
  }

  async #rewriteFile(row: OldHead, report: HeadReport): Promise<void> {
    const { drives } = this.#options.environment.blobs;
    const { id } = row;
    const isKept = (): boolean => this.#isThere("select 1 from blobs where id = ?", id);
    const locate = (folders: StoreFolders): string => folders.file(id);
    await this.#rewrite([row], drives.rankShards(id), locate, id, isKept, report);
  }

  async #rewriteSegment(segment: number, report: HeadReport): Promise<void> {
    const { index, environment } = this.#options;
    const { drives, segments } = environment.blobs;
    const rows = listOldHeadsOfSegment(index, segment).filter(({ kind }) => kind !== "remote");
    if (segments.isPinned(segment)) {
      report.left += rows.length;
      return;
    }
    const isKept = (): boolean =>
      this.#isThere("select 1 from segments where id = ? and live > 0", segment);
    const locate = (folders: StoreFolders): string => folders.segment(segment);
    await this.#rewrite(rows, drives.rankCopies(segment), locate, segment, isKept, report);
  }

  // A row is marked as done when all drives have its new head: an absent one would bring the former key back.
  async #rewrite(
    rows: readonly OldHead[],
    holders: readonly Drive[],
    locate: (folders: StoreFolders) => string,
    id: number,
    isKept: () => boolean,
    report: HeadReport,
  ): Promise<void> {
    const ciphers = new Map(
      rows.map((row) => [row.id, JSON.parse(row.cipher) as WrappedCipher] as const),
    );
    let done = new Set<BlobId>(ciphers.keys());
    for (const drive of holders) {
      const rewritten = await this.#rewriteOn(drive, locate, id, ciphers, isKept);
      done = done.intersection(new Set(rewritten));
      if (done.size === 0) break;
    }
    const { writer } = this.#options.environment;
    const blobs = rows
      .filter((row) => done.has(row.id))
      .map(({ id: blob, cipher: from, segment }) => {
        const { head: _, ...to } = ciphers.get(blob)!;
        return { id: blob, from, to: JSON.stringify(to), segment };
      });
    const { changed } = await writer.submit({ type: "rewrapBlobs", blobs });
    report.rewritten += changed;
    report.left += rows.length - changed;
  }

  async #rewriteOn(
    drive: Drive,
    locate: (folders: StoreFolders) => string,
    id: number,
    ciphers: ReadonlyMap<BlobId, WrappedCipher>,
    isKept: () => boolean,
  ): Promise<BlobId[]> {
    if (!drive.isPresent) return [];
    const path = locate(drive.folders);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    this.#options.freeSpace.require(found.size);
    const staged = `${drive.folders.staged(id)}.heads`;
    const losses = drive.losses;
    const done = await rewriteHeads(drive, path, staged, ciphers, isKept);
    await this.#pause(found.size);
    return drive.isPresent && drive.losses === losses ? done : [];
  }

  async #pause(bytes: number): Promise<void> {
    this.#copiedBytes += bytes;
    if (this.#copiedBytes < PAUSE_EVERY_BYTES) return;
    this.#copiedBytes = 0;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  #isThere(query: string, id: number): boolean {
    return this.#options.index.sql(query).get(id) !== undefined;
  }
}
