// Verifies the signature of a request in its header, query or form; Version 2 by the rules of `../sigv2/`.
import type { Clock } from "@platform/kernel/time";
import { S3Error } from "../../model/s3-error.ts";
import { buildOlderStrings, type OlderClaim, readOlderClaim, signOlder } from "../sigv2/index.ts";
import type { RequestFields } from "../wire/fields.ts";
import type { RequestQuery } from "../wire/query.ts";
import { buildCanonicalRequest, buildStringToSign } from "../wire/uri.ts";
import { readSignatureClaim, type SignatureClaim } from "./credential.ts";
import { type PayloadClaim, type PayloadMode, readPayloadClaim } from "./payload.ts";
import type { FormClaim } from "./post-policy.ts";
import {
  deriveSigningKey,
  formatScope,
  isSameSignature,
  type SigningKey,
  SigningKeyCache,
} from "@platform/s3/signature";

/** Allowed clock skew. */
const CLOCK_SKEW_MS_MAX = 900_000;

/** The signed parts of a request. */
export interface SignedRequest {
  method: string;
  /** Path of the target as received. */
  rawPath: string;
  query: RequestQuery;
  fields: RequestFields;
  /** Hash of the body, for requests that need not name it in `x-amz-content-sha256`. */
  payloadHash?: string | undefined;
  /** Parameters that the operation ignores: Version 2 does not sign them. */
  ignoredParameters?: ReadonlySet<string> | undefined;
  /** The bucket in the Host, if any. */
  hostedBucket?: string | undefined;
  /** The client's Host according to a trusted proxy, if any. */
  forwardedHost?: string | undefined;
}

/** The secret and the owner of an access key. */
export interface KnownKey<Owner> {
  secret: string;
  /** Secrets that are accepted as well while a key gets another secret. */
  formerSecrets?: readonly string[];
  owner: Owner;
  /** Of session keys: the token that requests must carry. */
  sessionToken?: string;
}

/** Finds an access key; `undefined` if it is unknown or disabled. Throws the S3Error of a key that has expired. */
export type FindKey<Owner> = (accessKey: string) => KnownKey<Owner> | undefined;

/** The result of verification: the signer, and the coverage of the body. */
export type Authentication<Owner> =
  | { kind: "anonymous"; payload: PayloadMode }
  | {
      kind: "signed";
      accessKey: string;
      owner: Owner;
      signature: SignatureKind;
      payload: PayloadMode;
    };

/** The kind of a signature, for policy conditions. */
export interface SignatureKind {
  version: "AWS" | "AWS4-HMAC-SHA256";
  type: "REST-HEADER" | "REST-QUERY-STRING" | "POST";
  /** The signing time, if the signature has one. */
  signedAtMs?: number;
}

/** Verifies signatures. One per process: it caches derived keys. */
export class SignatureVerifier<Owner> {
  readonly #findKey: FindKey<Owner>;
  readonly #clock: Clock;
  readonly #keys = new SigningKeyCache();
  readonly #recall = (credential: string) => this.#keys.recall(credential);

  constructor(options: { findKey: FindKey<Owner>; clock: Clock }) {
    this.#findKey = options.findKey;
    this.#clock = options.clock;
  }

