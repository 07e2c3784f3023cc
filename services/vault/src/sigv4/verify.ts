// Checks a request's Signature Version 4, in its header or its query.
import type { Clock } from "@platform/kernel/time";
import { S3Error } from "../wire/error.ts";
import type { RequestFields } from "../wire/fields.ts";
import { buildCanonicalRequest, buildStringToSign } from "./canonical.ts";
import type { QueryPair } from "./canonical.ts";
import { isPresignName, readSignatureClaim } from "./credential.ts";
import type { SignatureClaim } from "./credential.ts";
import { readPayloadClaim } from "./payload.ts";
import type { PayloadClaim, PayloadMode } from "./payload.ts";
import { SigningKeyCache, formatScope, isSameSignature, signText } from "./signing-key.ts";

/** How far a signature's time may be from ours. */
export const CLOCK_SKEW_MS_MAX = 900_000;

/** What a signature covers. */
export interface SignedRequest {
  method: string;
  /** Path of the target as it came. */
  rawPath: string;
  query: readonly QueryPair[];
  fields: RequestFields;
  /** The Host that a trusted proxy says the client used, where there is one. */
  forwardedHost?: string | undefined;
}

/** Finds the secret of an access key and whom it belongs to; undefined where it is unknown or switched off. */
export type FindKey<Owner> = (accessKey: string) => { secret: string; owner: Owner } | undefined;

/** Who sent a request, and how its body is covered. */
export type Authentication<Owner> =
  | { kind: "anonymous"; payload: PayloadMode }
  | { kind: "signed"; accessKey: string; owner: Owner; presigned: boolean; payload: PayloadMode };

/** Checks signatures. One per process: it keeps derived keys. */
export class SignatureVerifier<Owner> {
  readonly #findKey: FindKey<Owner>;
  readonly #clock: Clock;
  readonly #keys = new SigningKeyCache();

  constructor(options: { findKey: FindKey<Owner>; clock: Clock }) {
    this.#findKey = options.findKey;
    this.#clock = options.clock;
  }

  /** Throws the S3Error that the API answers where anything is wrong with the signature. */
  verify(request: SignedRequest): Authentication<Owner> {
    const claim = readSignatureClaim(request.fields, request.query);
    const declared = request.fields.get("x-amz-content-sha256");
    if (claim === undefined) {
      return { kind: "anonymous", payload: toAnonymousPayload(declared) };
    }
    const payloadHash = this.#readPayloadHash(claim, request, declared);
    const payload = readPayloadClaim(payloadHash);
    const known = this.#findKey(claim.accessKey);
    if (known === undefined) {
      throw new S3Error("InvalidAccessKeyId", {
        elements: [["AWSAccessKeyId", claim.accessKey]],
      });
    }
    this.#checkTime(claim);
    checkSignedNames(claim, request.fields);
    const key = this.#keys.get(claim.accessKey, known.secret, claim.scope);
    const hosts = [undefined, request.forwardedHost];
    const matches = hosts.some(
      (host, index) =>
        (index === 0 || host !== undefined) &&
        isSameSignature(signClaim(claim, request, payloadHash, key, host), claim.signature),
    );
    if (!matches)
      throw new S3Error("SignatureDoesNotMatch", {
        elements: [["AWSAccessKeyId", claim.accessKey]],
      });
    return {
      kind: "signed",
      accessKey: claim.accessKey,
      owner: known.owner,
      presigned: claim.kind === "query",
      payload: toPayloadMode(payload, claim, key),
    };
  }

  /** Checks a form upload's policy signature; throws as `verify`. */
  verifyPolicy(
    claim: Pick<SignatureClaim, "accessKey" | "scope" | "signature">,
    policy: string,
  ): Owner {
    const known = this.#findKey(claim.accessKey);
    if (known === undefined)
      throw new S3Error("InvalidAccessKeyId", { elements: [["AWSAccessKeyId", claim.accessKey]] });
    const key = this.#keys.get(claim.accessKey, known.secret, claim.scope);
    if (!isSameSignature(signText(key, policy), claim.signature)) {
      throw new S3Error("SignatureDoesNotMatch");
    }
    return known.owner;
  }

