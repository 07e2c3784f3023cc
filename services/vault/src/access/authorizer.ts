// Access decisions for root keys, user policies, bucket policies and ACLs. An explicit deny always wins.
import type { Acl, AclPermission } from "../model/acl.ts";
import { type Bucket, isReservedBucket } from "../model/bucket.ts";
import { isGranted, isPublicAcl } from "./acl.ts";
import type { ConditionValues } from "./condition-keys.ts";
import {
  compileKeyPolicy,
  compilePolicy,
  type Policy,
  type PolicyAnswer,
  type UnknownParts,
} from "./policy.ts";
import type { PolicyPrincipal } from "./principal.ts";
import type { StoredSession } from "./session-journal.ts";
import { readOwnership, readPublicAccessBlock } from "./public-access.ts";

/** The caller of a request. All keys belong to one account, which owns every bucket. */
export type Caller =
  | { readonly kind: "anonymous" }
  | { readonly kind: "root"; readonly accessKey: string }
  | {
      readonly kind: "user";
      readonly accessKey: string;
      readonly name: string;
      readonly policies: readonly Policy[];
      /** Namespaces that its requests may be charged to. */
      readonly namespaces: readonly string[];
    }
  | SessionCaller;

/** The user of a token in a role: the holder of a session key, or a person in the console. */
export interface SessionCaller {
  readonly kind: "session";
  readonly accessKey: string;
  readonly role: string;
  /** Policies of the role. */
  readonly policies: readonly Policy[];
  /** The session with the user, the tenant and the scopes of the token. */
  readonly session: Omit<
    StoredSession,
    "accessKey" | "sealed" | "role" | "token" | "policy" | "expiresMs"
  >;
  /** A policy that must allow every request as well. */
  readonly limit: Policy | undefined;
}

/** The scopes of storage: a session key reads and writes only with the scope of its token. */
export const STORAGE_SCOPES = { read: "vault:read", write: "vault:write" } as const;

/** A scope of storage. */
export type StorageScope = (typeof STORAGE_SCOPES)[keyof typeof STORAGE_SCOPES];

/** The name of a session in ARNs and user ids. */
export function nameSession({ role, session }: SessionCaller): string {
  return `${role}/${session.sessionName}`;
}

/**
 * The user behind a caller, the same for all keys and sessions: names of sessions are chosen by their holders. `undefined`
 * for anonymous callers.
 */
export function identifyUser(caller: Caller): string | undefined {
  switch (caller.kind) {
    case "anonymous":
      return undefined;
    case "root":
      return "root";
    case "user":
      return `user/${caller.name}`;
    case "session": {
      const { issuer, tenant = "", sub } = caller.session;
      return `token/${JSON.stringify([issuer, tenant, sub])}`;
    }
    default:
      return caller satisfies never;
  }
}

/** The account that owns everything. */
export interface Account {
  /** Canonical id: 64 hexadecimal digits. */
  readonly canonicalId: string;
  readonly displayName: string;
  /** Twelve digits, as in ARNs. */
  readonly accountId: string;
}

/** An access question. */
export interface AccessQuestion {
  caller: Caller;
  /** `s3:GetObject` */
  action: string;
  bucket: Bucket | undefined;
  /** The name in the request, even if the bucket does not exist. */
  bucketName: string;
  /** "" on bucket level. */
  key: string;
  values: ConditionValues;
  /** Parts without a value yet: the decision is then in favour of the caller unless no value of them could change it. */
  unknown?: UnknownParts | undefined;
  /** The ACL permission that is sufficient, with the ACL of the object if that ACL decides. */
  acl?:
    | { of: "bucket" | "object"; permission: AclPermission; objectAcl?: Acl | undefined }
    | undefined;
}

/** A question about a named key. */
export interface KeyQuestion {
  caller: Caller;
  action: "kms:Decrypt" | "kms:GenerateDataKey";
  keyId: string;
  /** The policy of the key, as put. */
  policy: object | undefined;
  values: ConditionValues;
}

/** Policy operations that root can always do: a bucket policy must not lock out its owner forever. */
const ROOT_ALWAYS: ReadonlySet<string> = new Set([
  "s3:GetBucketPolicy",
  "s3:PutBucketPolicy",
  "s3:DeleteBucketPolicy",
]);

