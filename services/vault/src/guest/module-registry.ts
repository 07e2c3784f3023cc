// Modules by name, as objects of a bucket that only storage writes: their versions stay, so that a trigger or a job runs what it
// was made with.
import { type GuestModule, GuestError, type GuestStreams } from "@platform/wasm/stream";
import { MODULE_BUCKET, type Owner } from "../model/bucket.ts";
import type { ModulePin } from "../model/guest.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import type { Store } from "../object-store.ts";

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const NAMES_MAX = 1_000;
/** Sandboxed modules in memory. */
const LOADED_MAX = 16;
const PAGE = 1_000;
const NAMES_IN_ERRORS = 20;

/** A version of a module. */
export interface ModuleVersion extends ModulePin {
  readonly abi: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** Options of {@link ModuleRegistry}. */
export interface ModuleRegistryOptions {
  readonly store: Store;
  readonly owner: Owner;
  readonly region: string;
  readonly streams: GuestStreams;
}

/** The registry. Its list is in memory; bytes are read when a module runs. */
export class ModuleRegistry {
  readonly #options: ModuleRegistryOptions;
  /** Versions of each name, the oldest first. */
  readonly #versions = new Map<string, ModuleVersion[]>();
  /** Names whose newest version is not deleted. */
  readonly #names = new Set<string>();
  readonly #loaded = new Map<string, Promise<GuestModule>>();

  private constructor(options: ModuleRegistryOptions) {
    this.#options = options;
  }

  /** Reads the list of modules. */
  static async open(options: ModuleRegistryOptions): Promise<ModuleRegistry> {
    const registry = new ModuleRegistry(options);
    await registry.#read();
    return registry;
  }

