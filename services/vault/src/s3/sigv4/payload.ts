// The coverage of a body by its signature (`x-amz-content-sha256`).
import type { ChunkSeed } from "@platform/s3/signature";
import { S3Error } from "../../model/s3-error.ts";

/** The modes of the "Authenticating Requests" pages. `trailer` is true if trailers follow the last chunk. */
export type PayloadMode =
  | { kind: "signed"; sha256: string }
  | { kind: "unsigned" }
  | { kind: "unsigned-chunks"; trailer: true }
  | { kind: "signed-chunks"; trailer: boolean; seed: ChunkSeed };

/** A parsed `x-amz-content-sha256`, without the data of the signature. */
export type PayloadClaim =
  | { kind: "signed"; sha256: string }
  | { kind: "unsigned" }
  | { kind: "unsigned-chunks" }
  | { kind: "signed-chunks"; trailer: boolean };

/** Parses `x-amz-content-sha256`. Throws InvalidArgument or NotImplemented. */
export function readPayloadClaim(value: string): PayloadClaim {
  switch (value) {
    case "UNSIGNED-PAYLOAD":
      return { kind: "unsigned" };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
      return { kind: "signed-chunks", trailer: false };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
      return { kind: "signed-chunks", trailer: true };
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return { kind: "unsigned-chunks" };
    default:
  }
  if (/^[0-9a-f]{64}$/.test(value)) return { kind: "signed", sha256: value };
  if (value.startsWith("STREAMING-AWS4-ECDSA")) {
    throw new S3Error("NotImplemented", "Signature Version 4A is not implemented.");
  }
  throw new S3Error(
    "InvalidArgument",
    "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.",
  );
}