  /** Throws the S3Error to answer if anything is wrong with the signature. */
  verify(request: SignedRequest): Authentication<Owner> {
    const older = readOlderClaim(request.fields, request.query);
    if (older !== undefined) return this.#verifyOlder(older, request);
    const claim = readSignatureClaim(request.fields, request.query, this.#recall);
    const declared = request.fields.get("x-amz-content-sha256");
    if (claim === undefined) {
      return { kind: "anonymous", payload: toUnsignedPayload(declared) };
    }
    const payloadHash = this.#readPayloadHash(claim, request, declared);
    const payload = readPayloadClaim(payloadHash);
    const known = this.#requireKey(claim.accessKey, claim.credential);
    checkToken(known, claim.presigned?.token ?? request.fields.get("x-amz-security-token"));
    this.#checkTime(claim);
    checkSignedNames(claim, request.fields);
    let sent: SignedTexts | undefined;
    const isMadeWith = (one: SigningKey): boolean =>
      listHosts(request).some((host) => {
        const texts = buildTexts(claim, request, payloadHash, host);
        sent ??= texts;
        return isSameSignature(one.sign(texts.toSign), claim.signature);
      });
    const key = this.#findSigner(claim, known, isMadeWith);
    if (key === undefined) throw doesNotMatch(claim, sent);
    return {
      kind: "signed",
      accessKey: claim.accessKey,
      owner: known.owner,
      signature: {
        version: "AWS4-HMAC-SHA256",
        type: SIGNATURE_TYPES[claim.kind],
        signedAtMs: claim.timeMs,
      },
      payload: toPayloadMode(payload, claim, key),
    };
  }

  /** Verifies the signature of a form's policy. Throws as `verify`. */
  verifyPolicy(claim: FormClaim): { owner: Owner; signature: SignatureKind } {
    const known = this.#requireKey(claim.accessKey);
    checkToken(known, claim.token);
    const { secret, formerSecrets = [], owner } = known;
    const { accessKey, scope, policy } = claim;
    const expected =
      scope === undefined
        ? signOlder(secret, policy)
        : this.#keys
            .get(`${accessKey}/${formatScope(scope)}`, accessKey, secret, scope)
            .sign(policy);
    const others = formerSecrets.map((former) =>
      scope === undefined
        ? signOlder(former, policy)
        : deriveSigningKey(former, scope).sign(policy),
    );
    if (![expected, ...others].some((one) => isSameSignature(one, claim.signature)))
      throw doesNotMatch(claim);
    const version = scope === undefined ? "AWS" : "AWS4-HMAC-SHA256";
    return { owner, signature: { version, type: "POST" } };
  }

  // Signature Version 2 does not cover the body, and does not limit the lifetime of presigned URLs.
  #verifyOlder(claim: OlderClaim, request: SignedRequest): Authentication<Owner> {
    const { kind, accessKey, timeMs, date } = claim;
    const known = this.#requireKey(accessKey);
    checkToken(known, request.fields.get("x-amz-security-token"));
    const { secret, formerSecrets = [], owner } = known;
    const nowMs = this.#clock.now();
    if (kind === "query" && nowMs > timeMs) throw hasExpired(timeMs, nowMs);
    if (kind === "header") requireNear(timeMs, date, nowMs);
    const { method, rawPath, query, fields, hostedBucket, ignoredParameters } = request;
    const texts = buildOlderStrings({
      method,
      rawPath,
      query: query.pairs,
      fields,
      hostedBucket,
      ignoredParameters,
      date,
    });
    const matches = [secret, ...formerSecrets].some((one) =>
      texts.some((text) => isSameSignature(signOlder(one, text), claim.signature)),
    );
    if (!matches) throw doesNotMatch(claim, { toSign: texts[0]! });
    return {
      kind: "signed",
      accessKey,
      owner,
      signature: { version: "AWS", type: SIGNATURE_TYPES[kind] },
      payload: toUnsignedPayload(fields.get("x-amz-content-sha256")),
    };
  }

  #findSigner(
    { credential, accessKey, scope }: SignatureClaim,
    { secret, formerSecrets = [] }: KnownKey<Owner>,
    isMadeWith: (key: SigningKey) => boolean,
  ): SigningKey | undefined {
    const key = this.#keys.get(credential, accessKey, secret, scope);
    if (isMadeWith(key)) return key;
    return formerSecrets.map((former) => deriveSigningKey(former, scope)).find(isMadeWith);
  }

  #requireKey(accessKey: string, credential?: string): KnownKey<Owner> {
    const known = this.#findKey(accessKey);
    if (known !== undefined) return known;
    if (credential !== undefined) this.#keys.forget(credential);
    throw new S3Error("InvalidAccessKeyId", { elements: [["AWSAccessKeyId", accessKey]] });
  }

  #readPayloadHash(
    claim: SignatureClaim,
    request: SignedRequest,
    declared: string | undefined,
  ): string {
    if (declared !== undefined) return declared;
    if (claim.kind === "header" && request.payloadHash !== undefined) return request.payloadHash;
    if (claim.presigned !== undefined) return claim.presigned.contentSha256 ?? "UNSIGNED-PAYLOAD";
    throw new S3Error(
      "InvalidRequest",
      "Missing required header for this request: x-amz-content-sha256",
    );
  }

  #checkTime(claim: SignatureClaim): void {
    const nowMs = this.#clock.now();
    if (claim.presigned !== undefined) {
      const { expiresSeconds } = claim.presigned;
      const endMs = claim.timeMs + expiresSeconds * 1000;
      if (claim.timeMs > nowMs + CLOCK_SKEW_MS_MAX) {
        throw new S3Error("AccessDenied", "Request is not yet valid");
      }
      if (nowMs > endMs) throw hasExpired(endMs, nowMs, expiresSeconds);
      return;
    }
    requireNear(claim.timeMs, claim.timestamp, nowMs);
  }
}

// The Host may have been signed as received, as a trusted proxy received it, or (by git-annex and libcloud) without its
// port.
function listHosts({ fields, forwardedHost }: SignedRequest): string[] {
  const sent = fields.getRaw("host") ?? "";
  const hosts = forwardedHost === undefined ? [sent] : [sent, forwardedHost];
  const bare = sent.replace(/:\d+$/, "");
  return bare === sent ? hosts : [...hosts, bare];
}

