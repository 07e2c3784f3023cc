// Configuration from an object of an S3 bucket: read at the start and when it has changed, with a copy on disk for starts while
// the bucket is down.
import { join } from "node:path";
import { type JsonDocument, JsonSyntaxError, parseJson } from "@platform/kernel/config";
import { toPlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { S3Client } from "@platform/s3";
import { z } from "zod";
import { createEphemeralState, createStateFile, type StateFile } from "../access/state-file.ts";
import type { SourceView } from "./source-view.ts";

/** Options of {@link RemoteConfig}. */
export interface RemoteConfigOptions {
  endpoint: string;
  region: string;
  bucket: string;
  key: string;
  accessKey: string;
  secretKey: string;
  /** Trusted authorities in PEM; undefined: those of the system. */
  ca: string | undefined;
  pollMs: number;
  /** Folder of the gateway's state. */
  folder: string;
  /** No copy is written. */
  isEphemeral: boolean;
  log: Logger;
}

/** A document with its name in messages. */
export interface NamedDocument {
  path: string;
  document: JsonDocument;
}

const BYTES_MAX = 16 * 1_048_576;
const START_TRIES = 2;

const copySchema = z.strictObject({ etag: z.string(), text: z.string() });

type Version = z.output<typeof copySchema>;

/** The configuration of one gateway. */
export class RemoteConfig {
  readonly name = "remote configuration";
  readonly #options: RemoteConfigOptions;
  readonly #client: S3Client;
  readonly #copy: StateFile<Version>;
  readonly #path: string;
  #active: (Version & NamedDocument) | undefined;
  /** The version that is being tried. */
  #candidate: NamedDocument | undefined;
  /** Tag of a version that was refused. */
  #refusedEtag: string | undefined;
  #readAtMs: number | undefined;
  #fault: string | undefined;
  #timer: RepeatingTimer | undefined;

  constructor(options: RemoteConfigOptions) {
    this.#options = options;
    const { endpoint, region, bucket, key, accessKey, secretKey, ca, folder, log } = options;
    this.#path = `s3://${bucket}/${key}`;
    this.#client = new S3Client({
      endpoint: new URL(endpoint),
      region,
      bucket,
      credentials: () => ({ accessKey, secretKey }),
      ca: ca === undefined ? undefined : [ca],
      attemptsMax: START_TRIES,
      stallMs: 5_000,
      attemptMs: 30_000,
    });
    const file = createStateFile(
      join(folder, "remote.json"),
      copySchema,
      options.isEphemeral ? undefined : (fault) => log.warn("copy repaired", { fault }),
    );
    this.#copy = options.isEphemeral ? createEphemeralState(file) : file;
  }

  /** Reads the object; its copy if the bucket does not answer. Throws if there is none. */
  async load(): Promise<void> {
    try {
      const version = await this.#read();
      this.#active = { ...version, ...this.#parse(version.text) };
    } catch (error) {
      this.#note(error);
      const copy = await this.#copy.read();
      if (copy === undefined) {
        throw new Error(`${this.#path} is not usable: ${this.#fault}`, { cause: error });
      }
      this.#active = { ...copy, ...this.#parse(copy.text) };
      this.#options.log.warn("the copy of the remote configuration is used", {
        reason: this.#fault,
      });
    }
  }

  /** The document in use, or the one that is being tried. */
  get document(): NamedDocument | undefined {
    return this.#candidate ?? this.#active;
  }

  /** The active configuration was accepted with the present document: it is the one of later starts. */
  async keep(): Promise<void> {
    if (this.#active === undefined || this.#fault !== undefined) return;
    const { etag, text } = this.#active;
    await this.#copy.write({ etag, text }).catch((error: unknown) => {
      const reason = toPlatformError(error).detail;
      this.#options.log.warn("the copy of the remote configuration cannot be written", { reason });
    });
  }

  /** Looks for changes from now on; `reload` uses {@link document}, and throws if it refuses it. */
  start(reload: () => Promise<void>): void {
    this.#timer = every(
      this.#options.pollMs,
      () => this.poll(reload),
      (error) => this.#note(error),
    );
  }

  /** Looks for a change now. */
  async poll(reload: () => Promise<void>): Promise<void> {
    let version: Version | undefined;
    try {
      version = await this.#readChange();
      if (version === undefined) return;
      this.#candidate = this.#parse(version.text);
      await reload();
      this.#active = { ...version, ...this.#candidate };
      this.#refusedEtag = undefined;
      this.#fault = undefined;
      await this.keep();
    } catch (error) {
      // The same version would be refused again.
      if (version !== undefined) this.#refusedEtag = version.etag;
      this.#note(error);
    } finally {
      this.#candidate = undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
    this.#client.close();
  }

  /** The warning of `/readyz`; undefined if there is none. */
  describe(): string | undefined {
    return this.#fault;
  }

  collect() {
    return [];
  }

  /** For `GET /api/v1/admin/sources`. */
  view(): SourceView {
    return {
      kind: "bucket",
      address: this.#path,
      version: this.#active?.etag ?? "",
      readAtMs: this.#readAtMs,
      error: this.#fault,
    };
  }

  async #readChange(): Promise<Version | undefined> {
    const etag = await this.#readTag();
    this.#readAtMs = Date.now();
    if (etag.tag === this.#refusedEtag) return undefined;
    if (etag.tag === this.#active?.etag) {
      this.#fault = undefined;
      return undefined;
    }
    return this.#read();
  }

  async #readTag(): Promise<{ tag: string; bytes: number }> {
    const head = await this.#client.head(this.#options.key);
    if (head === undefined) throw new Error(`${this.#path} does not exist`);
    const { etag = "", bytes } = head;
    if (bytes > BYTES_MAX) {
      throw new Error(`${this.#path} has ${bytes} bytes, more than ${BYTES_MAX}`);
    }
    return { tag: etag, bytes };
  }

  // If the object changes in between, its tag differs at the next look.
  async #read(): Promise<Version> {
    const { tag, bytes } = await this.#readTag();
    const content =
      bytes === 0 ? Buffer.alloc(0) : await this.#client.getRange(this.#options.key, 0, bytes);
    this.#readAtMs = Date.now();
    return { etag: tag, text: Buffer.from(content).toString("utf8") };
  }

  #parse(text: string): NamedDocument {
    try {
      return { path: this.#path, document: parseJson(text) };
    } catch (error) {
      if (!(error instanceof JsonSyntaxError)) throw error;
      const { line, column } = error.position;
      throw new Error(`${this.#path}:${line}:${column}: ${error.message}`, { cause: error });
    }
  }

  #note(error: unknown): void {
    const reason = toReason(error);
    if (reason !== this.#fault) {
      this.#options.log.error("the remote configuration is not used", { reason });
    }
    this.#fault = reason;
  }
}

function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
