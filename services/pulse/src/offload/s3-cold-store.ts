// The log's port for an object store, over S3.
import type { EgressGuard } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";
import {
  ColdStoreError,
  type ColdPace,
  type ColdSource,
  type ColdStore,
  type ListedColdObject,
} from "@platform/log";
import { discardUploads, S3Client, S3ClientError, uploadObject } from "@platform/s3";
import { parseToken, type OffloadTarget } from "../offload-target.ts";
import type { UploadRate } from "./upload-rate.ts";

/** Attempts of a read or removal: the log tries again itself. */
const ATTEMPTS_MAX = 2;

/** Options of an `S3ColdStore`. */
export interface S3ColdStoreOptions {
  target: OffloadTarget;
  rate: UploadRate;
  /** For addresses that came over the API. */
  guard: EgressGuard | undefined;
  clock: Clock;
}

/** The objects of one bucket below one prefix. */
export class S3ColdStore implements ColdStore {
  readonly #client: S3Client;
  readonly #prefix: string;
  readonly #rate: UploadRate;

  constructor({ target, rate, guard, clock }: S3ColdStoreOptions) {
    const credentials = parseToken(target.token);
    if (credentials === undefined) throw new TypeError("the token is not valid");
    this.#prefix = target.prefix;
    this.#rate = rate;
    this.#client = new S3Client({
      endpoint: new URL(target.endpoint),
      region: target.region,
      bucket: target.bucket,
      credentials: () => credentials,
      guard,
      clock,
      // 16 reads, two uploads with a part each, removals.
      socketsMax: 32,
    });
  }

  async put(object: string, source: ColdSource): Promise<void> {
    await explain(
      uploadObject(this.#client, this.#prefix + object, {
        bytes: source.bytes,
        read: async (position, length) => {
          await this.#rate.pass(length);
          return source.read(position, length);
        },
      }),
    );
  }

  read(object: string, start: number, target: Buffer, pace?: ColdPace): Promise<void> {
    const options = { attemptsMax: ATTEMPTS_MAX, pace };
    return explain(this.#client.readRange(this.#prefix + object, start, target, options));
  }

  async remove(object: string, isUnfinished = false): Promise<void> {
    const key = this.#prefix + object;
    const options = { attemptsMax: ATTEMPTS_MAX };
    if (isUnfinished) await explain(discardUploads(this.#client, key, options));
    await explain(this.#client.delete(key, options));
  }

  async head(object: string): Promise<number | undefined> {
    return (await explain(this.#client.head(this.#prefix + object)))?.bytes;
  }

  async *list(prefix: string): AsyncGenerator<ListedColdObject> {
    const pages = this.#client.listAll(this.#prefix + prefix);
    for (;;) {
      const step = await explain(pages.next());
      if (step.done === true) return;
      const { key, bytes, modifiedMs } = step.value;
      yield { object: key.slice(this.#prefix.length), bytes, modifiedMs };
    }
  }

  /**
   * Writes, reads and deletes an object of this name, in the ways that the offload does. Rejects with an S3ClientError.
   */
  async probe(name: string): Promise<void> {
    const key = this.#prefix + name;
    const body = Buffer.from("0123456789 platform-pulse offload probe");
    const options = { attemptsMax: 1 };
    await this.#client.put(key, body, options);
    const found = await this.#client.getRange(key, 4, 20, options);
    await this.#client.delete(key, options);
    if (found.equals(body.subarray(4, 20))) return;
    throw new S3ClientError("malformed_answer", "the store returned other bytes", {
      operation: "get",
    });
  }

  /** The notifications of the bucket; `undefined` if the store does not show them. */
  async readNotifications(): Promise<string | undefined> {
    try {
      return await this.#client.readBucketDocument("notification", { attemptsMax: 1 });
    } catch (error) {
      if (error instanceof S3ClientError) return undefined;
      throw error;
    }
  }

  /** Aborts what is in flight. */
  close(): void {
    this.#client.close();
  }
}

// Errors of the log's own reads pass through.
async function explain<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof S3ClientError)) throw error;
    const { code, serverCode, message } = error;
    // A proxy may answer 404 for anything: only the store's own code says that an object is missing.
    const isMissing = code === "not_found" && serverCode === "NoSuchKey";
    throw new ColdStoreError(code, message, { cause: error, isMissing });
  }
}
