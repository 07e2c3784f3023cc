// From the body of a request to the bytes of the object: decodes, and verifies length, signature and checksums.
import { computeChecksum } from "../hash/checksum.ts";
import type { BodyDigests, ChecksumAlgorithm, Upload } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import type { OperationContext } from "./context.ts";
import type { OperationRequest } from "./request.ts";
import { AwsChunkedDecoder } from "./sigv4/aws-chunked.ts";
import { hashHex, type PayloadMode } from "./sigv4/index.ts";
import { type ChecksumClaim, readChecksumClaim } from "./wire/checksum.ts";
import { foldName, type RequestFields } from "./wire/fields.ts";
import { createHash } from "node:crypto";

/** S3's limit of an object in one piece. */
export const OBJECT_BYTES_MAX = 5 * 1024 ** 3;
/** Overhead of the coding: the headers of small chunks. */
const CODING_BYTES_MAX = 1024 ** 3;
const TRAILERS_MAX = 8;
const DOCUMENT_BYTES_MAX = 1_048_576;

/** The description of a body in its request. */
export interface PayloadPlan {
  mode: PayloadMode;
  /** Size of the object. */
  contentLength: number;
  trailerNames: readonly string[];
  checksum: ChecksumClaim | undefined;
  contentMd5: Buffer | undefined;
}

/** Reads the headers that describe a body. Throws an S3Error before any of it is read. */
export function planPayload(
  request: OperationRequest,
  mode: PayloadMode,
  ignoresChecksum = false,
): PayloadPlan {
  const { fields, body } = request;
  const isCoded = mode.kind === "signed-chunks" || mode.kind === "unsigned-chunks";
  const trailerNames = isCoded && mode.trailer ? readTrailerNames(fields) : [];
  const declared = fields.get("x-amz-decoded-content-length");
  let contentLength = body.contentLength;
  if (isCoded) {
    if (declared === undefined || !/^\d{1,15}$/.test(declared)) {
      throw new S3Error(
        "MissingContentLength",
        "You must provide the x-amz-decoded-content-length HTTP header.",
      );
    }
    contentLength = Number(declared);
  } else if (isAwsChunked(fields) && (declared !== undefined || fields.has("x-amz-trailer"))) {
    // Without this check, the chunk headers would become part of the object.
    throw new S3Error(
      "InvalidRequest",
      "The body is declared as aws-chunked, but x-amz-content-sha256 does not name a streaming payload.",
    );
  }
  if (contentLength === undefined) throw new S3Error("MissingContentLength");
  if (contentLength > OBJECT_BYTES_MAX) {
    throw new S3Error("EntityTooLarge", {
      elements: [
        ["ProposedSize", String(contentLength)],
        ["MaxSizeAllowed", String(OBJECT_BYTES_MAX)],
      ],
    });
  }
  return {
    mode,
    contentLength,
    trailerNames,
    checksum: ignoresChecksum ? undefined : readChecksumClaim(fields, trailerNames),
    contentMd5: readContentMd5(fields),
  };
}

/** The description of a file in the fields of its form. Throws as `planPayload`. */
export function planForm(fields: RequestFields, contentLength: number): PayloadPlan {
  return {
    mode: { kind: "unsigned" },
    contentLength,
    trailerNames: [],
    checksum: readChecksumClaim(fields, []),
    contentMd5: readContentMd5(fields),
  };
}

/** The checksums to compute while a body is received. */
export function listDigests(plan: PayloadPlan): ChecksumAlgorithm[] {
  const wanted: ChecksumAlgorithm[] = plan.checksum === undefined ? [] : [plan.checksum.algorithm];
  if (plan.mode.kind === "signed" && !wanted.includes("SHA256")) wanted.push("SHA256");
  return wanted;
}

/**
 * Writes the body to an upload and verifies it. After this resolves, the upload may be committed; if it rejects, the upload
 * has been dropped.
 */
