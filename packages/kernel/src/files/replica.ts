// Identity of a replica that outlives its process: the successor of a process that was killed is recognized as such.
//
//   data/replicas/1.lock   locked by the process that is replica 1, until it ends
//   data/replicas/1.id     its identity
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { FileLockedError, lockFile } from "./file-lock.ts";
import { replaceFileSync } from "./replace-file.ts";

/** Identity of a process among the replicas. */
export interface Replica {
  /** No other living process has it. */
  readonly id: string;
  /** Ends the claim; the next process may have the identity. */
  release(): void;
}

/** Replicas that share a data folder; further ones have an identity for one run. */
const SHARED_MAX = 64;
const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Claims the first identity of the data folder that no living process has. The operating system ends the claim of a process
 * that dies. If the folder cannot be written, `onFault` gets the system's error, and the identity is one for this run.
 */
export function claimReplica(dataFolder: string, onFault: (error: unknown) => void): Replica {
  try {
    return claimSlot(dataFolder);
  } catch (error) {
    onFault(error);
    return createReplica();
  }
}

function claimSlot(dataFolder: string): Replica {
  const folder = join(dataFolder, "replicas");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (let slot = 1; slot <= SHARED_MAX; slot++) {
    const release = tryLock(join(folder, `${slot}.lock`));
    if (release === undefined) continue;
    try {
      return { id: `${readId(join(folder, `${slot}.id`))}@${hostname()}`, release };
    } catch (error) {
      release();
      throw error;
    }
  }
  return createReplica();
}

/** Creates an identity for one run. */
export function createReplica(): Replica {
  return { id: randomUUID(), release: () => undefined };
}

function tryLock(path: string): (() => void) | undefined {
  try {
    return lockFile(path);
  } catch (error) {
    if (error instanceof FileLockedError) return undefined;
    throw error;
  }
}

// The name of the host is not part of the file: a copy of the folder on another machine is another replica.
function readId(path: string): string {
  const found = readText(path);
  if (ID.test(found)) return found;
  const id = randomUUID();
  replaceFileSync(path, id);
  return id;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
