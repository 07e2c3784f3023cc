// A part of the gateway's state in a file with version and checksum, and a copy. Damage of both stops the start: they are never
// read as empty.
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import type { z } from "zod";
import { makeFolder, toStorageError } from "./durable-file.ts";
import { TwinFile } from "./twin-file.ts";

const FORMAT_VERSION = 1;
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Storage of one part of the state. */
export interface StateFile<T> {
  /** Returns the stored value, undefined before the first write. Throws an Error that names the file if it is damaged. */
  read: () => Promise<T | undefined>;
  /** Stores the value durably. Throws `insufficient_storage` or `conflict` if that fails. */
  write: (value: T) => Promise<void>;
}

/** Creates a file at `path`, whose folder is created at the first write. `onRepair` is called with repaired faults. */
export function createStateFile<T>(
  path: string,
  schema: z.ZodType<T>,
  onRepair: ((fault: string) => void) | undefined,
): StateFile<T> {
  const check = (text: string): void => void decode(text, schema);
  const file = new TwinFile({ path, bytesMax: FILE_BYTES_MAX, check, onRepair });
  return {
    read: async () => {
      try {
        const text = await file.read();
        return text === undefined ? undefined : decode(text, schema);
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`${path} is not usable: ${reason}. Restore it from a backup.`, { cause });
      }
    },
    write: async (value) => {
      try {
        await makeFolder(dirname(path));
        await file.write(encode(value));
      } catch (cause) {
        throw toStorageError(path, cause);
      }
    },
  };
}

/** Keeps changes in memory only; starts with the value on disk. */
export function createEphemeralState<T>(stored: StateFile<T>): StateFile<T> {
  return { read: stored.read, write: () => Promise.resolve() };
}

function encode(value: unknown): string {
  const data = JSON.stringify(value);
  return `{"version":${FORMAT_VERSION},"sha256":"${digest(data)}","data":${data}}\n`;
}

function decode<T>(text: string, schema: z.ZodType<T>): T {
  const document = JSON.parse(text) as Record<string, unknown> | null;
  if (document?.["version"] !== FORMAT_VERSION) {
    throw new Error(`its version is ${String(document?.["version"])}, not ${FORMAT_VERSION}`);
  }
  if (document["sha256"] !== digest(JSON.stringify(document["data"]))) {
    throw new Error("its checksum is wrong");
  }
  return schema.parse(document["data"]);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
