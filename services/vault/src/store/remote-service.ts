// Remotes in the index, and open: registration, trials, usage.
import { readFileSync } from "node:fs";
import { checkEndpoint } from "@platform/s3";
import type { IndexConnection } from "../index/schema.ts";
import { damagedRow, sealRemote } from "../index/seal.ts";
import type {
  RemoteDocument,
  RemoteSettings,
  RemoteUsage,
  SecretSealer,
  TierTarget,
} from "../model/remote.ts";
import { StoreError } from "../model/store-error.ts";
import { checkRemote, type RemoteCheckStep } from "../remote/check-remote.ts";
import { nameSecret, type Remote } from "../remote/remote.ts";
import type { Remotes } from "../remote/remotes.ts";
import type { IndexWriter } from "../transaction/writer.ts";

/** Options of the service. */
export interface RemoteServiceOptions {
  readonly writer: IndexWriter;
  readonly index: IndexConnection;
  readonly remotes: Remotes;
  readonly secrets: SecretSealer;
  /** A new id for this store. */
  readonly takeStoreId: () => string;
  readonly now: () => number;
}

/** The answer about a remote: settings without secrets. */
export interface RemoteState {
  readonly remote: Remote;
  readonly usage: RemoteUsage;
}

/** Changes of a remote; members that are absent stay. */
export type RemoteChange = Partial<Omit<RemoteSettings, "name">> & { secret_key?: string };

/** Registers remotes, and gives the store its id in them. */
export class RemoteService {
  readonly #options: RemoteServiceOptions;
  /** The store that was backed up; "" unless this one was restored. */
  readonly #former: string;
  readonly #adopted: ReadonlySet<string>;

  private constructor(options: RemoteServiceOptions, former: string, adopted: readonly string[]) {
    this.#options = options;
    this.#former = former;
    this.#adopted = new Set(adopted);
  }

  /** Opens the registered remotes. Makes an id of the store if it has remotes and none. */
  static async open(options: RemoteServiceOptions): Promise<RemoteService> {
    const { index, remotes, writer, now } = options;
    const row = index.sql("select value from facts where name = 'store'").get();
    remotes.storeId = String(row?.["value"] ?? "");
    const former = index.sql("select value from facts where name = 'former store'").get()?.[
      "value"
    ];
    const adopted = index
      .sql("select name from facts where name like 'adopted %'")
      .all()
      .map(({ name }) => String(name).slice("adopted ".length));
    const service = new RemoteService(options, former === undefined ? "" : String(former), adopted);
    for (const found of index.sql("select name, document, seal from remotes").all()) {
      const name = String(found["name"]);
      const text = String(found["document"]);
      if (found["seal"] !== sealRemote(name, text)) throw damagedRow(`remote ${name}`);
      remotes.put(JSON.parse(text) as RemoteDocument);
    }
    if (remotes.list().length > 0) {
      // A store that cannot write now, for lack of a drive, opens for reading; nothing moves without an id.
      await service.#identify().catch(() => undefined);
      // Uploads of the process before have ended; otherwise their keys are deleted a day later.
      const operation = { type: "dropRemoteKeys", tasks: undefined, nowMs: now() } as const;
      await writer.submit(operation).catch(() => undefined);
    }
    return service;
  }

  /** The id under which the keys of this store are in remotes; "" before the first remote. */
  get storeId(): string {
    return this.#options.remotes.storeId;
  }

  /**
   * True if a setting was put in this store, or in one that it has replaced (`adopt-tier`). Settings of earlier versions have no
   * id: they are those of the store that was backed up.
   */
  isOfThisStore(id = this.#former): boolean {
    return id === "" || id === this.storeId || this.#adopted.has(id);
  }

  list(): RemoteState[] {
    const { remotes, index } = this.#options;
    const rows = index.sql("select name, blobs, bytes from remotes").all();
    const usages = new Map(rows.map((row) => [row["name"], row as unknown as RemoteUsage]));
    return remotes.list().map((remote) => {
      const { name } = remote.settings;
      return { remote, usage: usages.get(name) ?? { name, blobs: 0, bytes: 0 } };
    });
  }

  /** Undefined if there is none with this name. */
  find(name: string): Remote | undefined {
    return this.#options.remotes.find(name);
  }

  /** A remote with what it has of this store. Undefined if there is none with this name. */
  describe(name: string): RemoteState | undefined {
    return this.list().find(({ remote }) => remote.settings.name === name);
  }

