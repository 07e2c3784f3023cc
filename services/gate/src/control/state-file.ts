// A part of the gateway's state in a file with version and checksum. Damage stops the start: it is never read as empty.
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import type * as z from "zod";
import { getErrorCode, makeFolder, readTextFile, replaceFile } from "./durable-file.ts";

const FORMAT_VERSION = 1;
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** Storage of one part of the state. */
export interface StateFile<T> {
  /** Returns the stored value, undefined before the first write. Throws an Error that names the file if it is damaged. */
  read: () => Promise<T | undefined>;
  /** Stores the value durably. Throws `conflict` if that fails. */
  write: (value: T) => Promise<void>;
}

/** Creates a file at `path`, whose folder is created at the first write. */
export function createStateFile<T>(path: string, schema: z.ZodType<T>): StateFile<T> {
  return {
    read: async () => {
      try {
        const text = await readTextFile(path, FILE_BYTES_MAX);
        return text === undefined ? undefined : decode(text, schema);
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`${path} is not usable: ${reason}. Restore it from a backup.`, { cause });
      }
    },
    write: async (value) => {
      try {
        await makeFolder(dirname(path));
        await replaceFile(path, encode(value));
      } catch (cause) {
        throw new PlatformError(
          "conflict",
          `the change was refused because it would be lost on a restart: ${path} cannot be written (${getErrorCode(cause) ?? "unknown error"}). Make the folder writable, or start the gateway with --ephemeral.`,
          { cause },
        );
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
