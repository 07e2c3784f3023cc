// The CPU time of a group of processes, by the kernel's account (cgroup v1): that of a browser's processes is in no parent's.
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const HIERARCHY = "/sys/fs/cgroup/cpuacct";
/** Processes that have just been killed are in the group for a moment. */
const CLOSE_TRIES = 20;
const CLOSE_EVERY_MS = 50;

/** An account; processes that are started by those in it are in it as well. */
export class CpuAccount {
  /** A process joins by writing 0 into this file. */
  readonly door: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.door = join(folder, "cgroup.procs");
  }

  /** Opens an account below that of this process; undefined where there is none, or this user may not. */
  static open(name: string): CpuAccount | undefined {
    if (!existsSync("/proc/self/cgroup")) return undefined;
    const [, own] =
      /^\d+:(?:cpu,)?cpuacct:(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8")) ?? [];
    if (own === undefined) return undefined;
    const folder = join(HIERARCHY, own, name);
    try {
      mkdirSync(folder);
    } catch {
      return undefined;
    }
    return new CpuAccount(folder);
  }

  /** CPU time in seconds, also of processes that have ended. */
  read(): number {
    return Number(readFileSync(join(this.#folder, "cpuacct.usage"), "utf8")) / 1e9;
  }

  /** Removes the account, once its processes have ended. */
  async close(): Promise<void> {
    for (let tried = 0; tried < CLOSE_TRIES; tried += 1) {
      try {
        return rmdirSync(this.#folder);
      } catch {
        await sleep(CLOSE_EVERY_MS);
      }
    }
  }
}
