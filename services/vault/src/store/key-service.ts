// Named keys as requests use them, and the keys that stored bodies name.
import { type NamedKeys, requireNamed } from "../blob/encryption.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { BucketEncryption } from "../model/bucket-settings.ts";
import type { EncryptionRequest } from "../model/object.ts";
import { countKekUse, findBucketsOfKeks, listUsedKeks } from "../query/key-usage.ts";
import type { ServiceEnvironment } from "./object-service.ts";

/** The key that is used if a request asks for one and names none. */
const DEFAULT_KEY = "alias/aws/s3";

/** Keys of the store. */
export class KeyService {
  readonly #env: Pick<ServiceEnvironment, "keys">;
  readonly #index: IndexConnection;

  constructor(environment: Pick<ServiceEnvironment, "keys">, index: IndexConnection) {
    this.#env = environment;
    this.#index = index;
  }

  /** Id of the usable key that an id, an alias or an ARN names; without it, of the default one. Throws `KMS.…` errors. */
  requireKey(reference = DEFAULT_KEY): string {
    const keyId = this.#named.resolve(reference);
    this.#named.requireUsable(keyId);
    return keyId;
  }

  /** The id that a reference names, in any state. Throws `KMS.NotFoundException`. */
  resolve(reference: string): string {
    return this.#named.resolve(reference);
  }

  /** The policy of a key, as put; `undefined` if it has none. */
  findPolicy(keyId: string): object | undefined {
    return this.#named.findPolicy(keyId);
  }

  /** The encryption of a new object by the default of its bucket. Throws `KMS.…` errors. */
  chooseDefault(setting: BucketEncryption | undefined): EncryptionRequest | undefined {
    if (setting === undefined) return undefined;
    const { algorithm, keyId, bucketKeyEnabled } = setting;
    if (algorithm === "AES256") return { type: "SSE-S3" };
    const request = { type: "SSE-KMS", keyId: this.requireKey(keyId) } as const;
    return bucketKeyEnabled === true ? { ...request, bucketKey: true } : request;
  }

  /** The key-encryption keys that bodies name. */
  listUsed(): string[] {
    return listUsedKeks(this.#index);
  }

  /** Bodies that name a key-encryption key, and records with it in their heads; both are counted up to `max`. */
  countUse(kek: string, max: number): { blobs: number; heads: number } {
    return countKekUse(this.#index, kek, max);
  }

  /** Names of buckets with bodies that name one of these keys. */
  findBuckets(keks: readonly string[]): string[] {
    return findBucketsOfKeks(this.#index, keks);
  }

  get #named(): NamedKeys {
    return requireNamed(this.#env.keys);
  }
}