/** The canonical id of anonymous callers in S3. */
const ANONYMOUS_ID = "65a011a29cdf8ec533ec3d1ccaae921c";

/** True if nobody may do something: reserved buckets are written by the store itself, and read by root. */
function isReservedFrom(caller: Caller, bucketName: string, action: string): boolean {
  // That the name is taken is the better answer to CreateBucket.
  if (!isReservedBucket(bucketName) || action === "s3:CreateBucket") return false;
  return caller.kind !== "root" || !isReading(action);
}

/** Decides access. Keeps compiled bucket policies as long as the buckets have them. */
export class Authorizer {
  readonly account: Account;
  readonly #compiled = new WeakMap<object, Policy>();

  constructor(account: Account) {
    this.account = account;
  }

  isAllowed(question: AccessQuestion): boolean {
    return this.decide(question) === "allow";
  }

  /** `deny` if a policy denies, `none` if nothing allows. */
  decide(question: AccessQuestion): PolicyAnswer {
    const { caller, bucket } = question;
    if (isReservedFrom(caller, question.bucketName, question.action)) return "deny";
    const byBucket = this.#askBucketPolicy(question);
    if (caller.kind === "root")
      return byBucket !== "deny" || ROOT_ALWAYS.has(question.action) ? "allow" : "deny";
    if (caller.kind === "session" && !this.#isWithinSession(caller, question)) return "deny";
    const byUser = this.#askUserPolicies(question);
    if (byBucket === "deny" || byUser === "deny") return "deny";
    if (byBucket === "allow" || byUser === "allow") return "allow";
    return bucket !== undefined && this.#isGrantedByAcl(question, bucket) ? "allow" : "none";
  }

  /**
   * True if a caller may use a named key. Without a policy of the key, whoever may access the object may, unless a policy
   * denies it; with one, that policy or those of the caller must allow it.
   */
  mayUseKey({ caller, action, keyId, policy: document, values }: KeyQuestion): boolean {
    if (!hasPolicies(caller)) return caller.kind === "root";
    const question = {
      principal: this.#toPrincipal(caller),
      action,
      resource: `kms:key/${keyId}`,
      values,
    };
    const answers = caller.policies.map((policy) => policy.ask(question));
    const limit = caller.kind === "session" ? caller.limit?.ask(question) : undefined;
    const ofKey = document === undefined ? undefined : this.#getKeyPolicy(document).ask(question);
    if ([...answers, limit, ofKey].includes("deny")) return false;
    return ofKey === undefined || ofKey === "allow" || answers.includes("allow");
  }

  #getKeyPolicy(document: object): Policy {
    let policy = this.#compiled.get(document);
    if (policy === undefined) {
      policy = compileKeyPolicy(document);
      this.#compiled.set(document, policy);
    }
    return policy;
  }

