// Runs chains of modules on objects.
import { type GuestRun, type GuestStreams, type StreamedGuest } from "@platform/wasm/stream";
import type { ModulePin } from "../model/guest.ts";
import type { ObjectBody, ObjectInfo } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import type { TriggerRun } from "../model/task.ts";
import type { Store } from "../object-store.ts";
import type { GuestSource, ObjectGuests } from "../s3/context.ts";
import type { ModuleRegistry } from "./module-registry.ts";

const WORKING_MS = 10_000;
const WALL_MS = 60_000;
const CHAIN_MAX = 8;
const ENVIRONMENT_BYTES_MAX = 8 * 1024;

/** Options of {@link GuestService}. */
export interface GuestServiceOptions {
  readonly store: Store;
  readonly modules: ModuleRegistry;
  readonly streams: GuestStreams;
  /** True if none run. */
  readonly isStopped: boolean;
}

/** Guests for the handlers of operations. */
export class GuestService implements ObjectGuests {
  readonly modules: ModuleRegistry;
  readonly isStopped: boolean;
  readonly #store: Store;
  readonly #streams: GuestStreams;

  constructor({ store, modules, streams, isStopped }: GuestServiceOptions) {
    this.modules = modules;
    this.isStopped = isStopped;
    this.#store = store;
    this.#streams = streams;
  }

  pin(references: readonly string[]): ModulePin[] {
    if (references.length === 0 || references.length > CHAIN_MAX) {
      throw new S3Error("InvalidRequest", `A chain has 1 to ${CHAIN_MAX} modules.`);
    }
    return references.map((reference) => this.modules.pin(reference));
  }

  async run(pins: readonly ModulePin[], source: GuestSource): Promise<GuestRun> {
    const { object, body } = source.object;
    try {
      if (this.isStopped) {
        const message = "No modules run on objects here: guest_threads of storage is 0.";
        throw new S3Error("ServiceUnavailable", { message, headers: [["Retry-After", "60"]] });
      }
      const environment = describeObject(object, source.event);
      const guests: StreamedGuest[] = [];
      for (const pin of pins) guests.push({ module: await this.modules.load(pin), environment });
      return this.#streams.run({
        guests,
        input: readBody(body),
        inputBytes: object.sizeBytes,
        workingMs: WORKING_MS + (source.moreMs ?? 0),
        wallMs: WALL_MS + (source.moreMs ?? 0),
      });
    } catch (error) {
      body.close();
      throw error;
    }
  }

  listRuns(bucket: string): TriggerRun[] {
    return this.#store.listTriggerRuns(bucket);
  }
}

async function* readBody(body: ObjectBody): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of body.chunks()) {
      yield chunk;
      body.recycle(chunk);
    }
  } finally {
    body.close();
  }
}

// Variables that do not fit are left out: those of metadata, which come last.
function describeObject(object: ObjectInfo, event: string): Record<string, string> {
  const { bucket, key, versionId, sizeBytes, headers, metadata, modifiedMs } = object;
  const all: [name: string, value: string][] = [
    ["STORE_BUCKET", bucket],
    ["STORE_KEY", key],
    ["STORE_VERSION_ID", versionId],
    ["STORE_SIZE", String(sizeBytes)],
    ["STORE_CONTENT_TYPE", headers.contentType ?? "binary/octet-stream"],
    ["STORE_EVENT", event],
    ["STORE_TIME", new Date(modifiedMs).toISOString()],
    ...Object.entries(metadata).map(([name, value]): [string, string] => [
      `STORE_META_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`,
      value,
    ]),
  ];
  const environment: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of all) {
    // A NUL would end the text for the guest.
    const text = value.replaceAll("\0", "\u{fffd}");
    bytes += name.length + Buffer.byteLength(text) + 2;
    if (bytes > ENVIRONMENT_BYTES_MAX) break;
    environment[name] = text;
  }
  return environment;
}
