// A backup repository in a bucket of another S3 service: each of its objects is one there.
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { BackupError, type RepositoryStorage } from "@platform/kernel/backup";
import { every } from "@platform/kernel/time";
import { type S3Client, S3ClientError } from "@platform/s3";
import { z } from "zod";

const READ_BYTES = 4 * 1024 * 1024;
const LOCK = "lock";
/** The writer of a lock renews it; one that was killed leaves it. */
const RENEW_MS = 60_000;
const STALE_MS = 600_000;
const LOCK_BYTES_MAX = 1_024;
/** Of two writers that have found no lock, the last one has it after this time. */
const SETTLE_MS = 500;

const lockSchema = z.object({ holder: z.string(), at: z.number() });

/** Options of {@link RemoteStorage}. */
export interface RemoteStorageOptions {
  readonly client: () => S3Client;
  /** The place in messages. */
  readonly place: string;
  /** Folder of the objects; "" for the bucket itself. */
  readonly prefix: string;
  readonly now: () => number;
  /** Ends the lock of a killed writer sooner. Tests only. */
  readonly staleMs?: number;
}

/** Keeps the objects of a repository in a bucket. What was acknowledged there is durable. */
export class RemoteStorage implements RepositoryStorage {
  readonly place: string;
  readonly #options: RemoteStorageOptions;

  constructor(options: RemoteStorageOptions) {
    this.#options = options;
    this.place = options.place;
  }

  async read(name: string, bytesMax: number): Promise<Buffer | undefined> {
    const bytes = await this.measure(name);
    if (bytes === undefined) return undefined;
    if (bytes > bytesMax) throw new BackupError(`${name}: larger than ${bytesMax} bytes`);
    const pieces: Buffer[] = [];
    for await (const piece of this.#readPieces(name, bytes)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async digest(name: string, bytes: number) {
    const size = await this.measure(name);
    if (size === undefined) return undefined;
    const hash = createHash("sha256");
    for await (const piece of this.#readPieces(name, Math.min(size, bytes + 1))) hash.update(piece);
    return { size: Math.min(size, bytes + 1), sha256: hash.digest("hex") };
  }

  async *#readPieces(name: string, bytes: number): AsyncGenerator<Buffer> {
    const client = this.#options.client();
    for (let at = 0; at < bytes; at += READ_BYTES) {
      const end = Math.min(bytes, at + READ_BYTES);
      yield await this.#explain(client.getRange(this.#key(name), at, end));
    }
  }

  async measure(name: string): Promise<number | undefined> {
    return (await this.#explain(this.#options.client().head(this.#key(name))))?.bytes;
  }

  async write(name: string, bytes: Buffer): Promise<void> {
    const value = createHash("sha256").update(bytes).digest("base64");
    const checksum = { algorithm: "SHA256", value } as const;
    await this.#explain(this.#options.client().put(this.#key(name), bytes, { checksum }));
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }

  async *list(folder: string): AsyncGenerator<string> {
    const { client } = this.#options;
    const { length } = this.#key("");
    const names = client().listAll(this.#key(`${folder}/`));
    for (;;) {
      const next = await this.#explain(names.next());
      if (next.done === true) return;
      yield next.value.key.slice(length);
    }
  }

  async remove(name: string): Promise<void> {
    await this.#explain(this.#options.client().delete(this.#key(name)));
  }

  async lock(): Promise<() => Promise<void>> {
    const { now, staleMs = STALE_MS } = this.#options;
    const holder = randomBytes(16).toString("hex");
    const write = (): Promise<void> =>
      this.write(LOCK, Buffer.from(JSON.stringify({ holder, at: now() })));
    const before = await this.#readLock();
    if (before !== undefined && now() - before.at < staleMs)
      throw new BackupError(`another backup writes to ${this.place}`);
    await write();
    // Not every service refuses to replace an object that another writer has made in the meantime.
    await sleep(SETTLE_MS);
    if ((await this.#readLock())?.holder !== holder)
      throw new BackupError(`another backup writes to ${this.place}`);
    const renewing = every(RENEW_MS, write, () => undefined);
    return async () => {
      await renewing.stop();
      // Otherwise it ends by its age.
      await this.remove(LOCK).catch(() => undefined);
    };
  }

  async #readLock(): Promise<{ holder: string; at: number } | undefined> {
    const bytes = await this.read(LOCK, LOCK_BYTES_MAX);
    if (bytes === undefined) return undefined;
    try {
      return lockSchema.parse(JSON.parse(bytes.toString("utf8")));
    } catch (cause) {
      throw new BackupError(`the lock of ${this.place} is damaged: remove it`, { cause });
    }
  }

  #key(name: string): string {
    const { prefix } = this.#options;
    return prefix === "" || prefix.endsWith("/") ? `${prefix}${name}` : `${prefix}/${name}`;
  }

  async #explain<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (cause) {
      if (!(cause instanceof S3ClientError)) throw cause;
      throw new BackupError(`${this.place}: ${cause.message}`, { cause });
    }
  }
}
