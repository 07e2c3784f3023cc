// Where the overlay is kept: a file beside the configuration, replaced atomically, on disk before a change is answered.
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

/** Keeps an overlay across restarts, or says that it does not. */
export interface OverlayStore {
  /** The overlay as it was stored last; throws an Error that names the file where it cannot be used. */
  read: () => Promise<Overlay>;
  /** Resolves when the overlay would survive a crash; throws `conflict` where it cannot be stored. */
  write: (overlay: Overlay) => Promise<void>;
}

/** The overlay's path: beside the configuration file, even where that does not exist. */
export function getOverlayPath(configPath: string): string {
  return `${configPath}.overlay.json`;
}

/** A store in the file at `path`. */
export function createOverlayFile(path: string): OverlayStore {
  return { read: () => readOverlay(path), write: (overlay) => writeOverlay(path, overlay) };
}

/** A store that begins with what is on disk and keeps changes until the process ends. */
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
      `the overlay ${path} cannot be used: ${describe(cause)}. Restore it, or remove what it holds with "platform-gate overlay clear".`,
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
      `the change was refused, because it would not survive a restart: ${path} cannot be written (${getErrorCode(cause) ?? "unknown error"}). Make the folder writable, or start the gateway with --ephemeral.`,
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
  // A folder cannot be opened for this on Windows, where a rename is on disk with the file.
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