  #readPayloadHash(
    claim: SignatureClaim,
    request: SignedRequest,
    declared: string | undefined,
  ): string {
    if (declared !== undefined) return declared;
    if (claim.kind === "query") {
      const inQuery = request.query.find(([name]) => isPresignName(name, "Content-Sha256"));
      return inQuery?.[1] ?? "UNSIGNED-PAYLOAD";
    }
    throw new S3Error(
      "InvalidRequest",
      "Missing required header for this request: x-amz-content-sha256",
    );
  }

  #checkTime(claim: SignatureClaim): void {
    const nowMs = this.#clock.now();
    if (claim.kind === "query") {
      const endMs = claim.timeMs + claim.expiresSeconds! * 1000;
      if (claim.timeMs > nowMs + CLOCK_SKEW_MS_MAX) {
        throw new S3Error("AccessDenied", "Request is not yet valid");
      }
      if (nowMs > endMs) {
        throw new S3Error("AccessDenied", {
          message: "Request has expired",
          elements: [
            ["X-Amz-Expires", String(claim.expiresSeconds)],
            ["Expires", new Date(endMs).toISOString()],
            ["ServerTime", new Date(nowMs).toISOString()],
          ],
        });
      }
      return;
    }
    if (Math.abs(nowMs - claim.timeMs) > CLOCK_SKEW_MS_MAX) {
      throw new S3Error("RequestTimeTooSkewed", {
        elements: [
          ["RequestTime", claim.timestamp],
          ["ServerTime", new Date(nowMs).toISOString()],
          ["MaxAllowedSkewMilliseconds", String(CLOCK_SKEW_MS_MAX)],
        ],
      });
    }
  }
}

function checkSignedNames(claim: SignatureClaim, fields: RequestFields): void {
  const signed = new Set(claim.signedHeaders);
  const missing = fields.extensionNames.filter((name) => !signed.has(name));
  if (missing.length > 0) {
    throw new S3Error("AccessDenied", {
      message: "There were headers present in the request which were not signed",
      elements: [["HeadersNotSigned", missing.join(", ")]],
    });
  }
}

function signClaim(
  claim: SignatureClaim,
  request: SignedRequest,
  payloadHash: string,
  key: Buffer,
  host: string | undefined,
): string {
  const { fields } = request;
  const skipQuery = request.query.find(([name]) => isPresignName(name, "Signature"))?.[0];
  const canonical = buildCanonicalRequest({
    method: request.method,
    rawPath: request.rawPath,
    query: request.query,
    ...(claim.kind === "query" && skipQuery !== undefined ? { skipQuery } : {}),
    getField: (name) => (name === "host" && host !== undefined ? host : fields.getRaw(name)),
    signedHeaders: claim.signedHeaders,
    payloadHash,
  });
  return signText(key, buildStringToSign(claim.timestamp, formatScope(claim.scope), canonical));
}

function toPayloadMode(payload: PayloadClaim, claim: SignatureClaim, key: Buffer): PayloadMode {
  switch (payload.kind) {
    case "signed":
    case "unsigned":
      return payload;
    case "unsigned-chunks":
      return { kind: "unsigned-chunks", trailer: true };
    case "signed-chunks": {
      const { timestamp, scope, signature } = claim;
      return { ...payload, seed: { key, timestamp, scope, signature } };
    }
    default:
      return payload satisfies never;
  }
}

function toAnonymousPayload(declared: string | undefined): PayloadMode {
  if (declared === undefined) return { kind: "unsigned" };
  const payload = readPayloadClaim(declared);
  if (payload.kind === "signed-chunks") {
    throw new S3Error("InvalidRequest", "Signed chunks need a signed request.");
  }
  return payload.kind === "unsigned-chunks" ? { kind: "unsigned-chunks", trailer: true } : payload;
}
