// Stores the overlay in a file next to the configuration: replaced atomically, synced before a change is acknowledged.
import { toStorageError } from "../access/durable-file.ts";
import {
  EMPTY_OVERLAY,
  type Overlay,
  decodeOverlay,
  encodeOverlay,
  isEmptyOverlay,
} from "./overlay.ts";
import { TwinFile } from "../access/twin-file.ts";

const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Storage of the overlay. */
export interface OverlayStore {
  /** Returns the stored overlay; throws an Error that names the file if it is not usable. */
  read: () => Promise<Overlay>;
  /** Stores the overlay durably; throws `insufficient_storage` or `conflict` if that fails. */
  write: (overlay: Overlay) => Promise<void>;
}

/** The path of the overlay, next to the configuration file, which may not exist. */
export function getOverlayPath(configPath: string): string {
  return `${configPath}.overlay.json`;
}

/** Creates a store in the file at `path` and its copy. `onRepair` is called with repaired faults; without it, nothing is written. */
export function createOverlayFile(path: string, onRepair?: (fault: string) => void): OverlayStore {
  const file = openFile(path, onRepair);
  return {
    read: () => readOverlay(path, file),
    write: (overlay) => writeOverlay(path, file, overlay),
  };
}

/** Creates a store that starts with the overlay on disk and keeps changes in memory. */
export function createEphemeralOverlay(path: string): OverlayStore {
  let held: Overlay | undefined;
  return {
    read: async () => (held ??= await readOverlay(path, openFile(path))),
    write: (overlay) => {
      held = overlay;
      return Promise.resolve();
    },
  };
}

/** Removes the overlay at `path`, even if it cannot be read. */
export async function removeOverlay(path: string): Promise<void> {
  await openFile(path).write(undefined);
}

function openFile(path: string, onRepair?: (fault: string) => void): TwinFile {
  const check = (text: string): void => void decodeOverlay(text);
  return new TwinFile({ path, bytesMax: FILE_BYTES_MAX, check, onRepair });
}

async function readOverlay(path: string, file: TwinFile): Promise<Overlay> {
  try {
    const text = await file.read();
    return text === undefined ? EMPTY_OVERLAY : decodeOverlay(text);
  } catch (cause) {
    throw new Error(
      `the overlay ${path} is not usable: ${describe(cause)}. Restore it, or remove it with "platform-gate overlay clear".`,
      { cause },
    );
  }
}

async function writeOverlay(path: string, file: TwinFile, overlay: Overlay): Promise<void> {
  try {
    await file.write(isEmptyOverlay(overlay) ? undefined : encodeOverlay(overlay));
  } catch (cause) {
    throw toStorageError(path, cause);
  }
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
