// Storage for tests of the offload: a process, a bucket and what is in it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Client } from "@platform/s3";
import { createUrlSigner } from "@platform/s3/signature";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";

const REGION = "us-east-1";
/** Notifications may go to this machine. */
const EVENTS = { PLATFORM_VAULT_EVENT_NETWORKS: "127.0.0.0/8" };
const JSON_BODY = { "content-type": "application/json" };

/** A running store with a bucket. */
export class OffloadStore {
  readonly vault: StagedVault;
  readonly bucket = "cold";
  readonly #folder: string;

  private constructor(vault: StagedVault, folder: string) {
    this.vault = vault;
    this.#folder = folder;
  }

  static async start(): Promise<OffloadStore> {
    const folder = mkdtempSync(join(tmpdir(), "pulse-offload-store-"));
    const store = new OffloadStore(await StagedVault.start({ folder, env: EVENTS }), folder);
    await store.makeBucket(store.bucket);
    return store;
  }

  /** The key as the broker takes it. */
  get token(): string {
    return `${vaultRoot.accessKey}:${vaultRoot.secretKey}`;
  }

  /** The body that sets this store over the API. */
  settings(changes: Record<string, unknown> = {}): Record<string, unknown> {
    const { url } = this.vault;
    return { s3_endpoint: url, s3_bucket: this.bucket, s3_token: this.token, ...changes };
  }

  /** The environment of a broker that uses this store. */
  configOf(prefix: string, changes: Record<string, string> = {}): Record<string, string> {
    return {
      PLATFORM_PULSE_S3_ENDPOINT: this.vault.url,
      PLATFORM_PULSE_S3_BUCKET: this.bucket,
      PLATFORM_PULSE_S3_TOKEN: this.token,
      PLATFORM_PULSE_S3_PREFIX: prefix,
      ...changes,
    };
  }

  async makeBucket(name: string): Promise<void> {
    await this.send("PUT", `/${name}`);
  }

  /** Sends a request of the root user; `origin` is that of the object API or of the admin API. */
  async send(method: string, path: string, body = "", origin = this.vault.url): Promise<string> {
    const url = new URL(path, origin);
    const { accessKey, secretKey: secret } = vaultRoot;
    const headers = createUrlSigner({ accessKey, secret, region: REGION })(method, url, body);
    const answer = await fetch(url, {
      method,
      headers: { ...headers, ...(body.startsWith("{") ? JSON_BODY : {}) },
      ...(body === "" ? {} : { body }),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return text;
  }

  /** Names and sizes of the objects in a bucket. */
  async list(bucket = this.bucket): Promise<Map<string, number>> {
    const client = this.connect(bucket);
    const found = new Map<string, number>();
    for await (const { key, bytes } of client.listAll("")) found.set(key, bytes);
    client.close();
    return found;
  }

  /** A client that its caller closes. */
  connect(bucket = this.bucket): S3Client {
    return new S3Client({
      endpoint: new URL(this.vault.url),
      region: REGION,
      bucket,
      credentials: () => vaultRoot,
    });
  }

  async end(): Promise<void> {
    await this.vault[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
