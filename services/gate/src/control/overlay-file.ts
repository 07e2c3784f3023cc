// Stores the overlay in a file next to the configuration: replaced atomically, synced before a change is acknowledged.
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import {
  EMPTY_OVERLAY,
  type Overlay,
  decodeOverlay,
  encodeOverlay,
  isEmptyOverlay,
} from "./overlay.ts";

const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Storage of the overlay. */
export interface OverlayStore {
  /** Returns the stored overlay; throws an Error that names the file if it is not usable. */
  read: () => Promise<Overlay>;
  /** Stores the overlay durably; throws `conflict` if that fails. */
  write: (overlay: Overlay) => Promise<void>;
}

/** The path of the overlay, next to the configuration file, which may not exist. */
export function getOverlayPath(configPath: string): string {
  return `${configPath}.overlay.json`;
}

/** Creates a store in the file at `path`. */
export function createOverlayFile(path: string): OverlayStore {
  return { read: () => readOverlay(path), write: (overlay) => writeOverlay(path, overlay) };
}

/** Creates a store that starts with the overlay on disk and keeps changes in memory. */
export function createEphemeralOverlay(path: string): OverlayStore {
  let held: Overlay | undefined;
  return {
    read: async () => (held ??= await readOverlay(path)),
    write: (overlay) => {
      held = overlay;
      return Promise.resolve();
    },
  };
}

async function readOverlay(path: string): Promise<Overlay> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > FILE_BYTES_MAX) throw new Error(`it has more than ${FILE_BYTES_MAX} bytes`);
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (getErrorCode(cause) === "ENOENT") return EMPTY_OVERLAY;
    throw new Error(`the overlay ${path} cannot be read: ${describe(cause)}`, { cause });
  }
  try {
    return decodeOverlay(text);
  } catch (cause) {
    throw new Error(
      `the overlay ${path} is not usable: ${describe(cause)}. Restore it, or remove it with "platform-gate overlay clear".`,
      { cause },
    );
  }
}

async function writeOverlay(path: string, overlay: Overlay): Promise<void> {
  try {
    if (isEmptyOverlay(overlay)) await rm(path, { force: true });
    else await replaceFile(path, encodeOverlay(overlay));
    await syncFolder(dirname(path));
  } catch (cause) {
    throw new PlatformError(
      "conflict",
      `the change was refused because it would be lost on a restart: ${path} cannot be written (${getErrorCode(cause) ?? "unknown error"}). Make the folder writable, or start the gateway with --ephemeral.`,
      { cause },
    );
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.draft`;
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

async function syncFolder(folder: string): Promise<void> {
  // Windows cannot open a folder; a rename is durable there without this.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function getErrorCode(cause: unknown): string | undefined {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : undefined;
}

function describe(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