  /** The newest version of each module, by name. */
  list(): ModuleVersion[] {
    return [...this.#names].toSorted().map((name) => this.#versions.get(name)!.at(-1)!);
  }

  /** The newest version; `undefined` if there is none. */
  find(name: string): ModuleVersion | undefined {
    return this.#names.has(name) ? this.#versions.get(name)!.at(-1) : undefined;
  }

  /** The bytes of a version as they were put. */
  async read({ name, versionId }: ModulePin): Promise<Buffer> {
    const address = { bucket: MODULE_BUCKET, key: name, versionId };
    const { body } = await this.#options.store.objects.get(address);
    const pieces: Buffer[] = [];
    for await (const chunk of body.chunks()) pieces.push(Buffer.from(chunk));
    return Buffer.concat(pieces);
  }

  /** Validates, compiles and stores a module. The same bytes again add no version. Throws InvalidArgument, or a GuestError. */
  async put(name: string, bytes: Buffer): Promise<ModuleVersion> {
    if (!NAME.test(name)) {
      const form = "1 to 64 lower-case letters, digits, dots, underscores and hyphens";
      throw new S3Error("InvalidArgument", `The name of a module is ${form}.`);
    }
    if (!this.#names.has(name) && this.#names.size >= NAMES_MAX) {
      throw new S3Error("InvalidRequest", `There are ${NAMES_MAX} modules already.`);
    }
    const { hash: sha256, abi } = await this.#options.streams.load(bytes);
    const newest = this.find(name);
    if (newest?.sha256 === sha256) return newest;
    const { store, owner } = this.#options;
    await this.#makeBucket();
    const upload = store.objects.beginPut({
      bucket: MODULE_BUCKET,
      key: name,
      contentLength: bytes.length,
      headers: { contentType: "application/wasm" },
      metadata: { sha256, abi },
      owner,
    });
    try {
      await upload.write(bytes);
      const { versionId, modifiedMs } = await upload.commit();
      return this.#add({ name, sha256, versionId, abi, bytes: bytes.length, modifiedMs });
    } catch (error) {
      await upload.abort();
      throw error;
    }
  }

  /** Removes a name; versions that triggers and jobs have stay. False if there is none. */
  async remove(name: string): Promise<boolean> {
    if (!this.#names.has(name)) return false;
    await this.#options.store.objects.delete({ bucket: MODULE_BUCKET, key: name });
    this.#names.delete(name);
    return true;
  }

  /** The version that a reference means: `name`, `name@latest` or `name@sha256`. Throws InvalidRequest with the names there are. */
  pin(reference: string): ModulePin {
    const [name = "", wanted = "latest"] = reference.split("@");
    const found =
      wanted === "latest"
        ? this.find(name)
        : this.#versions.get(name)?.findLast(({ sha256 }) => sha256 === wanted);
    if (found !== undefined) {
      const { sha256, versionId } = found;
      return { name, sha256, versionId };
    }
    const names = [...this.#names].toSorted().slice(0, NAMES_IN_ERRORS).join(", ");
    const known = names === "" ? "No module is registered." : `Registered modules: ${names}.`;
    const shown = JSON.stringify(reference.slice(0, 64));
    throw new S3Error("InvalidRequest", `The module ${shown} does not exist. ${known}`);
  }

  /** A version, ready to run. */
  async load(pin: ModulePin): Promise<GuestModule> {
    const { sha256 } = pin;
    const loaded = this.#loaded.get(sha256) ?? this.#load(pin);
    this.#loaded.delete(sha256);
    this.#loaded.set(sha256, loaded);
    if (this.#loaded.size > LOADED_MAX) {
      const [oldest] = this.#loaded.keys();
      this.#loaded.delete(oldest!);
    }
    return loaded;
  }

  async #load(pin: ModulePin): Promise<GuestModule> {
    try {
      const module = await this.#options.streams.load(await this.read(pin));
      if (module.hash === pin.sha256) return module;
      throw new StoreError(
        "InternalError",
        `The module ${pin.name} is not the one that was stored`,
      );
    } catch (error) {
      this.#loaded.delete(pin.sha256);
      if (error instanceof GuestError || !isMissing(error)) throw error;
      throw new S3Error("InvalidRequest", `The module ${pin.name}@${pin.sha256} does not exist.`);
    }
  }

  async #read(): Promise<void> {
    const { store } = this.#options;
    if (store.buckets.find(MODULE_BUCKET) === undefined) return;
    let after: { value: string; isPrefix: boolean; versionId?: string } | undefined;
    do {
      const page = await store.objects.listVersions({
        bucket: MODULE_BUCKET,
        maxKeys: PAGE,
        ...(after === undefined ? {} : { after }),
      });
      for (const { key, versionId, isLatest, isDeleteMarker } of page.versions) {
        if (isDeleteMarker) continue;
        const address = { bucket: MODULE_BUCKET, key, versionId };
        const { metadata, sizeBytes, modifiedMs } = await store.objects.describe(address);
        const { sha256 = "", abi = "" } = metadata;
        const version = { name: key, sha256, versionId, abi, bytes: sizeBytes, modifiedMs };
        // Listed from the newest to the oldest.
        this.#versions.set(key, [version, ...(this.#versions.get(key) ?? [])]);
        if (isLatest) this.#names.add(key);
      }
      after = page.next;
    } while (after !== undefined);
  }

  #add(version: ModuleVersion): ModuleVersion {
    this.#versions.set(version.name, [...(this.#versions.get(version.name) ?? []), version]);
    this.#names.add(version.name);
    return version;
  }

  async #makeBucket(): Promise<void> {
    const { store, owner, region } = this.#options;
    try {
      if (store.buckets.find(MODULE_BUCKET) === undefined)
        await store.buckets.create({ bucket: MODULE_BUCKET, owner, region });
    } catch (error) {
      if (!(error instanceof StoreError && error.code.startsWith("BucketAlready"))) throw error;
    }
    if (store.buckets.require(MODULE_BUCKET).versioning !== "Enabled")
      await store.buckets.setVersioning(MODULE_BUCKET, "Enabled");
  }
}

function isMissing(error: unknown): boolean {
  return (
    error instanceof StoreError &&
    ["NoSuchBucket", "NoSuchKey", "NoSuchVersion"].includes(error.code)
  );
}
