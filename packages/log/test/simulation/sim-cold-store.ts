// An object store in memory that fails when it is told to.
import { ColdStoreError, type ColdStore } from "../../src/index.ts";
import type { Random } from "./random.ts";

/** The moment of an operation at which it fails: before its effect or after it. */
export type FailPoint = "before" | "after";
export type ColdOperation = "put" | "read" | "remove" | "head" | "list";

const PART_BYTES = 1_000;

/** A store for tests: keeps objects in memory and counts operations. */
export class SimColdStore implements ColdStore {
  readonly objects = new Map<string, Buffer>();
  /** Every name that was ever put, to find names that are used twice. */
  readonly names = new Set<string>();
  /** Operations so far, as `operation object`. */
  readonly operations: string[] = [];
  /** Called at each point of an operation; a code makes it fail there. */
  fault: (operation: ColdOperation, point: FailPoint) => string | undefined = () => undefined;
  readonly #random: Random | undefined;

  /** `random` decides how long operations take. */
  constructor(random?: Random, objects: Iterable<[string, Buffer]> = []) {
    this.#random = random;
    for (const [name, bytes] of objects) this.objects.set(name, bytes);
  }

  async put(object: string, source: Parameters<ColdStore["put"]>[1]): Promise<void> {
    await this.#step("put", "before", object);
    if (this.names.has(object)) throw new Error(`${object} is put twice`);
    this.names.add(object);
    const parts: Buffer[] = [];
    for (let at = 0; at < source.bytes; at += PART_BYTES) {
      parts.push(await source.read(at, Math.min(PART_BYTES, source.bytes - at)));
    }
    this.objects.set(object, Buffer.concat(parts));
    await this.#step("put", "after", object);
  }

  async read(object: string, start: number, target: Buffer): Promise<void> {
    await this.#step("read", "before", object);
    const bytes = this.objects.get(object);
    if (bytes === undefined) throw new ColdStoreError("missing", object, { isMissing: true });
    if (start + target.length > bytes.length) throw new ColdStoreError("short", object);
    bytes.copy(target, 0, start);
  }

  async remove(object: string): Promise<void> {
    await this.#step("remove", "before", object);
    this.objects.delete(object);
    await this.#step("remove", "after", object);
  }

  async head(object: string): Promise<number | undefined> {
    await this.#step("head", "before", object);
    return this.objects.get(object)?.length;
  }

  async *list(prefix: string) {
    await this.#step("list", "before", prefix);
    for (const [object, { length }] of this.objects) {
      if (object.startsWith(prefix)) yield { object, bytes: length, modifiedMs: 1_700_000_000_000 };
    }
  }

  async #step(operation: ColdOperation, point: FailPoint, object: string): Promise<void> {
    if (point === "before") this.operations.push(`${operation} ${object}`);
    for (let turns = this.#random?.below(6) ?? 0; turns > 0; turns--) await Promise.resolve();
    const code = this.fault(operation, point);
    if (code !== undefined)
      throw new ColdStoreError(code, `${operation} fails ${point} its effect`);
  }
}
