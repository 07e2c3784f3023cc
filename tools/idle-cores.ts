// Cores that no process uses, measured between two calls.
import { availableParallelism, cpus } from "node:os";

/** Measures how many cores are idle. */
export class IdleCores {
  #idleMs = 0;
  #totalMs = 0;

  constructor() {
    this.read();
  }

  /** Idle cores since the last call, such as 0.5; 0 if this process may not use all cores of the machine. */
  read(): number {
    const cores = cpus();
    let idleMs = 0;
    let totalMs = 0;
    for (const { times } of cores) {
      idleMs += times.idle;
      totalMs += times.user + times.nice + times.sys + times.irq + times.idle;
    }
    const [idle, total] = [idleMs - this.#idleMs, totalMs - this.#totalMs];
    [this.#idleMs, this.#totalMs] = [idleMs, totalMs];
    if (total === 0 || cores.length !== availableParallelism()) return 0;
    return (idle / total) * cores.length;
  }
}
