// The order of test files: those that take longest first, and beside each other what keeps the cores busy.
import type { IdleCores } from "./idle-cores.ts";
import type { TestCosts } from "./test-costs.ts";
import type { TestPlan } from "./test-plan.ts";

/** Files at the same time, however little they do: each has processes and ports. */
const RUNNING_MAX = 8;
/** Recorded loads are means: with the cores' number alone, cores would be idle while several files wait. */
const LOAD_PER_CORE = 1.25;
/** Load of a file without a record: one file more than cores, since tests often wait. */
const LOAD_UNKNOWN = 0.75;
/** Files that mostly wait are not free: each starts processes. */
const LOAD_MIN = 0.15;
/** More files than cores run beside each other only while so many cores have nothing to do. */
const IDLE_CORES_MIN = 0.2;

/** Options of {@link TestQueue}. */
export interface TestQueueOptions {
  costs: TestCosts;
  cores: number;
  /** Files at the same time, whatever their load. */
  jobs?: number;
  /** Without it, recorded loads alone decide. */
  idle?: IdleCores;
}

/** Files that wait, and the load of those that run. */
export class TestQueue {
  readonly #waiting: TestPlan[];
  readonly #running = new Set<TestPlan>();
  readonly #options: TestQueueOptions;

  constructor(plans: readonly TestPlan[], options: TestQueueOptions) {
    this.#options = options;
    const wallOf = ({ file }: TestPlan): number => options.costs.get(file)?.wallS ?? 0;
    this.#waiting = plans.toSorted((one, other) => wallOf(other) - wallOf(one));
  }

  /** Files that have not started. */
  get waiting(): readonly TestPlan[] {
    return this.#waiting;
  }

  /**
   * Takes the longest file whose load fits beside those that run; undefined if none does now. One that is too heavy for
   * the cores runs alone.
   */
  take(): TestPlan | undefined {
    if (!this.#hasRoom()) return undefined;
    const index = this.#waiting.findIndex((plan) => this.#fits(plan));
    if (index === -1) return undefined;
    const [plan] = this.#waiting.splice(index, 1);
    this.#running.add(plan!);
    this.#options.idle?.restart();
    return plan;
  }

  /** Adds the files of a group that failed. */
  add(plans: readonly TestPlan[]): void {
    this.#waiting.unshift(...plans);
  }

  /** Makes room again after a file has ended. */
  release(plan: TestPlan): void {
    this.#running.delete(plan);
  }

  /**
   * Files beside each other make each other longer, so that their recorded loads look smaller than they are: without a
   * look at the cores, more and more of them would run at the same time, and all wait for each other.
   */
  #hasRoom(): boolean {
    const { jobs, cores, idle } = this.#options;
    if (jobs !== undefined) return this.#running.size < jobs;
    if (this.#running.size >= RUNNING_MAX) return false;
    return idle === undefined || this.#running.size < cores || idle.measure() >= IDLE_CORES_MIN;
  }

  #fits(plan: TestPlan): boolean {
    const { jobs, cores } = this.#options;
    if (this.#running.size === 0 || jobs !== undefined) return true;
    let load = this.#loadOf(plan);
    for (const running of this.#running) load += this.#loadOf(running);
    return load <= cores * LOAD_PER_CORE;
  }

  #loadOf({ file }: TestPlan): number {
    const cost = this.#options.costs.get(file);
    return cost?.cpuS === undefined
      ? LOAD_UNKNOWN
      : computeLoad(cost.wallS, cost.cpuS, this.#options.cores);
  }
}

/** Cores that a file uses in the mean. */
function computeLoad(wallS: number, cpuS: number, cores: number): number {
  if (wallS === 0) return LOAD_MIN;
  return Math.min(cores, Math.max(LOAD_MIN, cpuS / wallS));
}