  /** True if a policy that decides on the use of a key uses values of the request. */
  usesKeyValues(caller: Caller, policy: object | undefined): boolean {
    if (policy !== undefined && this.#getKeyPolicy(policy).usesValues) return true;
    return this.usesValues(caller, undefined);
  }

  /** True if any relevant policy uses values of the request. */
  usesValues(caller: Caller, bucket: Bucket | undefined): boolean {
    if (bucket !== undefined && this.getBucketPolicy(bucket)?.usesValues === true) return true;
    if (caller.kind === "session" && caller.limit?.usesValues === true) return true;
    return hasPolicies(caller) && caller.policies.some((policy) => policy.usesValues);
  }

  /** The caller as listings name it: the account, or an ARN and a name. */
  describe(caller: Caller): { id: string; displayName: string } {
    switch (caller.kind) {
      case "anonymous":
        return { id: ANONYMOUS_ID, displayName: "anonymous" };
      case "root":
        return { id: this.account.canonicalId, displayName: this.account.displayName };
      case "user":
        return { id: this.#toPrincipal(caller).arn!, displayName: caller.name };
      case "session":
        return { id: this.#toPrincipal(caller).arn!, displayName: nameSession(caller) };
      default:
        return caller satisfies never;
    }
  }

  /** The compiled policy of a bucket; `undefined` if it has none. */
  getBucketPolicy(bucket: Bucket): Policy | undefined {
    const document = bucket.settings.policy;
    if (typeof document !== "object" || document === null) return undefined;
    let policy = this.#compiled.get(document);
    if (policy === undefined) {
      policy = compilePolicy(document, bucket.name);
      this.#compiled.set(document, policy);
    }
    return policy;
  }

  #askBucketPolicy(question: AccessQuestion): PolicyAnswer {
    const { bucket, caller } = question;
    const policy = bucket === undefined ? undefined : this.getBucketPolicy(bucket);
    if (bucket === undefined || policy === undefined) return "none";
    const answer = this.#ask(policy, question);
    // A restricted bucket's public policy still denies, but allows only the account itself.
    const isRestricted =
      caller.kind === "anonymous" &&
      readPublicAccessBlock(bucket).restrictPublicBuckets &&
      policy.isPublic;
    return answer === "allow" && isRestricted ? "none" : answer;
  }

  #askUserPolicies(question: AccessQuestion): PolicyAnswer {
    if (!hasPolicies(question.caller)) return "none";
    let answer: PolicyAnswer = "none";
    for (const policy of question.caller.policies) {
      const one = this.#ask(policy, question);
      if (one === "deny") return "deny";
      if (one === "allow") answer = "allow";
    }
    return answer;
  }

  // The scopes of the token and the policy of the session limit what the role and buckets allow.
  #isWithinSession({ session, limit }: SessionCaller, question: AccessQuestion): boolean {
    const scope = isReading(question.action) ? STORAGE_SCOPES.read : STORAGE_SCOPES.write;
    if (!session.scopes.includes(scope)) return false;
    return limit === undefined || this.#ask(limit, question) === "allow";
  }

  #ask(policy: Policy, question: AccessQuestion): PolicyAnswer {
    const { bucketName, key } = question;
    return policy.ask({
      principal: this.#toPrincipal(question.caller),
      action: question.action,
      resource: key === "" ? bucketName : `${bucketName}/${key}`,
      values: question.values,
      unknown: question.unknown,
    });
  }

  #isGrantedByAcl(question: AccessQuestion, bucket: Bucket): boolean {
    const { acl, caller } = question;
    if (acl === undefined || readOwnership(bucket) === "BucketOwnerEnforced") return false;
    const kept = acl.of === "bucket" ? bucket.settings.acl : acl.objectAcl;
    if (kept === undefined) return false;
    if (readPublicAccessBlock(bucket).ignorePublicAcls && isPublicAcl(kept)) return false;
    // Users are not the account: grants to its id apply to root, grants to groups to everyone.
    return isGranted(kept, getGrantee(caller), acl.permission);
  }

  #toPrincipal(caller: Caller): PolicyPrincipal {
    const { accountId, canonicalId } = this.account;
    const root = `arn:aws:iam::${accountId}:root`;
    switch (caller.kind) {
      case "anonymous":
        return { arn: undefined, names: [], accountNames: [] };
      case "root":
        return { arn: root, names: [accountId, canonicalId], accountNames: [] };
      case "user":
        return {
          arn: `arn:aws:iam::${accountId}:user/${caller.name}`,
          names: [caller.name, `arn:aws:iam:::user/${caller.name}`],
          accountNames: [root, accountId, canonicalId],
        };
      case "session":
        return {
          arn: `arn:aws:sts::${accountId}:assumed-role/${nameSession(caller)}`,
          names: [
            `arn:aws:iam::${accountId}:role/${caller.role}`,
            `arn:aws:iam:::role/${caller.role}`,
          ],
          accountNames: [root, accountId, canonicalId],
        };
      default:
        return caller satisfies never;
    }
  }
}

/** True for callers whose own policies decide. */
export function hasPolicies(
  caller: Caller,
): caller is Extract<Caller, { kind: "user" | "session" }> {
  return caller.kind === "user" || caller.kind === "session";
}

// ACLs name users and groups; a session belongs to the group of callers with a key. Names of users contain no slash.
function getGrantee(caller: Caller): string | undefined {
  if (caller.kind === "user") return caller.name;
  return caller.kind === "session" ? `role/${caller.role}` : undefined;
}

function isReading(action: string): boolean {
  return /^s3:(?:Get|Head|Invoke|List|Query)/.test(action);
}
