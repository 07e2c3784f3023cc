// Objects of the store that no extent names: uploads that began, and objects to remove.
import { objectPrefix } from "../partition/object-name.ts";
import type { ObjectDocument } from "./manifest-documents.ts";

/*
 * An object is in one of these states, each durable in the manifest before the next one begins:
 *
 *   intent ──upload──► named by an extent ──dropped by retention or deletion──► removal ──removed──► settled
 *      └─────── failed: removed by its exact name ──► settled
 *
 * A checkpoint writes the documents of intents before those of partitions and the documents of removals after them, so
 * that whatever changes during the write, an object is never left without any of the three. Both rules hold at a start:
 * an intent that an extent names is settled, and a removal that an extent names is not one.
 */

/** Objects that may wait for their removal; then retention of remote segments pauses. */
const REMOVALS_MAX = 1_000_000;

/** The intents and removals of a log. */
export class ObjectLedger {
  /** Names of objects that may exist without an extent. */
  readonly intents = new Set<string>();
  /** Names of objects to remove; true once a manifest without their extents is durable. */
  readonly removals = new Map<string, boolean>();
  /**
   * The log's id in hex; `undefined` if it never had an object store. Objects of other logs, which a restored log refers
   * to, are never removed.
   */
  logId: string | undefined;
  #intentDocuments: ObjectDocument[] = [];
  #removalDocuments: ObjectDocument[] = [];
  /** Documents of the checkpoint that runs. */
  #written: { intents: ObjectDocument[]; removals: ObjectDocument[] } = {
    intents: [],
    removals: [],
  };
  /** Removals noted before the checkpoint that runs began. */
  #captured: string[] = [];

  /** Restores the state of a manifest; a restored log inherits no intents and removals. */
  restore(intents: Iterable<string>, removals: Iterable<string>): void {
    for (const object of intents) if (this.isOwn(object)) this.intents.add(object);
    for (const object of removals) if (this.isOwn(object)) this.removals.set(object, true);
  }

  /** True if this log created the object. */
  isOwn(object: string): boolean {
    return this.logId !== undefined && object.startsWith(objectPrefix(this.logId));
  }

  /** True if a checkpoint would write anything. */
  get isDue(): boolean {
    return this.#intentDocuments.length + this.#removalDocuments.length > 0;
  }

  /** True if the manifest needs format version 3. */
  get isUsed(): boolean {
    return this.isDue || this.intents.size + this.removals.size > 0;
  }

  /** True if no more removals are accepted from retention. */
  get isFull(): boolean {
    return this.removals.size >= REMOVALS_MAX;
  }

  /** Notes an object that is about to be uploaded, after the next checkpoint. */
  addIntent(object: string): void {
    this.intents.add(object);
    this.#intentDocuments.push({ kind: "cold-intent", object });
  }

  /** Notes that an extent names the object, in the same step, or that it does not exist. */
  settleIntent(object: string): void {
    if (!this.intents.delete(object)) return;
    this.#intentDocuments.push({ kind: "cold-settled", object });
  }

  /** Notes an object that no extent names any more, in the same step. */
  addRemoval(object: string): void {
    if (this.removals.has(object) || !this.isOwn(object)) return;
    this.removals.set(object, false);
    this.#removalDocuments.push({ kind: "cold-removal", object });
  }

  /** Notes that the object does not exist any more. */
  settleRemoval(object: string): void {
    if (!this.removals.delete(object)) return;
    this.#removalDocuments.push({ kind: "cold-settled", object });
  }

  /** Begins a checkpoint, in the same step in which it collects the changed partitions. */
  begin(): void {
    this.#written = { intents: this.#intentDocuments, removals: [] };
    this.#intentDocuments = [];
    this.#captured = [...this.removals].flatMap(([object, isReady]) => (isReady ? [] : [object]));
  }

  /** Changed intents, for the beginning of the manifest. */
  describeIntents(): readonly ObjectDocument[] {
    return this.#written.intents;
  }

  /** All intents, for the beginning of a new manifest file. */
  describeAllIntents(): ObjectDocument[] {
    return [...this.intents].map((object) => ({ kind: "cold-intent", object }));
  }

  /** Changed removals, for the end of the manifest. */
  describeRemovals(): readonly ObjectDocument[] {
    this.#written.removals.push(...this.#removalDocuments.splice(0));
    return this.#written.removals;
  }

  /** All removals, for the end of a new manifest file. */
  describeAllRemovals(): ObjectDocument[] {
    this.describeRemovals();
    return [...this.removals.keys()].map((object) => ({ kind: "cold-removal", object }));
  }

  /** Ends a checkpoint whose manifest is durable. */
  confirm(): void {
    for (const object of this.#captured) {
      if (this.removals.has(object)) this.removals.set(object, true);
    }
    this.#captured = [];
    this.#written = { intents: [], removals: [] };
  }

  /** Ends a failed checkpoint: everything is still due. */
  putBack(): void {
    this.#intentDocuments = [...this.#written.intents, ...this.#intentDocuments];
    this.#removalDocuments = [...this.#written.removals, ...this.#removalDocuments];
    this.#written = { intents: [], removals: [] };
    this.#captured = [];
  }
}
