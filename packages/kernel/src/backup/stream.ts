// Sends the snapshot of a running service as a tar archive of a complete backup folder.
import { BackupError } from "./error.ts";
import { Meter } from "./files.ts";
import {
  BACKUP_FORMAT,
  DATA_FOLDER,
  encodeManifest,
  FILES_MAX,
  findPathProblem,
  MANIFEST_NAME,
  type BackupFile,
} from "./manifest.ts";
import type { Snapshot, SnapshotFile } from "./snapshot.ts";
import { encodeTarHead, padTar, TAR_END } from "./tar.ts";

/** Options of `streamBackup`. */
export interface StreamOptions {
  service: string;
  /** Version of the service. */
  version: string;
  /** Version of the service's files. */
  dataFormat: number;
  /** Epoch milliseconds of the snapshot. */
  nowMs: number;
  /** Called with the number of bytes of files since the last call. */
  onBytes?: (bytes: number) => void;
}

/**
 * Yields the archive; the manifest is the last file, so that an interrupted stream is never a backup. The caller
 * releases the snapshot.
 */
export async function* streamBackup(
  options: StreamOptions,
  snapshot: Snapshot,
): AsyncGenerator<Uint8Array> {
  const files: BackupFile[] = [];
  for await (const file of snapshot.files) {
    if (files.length >= FILES_MAX) throw new BackupError(`more than ${FILES_MAX} files`);
    files.push(yield* sendFile(options, file));
  }
  const manifest = encodeManifest({
    format: BACKUP_FORMAT,
    service: options.service,
    service_version: options.version,
    data_format: options.dataFormat,
    created_at: new Date(options.nowMs).toISOString(),
    mark: snapshot.mark,
    files,
  });
  yield encodeTarHead(MANIFEST_NAME, manifest.length, options.nowMs);
  yield manifest;
  yield Buffer.concat([padTar(manifest.length), TAR_END]);
}

async function* sendFile(
  { nowMs, onBytes }: StreamOptions,
  { path, bytes, read }: SnapshotFile,
): AsyncGenerator<Uint8Array, BackupFile> {
  const problem = findPathProblem(path);
  if (problem !== undefined) throw new BackupError(`${path} cannot be backed up: ${problem}`);
  yield encodeTarHead(`${DATA_FOLDER}/${path}`, bytes, nowMs);
  const meter = new Meter((count) => onBytes?.(count));
  yield* meter.read(read());
  const digest = meter.digest();
  // The head has been sent, so the stream cannot continue.
  if (digest.size !== bytes)
    throw new BackupError(`${path} has ${digest.size} bytes, not ${bytes}`);
  const padding = padTar(bytes);
  if (padding.length > 0) yield padding;
  return { path, ...digest };
}
