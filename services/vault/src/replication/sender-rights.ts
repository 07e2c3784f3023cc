// The rights of the sender of a rule, as they are when a version is sent: readers of the destination see whatever arrives.
import type { Authorizer, Caller } from "../access/authorizer.ts";
import type { Directory } from "../access/directory.ts";
import { findRequester } from "../access/stored-requester.ts";
import type { ObjectInfo } from "../model/object.ts";
import type { StoredRequester } from "../model/requester.ts";
import type { Store } from "../object-store.ts";

/** One of them is enough. The first is that of the cloud's roles. */
const READS = ["s3:GetObjectVersionForReplication", "s3:GetObject"] as const;

/** Options of {@link SenderRights}. */
export interface SenderRightsOptions {
  readonly store: Store;
  readonly authorizer: Authorizer;
  readonly directory: Directory;
}

/** Answers what the sender of a rule may do now. */
export class SenderRights {
  readonly #options: SenderRightsOptions;

  constructor(options: SenderRightsOptions) {
    this.#options = options;
  }

  /** The reason why a sender may not read an object, or use its key; `undefined` if both are allowed. */
  findReadRefusal(
    requester: StoredRequester,
    { bucket, key, tags, versionId, encryption }: ObjectInfo,
  ): string | undefined {
    const callers = findRequester(requester, this.#options.directory);
    const tagValues = Object.entries(tags).map(
      ([name, value]) => [`s3:existingobjecttag/${name}`, [value]] as const,
    );
    const values = new Map<string, readonly string[]>([
      ["s3:versionid", [versionId]],
      ...tagValues,
    ]);
    if (!callers.some((caller) => this.#may(caller, READS, bucket, key, values)))
      return "The sender of the rule may not read the object (s3:GetObjectVersionForReplication)";
    if (encryption?.type !== "SSE-KMS") return undefined;
    return callers.some((caller) => this.#mayDecrypt(caller, encryption.keyId))
      ? undefined
      : "The sender of the rule may not use the key of the object (kms:Decrypt)";
  }

  /** True if a sender may write replicas of a key into a bucket of this store. */
  mayWrite(requester: StoredRequester, bucket: string, key: string): boolean {
    const callers = findRequester(requester, this.#options.directory);
    return callers.some((caller) =>
      this.#may(caller, ["s3:ReplicateObject"], bucket, key, new Map()),
    );
  }

  #may(
    caller: Caller,
    actions: readonly string[],
    bucketName: string,
    key: string,
    values: ReadonlyMap<string, readonly string[]>,
  ): boolean {
    const { store, authorizer } = this.#options;
    const bucket = store.buckets.find(bucketName);
    const answers = actions.map((action) =>
      authorizer.decide({ caller, action, bucket, bucketName, key, values }),
    );
    return answers.includes("allow") && !answers.includes("deny");
  }

  #mayDecrypt(caller: Caller, keyId: string): boolean {
    const { store, authorizer } = this.#options;
    const policy = store.keys.findPolicy(keyId);
    const question = { action: "kms:Decrypt", keyId, policy, values: new Map() } as const;
    return authorizer.mayUseKey({ ...question, caller });
  }
}
