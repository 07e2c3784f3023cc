// Admission of a request whose caller is known: budget, expected owner, bucket, authorization.
import type { Caller, SessionCaller } from "../access/authorizer.ts";
import { S3Error } from "../model/s3-error.ts";
import type { UnknownParts } from "../access/policy.ts";
import { authorize, authorizeAhead } from "./authorization.ts";
import type { ObjectApi, OperationContext } from "./context.ts";
import { requireNoLoop } from "./hops.ts";
import type { OperationRequest } from "./request.ts";
import type { Address } from "./wire/address.ts";

/** A request with its operation and its caller. */
export interface IdentifiedRequest extends Pick<
  OperationContext,
  "request" | "operation" | "caller" | "tenant" | "signature" | "payload" | "query"
> {
  address: Address;
  /** Parts of the request that are not known yet, if it is only asked about. */
  unknown?: UnknownParts | undefined;
}

/**
 * Finds the bucket of a request and authorizes it, as far as it can be before its body is read; a request about a federated
 * bucket when it runs. Throws an S3Error or a StoreError.
 */
export async function admitOperation(
  api: ObjectApi,
  identified: IdentifiedRequest,
): Promise<OperationContext> {
  const { request, operation, address, unknown } = identified;
  const { fields } = request;
  requireNoLoop(fields, api.store.remotes.storeId);
  requireOwner(api, fields.get("x-amz-expected-bucket-owner"));
  requireOwner(api, fields.get("x-amz-source-expected-bucket-owner"));
  const { bucket: bucketName, key } = address;
  const own = api.store.buckets.find(bucketName);
  const federated =
    own === undefined && bucketName !== "" ? api.federation.find(bucketName) : undefined;
  if (federated !== undefined) {
    const common = { ...identified, api, bucketName, key, fields };
    const context: OperationContext = { ...common, bucket: undefined, federated };
    if (unknown !== undefined) await authorizeAhead(context, unknown);
    return context;
  }
  const bucket = operation.isBucketOptional
    ? undefined
    : (own ?? api.store.buckets.require(bucketName));
  // Made at once: each copy of a context is a part of the cost of a small request.
  const context: OperationContext = { ...identified, api, bucketName, key, fields, bucket };
  const decidedByBody = unknown ?? operation.decidedByBody;
  if (decidedByBody !== undefined) await authorizeAhead(context, decidedByBody);
  else if (!operation.authorizesItself) await authorize(context);
  return context;
}

// Clients that name the expected owner must not reach the bucket of another; all buckets belong to one account.
function requireOwner(api: ObjectApi, accountId: string | undefined): void {
  if (accountId === undefined || accountId === api.authorizer.account.accountId) return;
  throw new S3Error(/^\d{12}$/.test(accountId) ? "AccessDenied" : "InvalidBucketOwnerAWSAccountID");
}

/** Charges a request to the budget of its tenant, whose name it returns. Throws SlowDown beyond it. */
export function takeBudget(api: ObjectApi, request: OperationRequest, caller: Caller): string {
  const tenant = nameTenant(request, caller);
  const waitSeconds = api.budgets.take(tenant);
  if (waitSeconds > 0) {
    throw new S3Error("SlowDown", { headers: [["Retry-After", String(waitSeconds)]] });
  }
  return tenant;
}

// The client chooses the namespace: it counts only if the user of the key may use it.
function nameTenant(request: OperationRequest, caller: Caller): string {
  if (caller.kind === "anonymous") return `anonymous/${request.clientAddress}`;
  const namespace = request.fields.get("x-platform-vault-namespace");
  // All keys of a user share one budget: new keys are easy to get.
  const own = caller.kind === "session" ? nameUserBudget(caller) : caller.accessKey;
  if (namespace === undefined || namespace === "") return own;
  const isPermitted = caller.kind === "root" || listNamespaces(caller).includes(namespace);
  if (!isPermitted) {
    throw new S3Error(
      "AccessDenied",
      "X-Platform-Vault-Namespace names a namespace that this key may not use.",
    );
  }
  return `${own}/${namespace.slice(0, 128)}`;
}

function nameUserBudget({ session }: SessionCaller): string {
  return `user:${session.tenant ?? ""}/${session.sub}`;
}

function listNamespaces(caller: Extract<Caller, { kind: "user" | "session" }>): readonly string[] {
  if (caller.kind === "user") return caller.namespaces;
  return caller.session.tenant === undefined ? [] : [caller.session.tenant];
}
