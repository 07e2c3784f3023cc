// Storage for tests of the offload: a process, a bucket and what is in it.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { S3Client } from "@platform/s3";
import { createUrlSigner } from "@platform/s3/signature";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";

const REGION = "us-east-1";

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
    const store = new OffloadStore(await StagedVault.start({ folder }), folder);
    await store.makeBucket(store.bucket);
    return store;
  }

  /** The key as the broker takes it. */
  get token(): string {
    return `${vaultRoot.accessKey}:${vaultRoot.secretKey}`;
  }

  async makeBucket(name: string): Promise<void> {
    const url = new URL(`/${name}`, this.vault.url);
    const { accessKey, secretKey: secret } = vaultRoot;
    const headers = createUrlSigner({ accessKey, secret, region: REGION })("PUT", url, "");
    const answer = await fetch(url, { method: "PUT", headers });
    assert.equal(answer.status, 200, await answer.text());
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