  /** Registers a remote. Throws InvalidRequest if one has the name, or for settings that could not work. */
  async add(settings: RemoteSettings, secretKey: string): Promise<RemoteState> {
    requireUsable(settings);
    const sealed = this.#options.secrets.seal(secretKey, nameSecret(settings.name));
    await this.#identify();
    return this.#put({ ...settings, sealed }, true);
  }

  /** Changes a remote from its next request on. Throws NoSuchConfiguration. */
  async change(name: string, change: RemoteChange): Promise<RemoteState> {
    const known = this.describe(name);
    if (known === undefined)
      throw new StoreError("NoSuchConfiguration", `The remote ${name} does not exist.`);
    const { secret_key: secretKey, ...settings } = change;
    const { document } = known.remote;
    const next = { ...document, ...settings };
    requireUsable(next);
    const isUsed = known.usage.blobs > 0;
    if (isUsed && settings.endpoint !== undefined && settings.endpoint !== document.endpoint)
      throw new StoreError(
        "OperationAborted",
        "Objects are at the endpoint: it cannot be changed.",
      );
    const sealed =
      secretKey === undefined
        ? document.sealed
        : this.#options.secrets.seal(secretKey, nameSecret(name));
    return this.#put({ ...next, sealed }, false);
  }

  /** Seals the secrets of all remotes with the current key. */
  async renewSecrets(): Promise<void> {
    const { remotes, secrets } = this.#options;
    for (const { document } of remotes.list()) {
      const sealed = secrets.renew?.(document.sealed, nameSecret(document.name));
      if (sealed !== undefined) await this.#put({ ...document, sealed }, false);
    }
  }

  /** Throws OperationAborted while objects, settings or deletions use it. */
  async remove(name: string): Promise<void> {
    const { writer, remotes } = this.#options;
    if (remotes.find(name) === undefined)
      throw new StoreError("NoSuchConfiguration", `The remote ${name} does not exist.`);
    await writer.submit({ type: "removeRemote", name });
    remotes.remove(name);
  }

  /** Tries a bucket of a remote with an object. */
  async check(name: string, bucket: string): Promise<RemoteCheckStep[]> {
    const { remotes } = this.#options;
    const remote = remotes.find(name);
    if (remote === undefined)
      throw new StoreError("NoSuchConfiguration", `The remote ${name} does not exist.`);
    return checkRemote(remote, bucket, remotes.storeId);
  }

  /** The remote that has a storage class, for a bucket here that it allows. */
  findClass(storageClass: string, bucket: string): TierTarget | undefined {
    for (const { settings } of this.#options.remotes.list()) {
      const { classes, bucket: there, allow, name } = settings;
      if (!classes.includes(storageClass) || there === undefined) continue;
      if (isAllowed(allow, bucket)) return { remote: name, bucket: there, storageClass };
    }
    return undefined;
  }

  /** True if a remote exists and the names of buckets that it allows include `bucket`. */
  allows(remote: string, bucket: string): boolean {
    const found = this.#options.remotes.find(remote);
    return found !== undefined && isAllowed(found.settings.allow, bucket);
  }

  async #put(document: RemoteDocument, isNew: boolean): Promise<RemoteState> {
    const { writer, remotes } = this.#options;
    const { name } = document;
    await writer.submit({ type: "putRemote", name, document: JSON.stringify(document), isNew });
    remotes.put(document);
    return this.describe(name)!;
  }

  async #identify(): Promise<void> {
    const { writer, takeStoreId, remotes } = this.#options;
    if (remotes.storeId !== "") return;
    const { id } = await writer.submit({ type: "identifyStore", id: takeStoreId() });
    remotes.storeId = id;
  }
}

/** True if a pattern with `*` matches a name. */
function isAllowed(allow: readonly string[], name: string): boolean {
  return allow.some((pattern) => matchesPattern(pattern, name));
}

// Pieces between stars, from left to right: linear in the name.
function matchesPattern(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === name;
  const last = rest.pop()!;
  if (!name.startsWith(first) || name.length < first.length + last.length) return false;
  if (!name.endsWith(last)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found < 0 || found + piece.length > name.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}

function requireUsable({ endpoint, ca_file: file, classes, bucket }: RemoteSettings): void {
  try {
    checkEndpoint(new URL(endpoint));
  } catch {
    const text = "endpoint: expected http:// or https://, a host and an optional port";
    throw new StoreError("InvalidArgument", text);
  }
  if (classes.length > 0 && bucket === undefined)
    throw new StoreError("InvalidArgument", "bucket: required with classes");
  if (file === undefined) return;
  try {
    readFileSync(file, "utf8");
  } catch (cause) {
    throw new StoreError("InvalidArgument", `ca_file: ${file} cannot be read`, {}, { cause });
  }
}