export async function receiveUpload<Result>(
  request: OperationRequest,
  plan: PayloadPlan,
  upload: Upload<Result>,
): Promise<BodyDigests> {
  try {
    await receivePayload(request, plan, (chunk) => upload.write(chunk));
    const digests = await upload.finish();
    checkDigests(request.fields, plan, digests);
    return digests;
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

/** Receives the document of a request, verified like the body of an object. */
export async function receiveDocument(
  { request, payload: mode, tenant }: OperationContext,
  options: { bytesMax?: number; ignoresChecksum?: boolean } = {},
): Promise<Buffer> {
  const { bytesMax = DOCUMENT_BYTES_MAX, ignoresChecksum = false } = options;
  const plan = planPayload(request, mode, ignoresChecksum);
  checkDocumentCoding(request.fields);
  if (plan.contentLength > bytesMax) throw new S3Error("MaxMessageLengthExceeded");
  const pieces: Buffer[] = [];
  await receivePayload(request, plan, (chunk) => {
    request.hold(chunk.length, tenant);
    pieces.push(Buffer.from(chunk));
  });
  const body = Buffer.concat(pieces);
  if (body.length !== plan.contentLength) throw new S3Error("IncompleteBody");
  if (plan.mode.kind === "signed" && hashHex(body) !== plan.mode.sha256) {
    throw new S3Error("XAmzContentSHA256Mismatch");
  }
  if (
    plan.contentMd5 !== undefined &&
    !createHash("md5").update(body).digest().equals(plan.contentMd5)
  ) {
    throw new S3Error("BadDigest");
  }
  const { checksum } = plan;
  if (checksum !== undefined) {
    const value = readChecksumClaim(request.fields, [])?.value;
    const computed = computeChecksum(checksum.algorithm, body).toString("base64");
    if (computed !== value) throw new S3Error("BadDigest");
  }
  return body;
}

async function receivePayload(
  request: OperationRequest,
  plan: PayloadPlan,
  write: (chunk: Buffer) => Promise<void> | void | undefined,
): Promise<void> {
  const { mode } = plan;
  if (mode.kind !== "signed-chunks" && mode.kind !== "unsigned-chunks") {
    await request.body.receive(write, OBJECT_BYTES_MAX);
    return;
  }
  const decoder = new AwsChunkedDecoder({
    seed: mode.kind === "signed-chunks" ? mode.seed : undefined,
    trailerNames: plan.trailerNames,
    decodedLength: plan.contentLength,
  });
  const runs: Buffer[] = [];
  await request.body.receive((chunk) => {
    decoder.execute(chunk, (data) => runs.push(data));
    return writeRuns(runs, write);
  }, OBJECT_BYTES_MAX + CODING_BYTES_MAX);
  for (const [name, value] of decoder.finish()) request.fields.addTrailer(name, value);
}

// Synchronous unless it has to wait.
function writeRuns(
  runs: Buffer[],
  write: (chunk: Buffer) => Promise<void> | void | undefined,
): Promise<void> | undefined {
  while (runs.length > 0) {
    const waited = write(runs.shift()!);
    if (waited === undefined) continue;
    for (const [index, run] of runs.entries()) runs[index] = Buffer.from(run);
    return waited.then(() => writeRuns(runs, write));
  }
  return undefined;
}

/** Throws BadDigest or XAmzContentSHA256Mismatch if the body does not match its description. */
export function checkDigests(fields: RequestFields, plan: PayloadPlan, digests: BodyDigests): void {
  const { mode, contentMd5, checksum } = plan;
  if (mode.kind === "signed" && digests.checksums.SHA256?.toString("hex") !== mode.sha256) {
    throw new S3Error("XAmzContentSHA256Mismatch", {
      elements: [["ClientComputedContentSHA256", mode.sha256]],
    });
  }
  if (contentMd5 !== undefined && !contentMd5.equals(digests.md5)) throw new S3Error("BadDigest");
  if (checksum === undefined) return;
  // The trailer has been added to the headers by now.
  const expected = checksum.value ?? readChecksumClaim(fields, [])?.value;
  const computed = digests.checksums[checksum.algorithm]?.toString("base64");
  if (expected !== computed) {
    throw new S3Error(
      "BadDigest",
      `The ${checksum.algorithm} you specified did not match the calculated checksum.`,
    );
  }
}

function readTrailerNames(fields: RequestFields): string[] {
  const text = fields.get("x-amz-trailer");
  if (text === undefined) return [];
  const names = text.split(",").map((name) => foldName(name.trim().toLowerCase()));
  const known = names.every((name) => name.startsWith("x-amz-checksum-"));
  if (names.length > TRAILERS_MAX || !known) {
    throw new S3Error(
      "InvalidRequest",
      "The value specified in the x-amz-trailer header is not supported",
    );
  }
  return names;
}

function readContentMd5(fields: RequestFields): Buffer | undefined {
  const text = fields.get("content-md5");
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text, "base64");
  if (bytes.length !== 16 || bytes.toString("base64") !== text) throw new S3Error("InvalidDigest");
  return bytes;
}

// Of an object, the field is metadata; a document would not be read (RFC 9110 section 15.5.16).
function checkDocumentCoding(fields: RequestFields): void {
  const codings = (fields.get("content-encoding") ?? "").toLowerCase().split(",");
  if (codings.every((name) => ["", "identity", "aws-chunked"].includes(name.trim()))) return;
  throw new S3Error("UnsupportedMediaType", { headers: [["Accept-Encoding", "identity"]] });
}

function isAwsChunked(fields: RequestFields): boolean {
  return (fields.get("content-encoding") ?? "")
    .split(",")
    .some((name) => name.trim().toLowerCase() === "aws-chunked");
}