const SIGNATURE_TYPES = { header: "REST-HEADER", query: "REST-QUERY-STRING" } as const;

// The text that was verified, for authors of clients. It contains only data of the request.
function doesNotMatch(
  { accessKey, signature }: { accessKey: string; signature: string },
  texts: Partial<SignedTexts> = {},
): S3Error {
  const told = (name: string, text: string | undefined): [string, string][] =>
    text === undefined || SECRET_FIELD.test(text) ? [] : [[name, toUtf8(text)]];
  const elements: [string, string][] = [
    ["AWSAccessKeyId", accessKey],
    ...told("StringToSign", texts.toSign),
    ["SignatureProvided", signature.slice(0, 128)],
    ...told("CanonicalRequest", texts.canonical),
  ];
  return new S3Error("SignatureDoesNotMatch", { elements });
}

/** A customer's key, in a header or a parameter, is never repeated: answers end up in logs. */
const SECRET_FIELD = /-server-side-encryption-customer-key[:=]/i;

// Header values are bytes read as latin1.
function toUtf8(text: string): string {
  return Buffer.from(text, "latin1").toString("utf8");
}

// Session keys require their token, all other keys have none; an empty token counts as missing.
function checkToken({ sessionToken }: { sessionToken?: string }, given = ""): void {
  if (sessionToken === undefined) {
    if (given !== "") throw new S3Error("InvalidToken");
    return;
  }
  if (given === "") {
    throw new S3Error("InvalidToken", "The session token of this access key is missing.");
  }
  if (!isSameSignature(sessionToken, given)) throw new S3Error("InvalidToken");
}

function hasExpired(endMs: number, nowMs: number, expiresSeconds?: number): S3Error {
  return new S3Error("AccessDenied", {
    message: "Request has expired",
    elements: [
      ...(expiresSeconds === undefined ? [] : [["X-Amz-Expires", String(expiresSeconds)] as const]),
      ["Expires", new Date(endMs).toISOString()],
      ["ServerTime", new Date(nowMs).toISOString()],
    ],
  });
}

function requireNear(timeMs: number, given: string, nowMs: number): void {
  if (Math.abs(nowMs - timeMs) <= CLOCK_SKEW_MS_MAX) return;
  throw new S3Error("RequestTimeTooSkewed", {
    elements: [
      ["RequestTime", given],
      ["ServerTime", new Date(nowMs).toISOString()],
      ["MaxAllowedSkewMilliseconds", String(CLOCK_SKEW_MS_MAX)],
    ],
  });
}

function checkSignedNames(claim: SignatureClaim, fields: RequestFields): void {
  if (fields.extensionNames.length === 0) return;
  const signed = new Set(claim.signedHeaders);
  const missing = fields.extensionNames.filter((name) => !signed.has(name));
  if (missing.length > 0) {
    throw new S3Error("AccessDenied", {
      message: "There were headers present in the request which were not signed",
      elements: [["HeadersNotSigned", missing.join(", ")]],
    });
  }
}

interface SignedTexts {
  canonical: string;
  toSign: string;
}

function buildTexts(
  claim: SignatureClaim,
  request: SignedRequest,
  payloadHash: string,
  host: string,
): SignedTexts {
  const { fields } = request;
  const canonical = buildCanonicalRequest({
    method: request.method,
    rawPath: request.rawPath,
    query: request.query.canonicalize(claim.presigned?.signatureName),
    getField: (name) => {
      if (name === "host") return host;
      // Version 2 of the SDK for JavaScript signs headers that its presigned URLs carry as parameters.
      return fields.getRaw(name) ?? (claim.kind === "query" ? fields.get(name) : undefined);
    },
    signedHeaders: claim.signedHeaders,
    payloadHash,
  });
  const scope = claim.credential.slice(claim.accessKey.length + 1);
  const toSign = buildStringToSign(claim.timestamp, scope, canonical);
  return { canonical, toSign };
}

function toPayloadMode(payload: PayloadClaim, claim: SignatureClaim, key: SigningKey): PayloadMode {
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

function toUnsignedPayload(declared: string | undefined): PayloadMode {
  if (declared === undefined) return { kind: "unsigned" };
  const payload = readPayloadClaim(declared);
  if (payload.kind === "signed-chunks") {
    throw new S3Error(
      "InvalidRequest",
      "Signed chunks need a request that is signed with AWS4-HMAC-SHA256.",
    );
  }
  return payload.kind === "unsigned-chunks" ? { kind: "unsigned-chunks", trailer: true } : payload;
}
