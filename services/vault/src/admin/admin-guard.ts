// Authentication of the admin API: signatures of storage's keys, and tokens. The operations decide what callers may do.
import { PlatformError, createUnauthorizedError } from "@platform/kernel/errors";
import { createBearerGuard, type Guard, type HeaderReader } from "@platform/kernel/http";
import type { Caller, TokenVerifier } from "@platform/kernel/identity";
import type { Caller as StorageCaller } from "../access/authorizer.ts";
import { S3Error } from "../model/s3-error.ts";
import { hashHex, readQuery, type SignatureVerifier } from "../s3/sigv4/index.ts";
import { RequestFields } from "../s3/wire/fields.ts";
import type { StorageCallers } from "./storage-callers.ts";

const BODY_BYTES_MAX = 1_048_576;
/** Hash of the body in a signed request. */
const HASH_FIELD = "x-amz-content-sha256";

/** Options of the guard. */
export interface AdminGuardOptions {
  verifier: SignatureVerifier<StorageCaller>;
  callers: StorageCallers;
  tokens: TokenVerifier | undefined;
  /** Limit of a body by the path of its route, if it is more than 1 MiB. */
  findBytesMax: (path: string) => number | undefined;
}

/** Verifies signatures while the whole request is available, and passes the callers of signed requests to the guard. */
export class AdminGuard {
  readonly #options: AdminGuardOptions;
  readonly #signed = new WeakMap<HeaderReader, Caller>();
  readonly #askBearer: Guard | undefined;

  constructor(options: AdminGuardOptions) {
    this.#options = options;
    this.#askBearer = options.tokens === undefined ? undefined : createBearerGuard(options.tokens);
  }

  /** Verifies a signed request with its body. An unsigned request passes unchanged. Throws if the signature is wrong. */
  async admit(request: Request): Promise<Request> {
    const authorization = request.headers.get("authorization") ?? "";
    if (!authorization.startsWith("AWS4-")) return request;
    const url = new URL(request.url);
    const fields = new RequestFields(request.headers);
    const verify = (payloadHash: string) => {
      fields.requireConsistent();
      return this.#options.verifier.verify({
        method: request.method,
        rawPath: url.pathname,
        query: readQuery(url.search.slice(1)),
        fields,
        // Tools that sign for services in general send the hash of the body as a header to S3 only.
        payloadHash,
      });
    };
    const bytesMax = this.#findBytesMax(request, url.pathname);
    // A large body is received from a verified sender only.
    if (bytesMax > BODY_BYTES_MAX) explainRefusal(() => verify(""));
    if (request.headers.has("expect")) refuseByHead(request, verify, bytesMax);
    const body = await readBody(request, bytesMax);
    const signed = explainRefusal(() => verify(hashHex(body)));
    if (signed.kind !== "signed") throw createUnauthorizedError("The request is not signed.");
    const { payload } = signed;
    if (payload.kind === "signed" ? hashHex(body) !== payload.sha256 : body.length > 0) {
      throw new PlatformError("unauthorized", "The signature does not cover the body.");
    }
    // The original request may be a listener's own class, which the platform's Request does not accept.
    const { method, headers } = request;
    const admitted = new Request(
      request.url,
      body.length === 0 ? { method, headers } : { method, headers, body },
    );
    this.#signed.set(admitted.headers, this.#options.callers.fromSignature(signed.owner));
    return admitted;
  }

  #findBytesMax({ headers }: Request, path: string): number {
    if (!headers.has(HASH_FIELD)) return BODY_BYTES_MAX;
    return this.#options.findBytesMax(path) ?? BODY_BYTES_MAX;
  }

  /** The guard of the admin API. */
  readonly guard: Guard = (request) => {
    const signer = this.#signed.get(request.headers);
    if (signer !== undefined) return signer;
    if (this.#askBearer === undefined || request.headers.get("authorization") === null) {
      throw createUnauthorizedError("A console session, a signature or a token is required.");
    }
    return this.#askBearer(request);
  };
}

// A client that waits for 100 (Continue) sends no body that is refused in any case. Without the body's hash in a header, the
// signature itself cannot be verified yet.
function refuseByHead(
  { headers }: Request,
  verify: (payloadHash: string) => unknown,
  bytesMax: number,
): void {
  if (Number(headers.get("content-length") ?? 0) > bytesMax) throw createSizeError(bytesMax);
  explainRefusal(() => {
    try {
      verify(hashHex(Buffer.alloc(0)));
    } catch (error) {
      const isUndecided = error instanceof S3Error && error.code === "SignatureDoesNotMatch";
      if (!isUndecided || headers.has(HASH_FIELD)) throw error;
    }
  });
}

function explainRefusal<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof S3Error)) throw error;
    throw new PlatformError("unauthorized", `${error.code}: ${error.message}`, {
      headers: { "WWW-Authenticate": "AWS4-HMAC-SHA256" },
    });
  }
}

async function readBody(request: Request, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  if (request.body === null) return Buffer.alloc(0);
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of request.body) {
    size += piece.length;
    if (size > bytesMax) throw createSizeError(bytesMax);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function createSizeError(bytesMax: number): PlatformError {
  const mib = bytesMax / BODY_BYTES_MAX;
  return new PlatformError("payload_too_large", `The body is larger than ${mib} MiB.`);
}
