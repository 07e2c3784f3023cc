// Reads the bodies of answers within bounds.
import type { IncomingMessage } from "node:http";
import { S3ClientError, type S3Operation } from "./error.ts";

/** Reads at most `bytesMax` bytes as text; more, or a compressed body, is `malformed_answer`. */
export async function readText(
  answer: IncomingMessage,
  operation: S3Operation,
  bytesMax: number,
): Promise<string> {
  checkEncoding(answer, operation);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of pieces(answer, operation)) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw malformed(operation, `a document of more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Reads exactly `bytes` bytes; fewer are `truncated`, more `malformed_answer`. */
export async function readExactly(
  answer: IncomingMessage,
  operation: S3Operation,
  bytes: number,
): Promise<Buffer> {
  checkEncoding(answer, operation);
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for await (const chunk of pieces(answer, operation)) {
    if (at + chunk.length > bytes) throw malformed(operation, "more bytes than requested");
    at += chunk.copy(whole, at);
  }
  if (at < bytes) {
    throw new S3ClientError("truncated", `the answer ends after ${at} of ${bytes} bytes`, {
      operation,
    });
  }
  return whole;
}

/** An error for an answer that is not what S3 answers to the request. */
export function malformed(operation: S3Operation, what: string, status?: number): S3ClientError {
  return new S3ClientError("malformed_answer", `malformed answer: ${what}`, { operation, status });
}

async function* pieces(answer: IncomingMessage, operation: S3Operation): AsyncGenerator<Buffer> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ECONNRESET" || !answer.aborted) throw error;
    throw new S3ClientError("truncated", "the answer ends early", { operation, cause: error });
  }
}

function checkEncoding(answer: IncomingMessage, operation: S3Operation): void {
  const encoding = answer.headers["content-encoding"];
  // Objects may be stored with an encoding of their own; a store must not add one.
  if (encoding === undefined || encoding === "identity" || encoding === "aws-chunked") return;
  throw malformed(operation, "it is compressed");
}
