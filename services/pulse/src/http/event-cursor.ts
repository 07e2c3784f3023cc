// Cursors of the list of events: a position per partition, sealed for the tenant and the filters of the list.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createValidationError } from "@platform/kernel/http";
import type { StateTable } from "../store/state.ts";
import type { Store } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";

/*
 * seal[16]  floor:i48  { topic[16]  count:u16  { partition:u32  from:u48  until:u48 } * count } *
 */

const STATE_KIND = "event-cursors";
const KEY_BYTES = 32;
const SEAL_BYTES = 16;
const TIME_BYTES = 6;
const ID_BYTES = 16;
const TOPIC_BYTES = ID_BYTES + 2;
const PLACE_BYTES = 16;

/** Offsets of a partition that a list has not reached, from one to below another. */
interface EventPlace {
  /** Durable id of the topic, sixteen bytes. */
  readonly topicId: Buffer;
  readonly partition: number;
  readonly from: number;
  readonly until: number;
}

/** A position in a list of events. */
export interface EventPosition {
  /** Time of the last event before it, epoch milliseconds. */
  readonly floor: number;
  /** Places of one topic stand together. */
  readonly places: readonly EventPlace[];
}

/** The list that a cursor belongs to. */
export interface EventList {
  readonly tenant: Tenant;
  readonly topic?: string | undefined;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Writes and reads cursors; those of another list, or of another broker, are refused. */
export class EventCursors {
  readonly #store: Store;
  readonly #state: StateTable;
  #key: Promise<Buffer> | undefined;

  private constructor(store: Store, state: StateTable, key: Buffer | undefined) {
    this.#store = store;
    this.#state = state;
    this.#key = key && Promise.resolve(key);
  }

  /** Cursors of earlier runs stay valid. */
  static open(store: Store, state: StateTable): EventCursors {
    const found = state.take(STATE_KIND)[0];
    return new EventCursors(store, state, found?.value);
  }

  async write(list: EventList, { floor, places }: EventPosition): Promise<string> {
    const head = Buffer.alloc(TIME_BYTES);
    head.writeIntBE(floor, 0, TIME_BYTES);
    const parts = [head];
    for (const [id, own] of Map.groupBy(places, ({ topicId }) => topicId.toString("hex"))) {
      const part = Buffer.alloc(TOPIC_BYTES + own.length * PLACE_BYTES);
      part.write(id, "hex");
      part.writeUInt16BE(own.length, ID_BYTES);
      for (const [index, { partition, from, until }] of own.entries()) {
        const at = TOPIC_BYTES + index * PLACE_BYTES;
        part.writeUInt32BE(partition, at);
        part.writeUIntBE(from, at + 4, 6);
        part.writeUIntBE(until, at + 10, 6);
      }
      parts.push(part);
    }
    const body = Buffer.concat(parts);
    return Buffer.concat([await this.#seal(list, body), body]).toString("base64url");
  }

  /** Rejects with `validation_failed` for a cursor that `write` has not made for this list. */
  async read(list: EventList, cursor: string): Promise<EventPosition> {
    const bytes = Buffer.from(cursor, "base64url");
    const body = bytes.subarray(SEAL_BYTES);
    const isOurs =
      body.length >= TIME_BYTES &&
      timingSafeEqual(bytes.subarray(0, SEAL_BYTES), await this.#seal(list, body));
    if (!isOurs) {
      const message =
        "is not a cursor of this list: it belongs to one tenant and one set of filters";
      throw createValidationError([{ in: "query", path: "cursor", message }]);
    }
    const places: EventPlace[] = [];
    for (let at = TIME_BYTES; at < body.length;) {
      const topicId = body.subarray(at, at + ID_BYTES);
      const count = body.readUInt16BE(at + ID_BYTES);
      at += TOPIC_BYTES;
      for (const end = at + count * PLACE_BYTES; at < end; at += PLACE_BYTES) {
        places.push({
          topicId,
          partition: body.readUInt32BE(at),
          from: body.readUIntBE(at + 4, 6),
          until: body.readUIntBE(at + 10, 6),
        });
      }
    }
    return { floor: body.readIntBE(0, TIME_BYTES), places };
  }

  async #seal({ tenant, topic, key, type, from, to }: EventList, body: Buffer): Promise<Buffer> {
    this.#key ??= this.#makeKey();
    const list = JSON.stringify([tenant, topic ?? null, key ?? null, type ?? null, from, to]);
    return createHmac("sha256", await this.#key)
      .update(`${list}\n`)
      .update(body)
      .digest()
      .subarray(0, SEAL_BYTES);
  }

  async #makeKey(): Promise<Buffer> {
    try {
      const key = randomBytes(KEY_BYTES);
      await this.#store.append([this.#state.toPending([STATE_KIND], key)]);
      return key;
    } catch (error) {
      this.#key = undefined;
      throw error;
    }
  }
}
