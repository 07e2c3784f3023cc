// Reads the bodies of answers within bounds.
import { OutgoingError, type OutgoingAnswer } from "@platform/http1";
import { S3ClientError, type S3Operation } from "./error.ts";

/** Reads at most `bytesMax` bytes as text; more, or a compressed body, is `malformed_answer`. */
export async function readText(
  answer: OutgoingAnswer,
  operation: S3Operation,
  bytesMax: number,
): Promise<string> {
  checkEncoding(answer, operation);
  try {
    return (await answer.readAll(bytesMax)).toString("utf8");
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    throw malformed(operation, `a document of more than ${bytesMax} bytes`);
  }
}

/** Fills `target` with the whole body; fewer bytes are `truncated`, more `malformed_answer`. */
export async function readExactly(
  answer: OutgoingAnswer,
  operation: S3Operation,
  target: Buffer,
): Promise<void> {
  checkEncoding(answer, operation);
  let bytes: number;
  try {
    bytes = await answer.readInto(target);
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    throw malformed(operation, "more bytes than requested");
  }
  if (bytes === target.length) return;
  const text = `the answer ends after ${bytes} of ${target.length} bytes`;
  throw new S3ClientError("truncated", text, { operation });
}

/** An error for an answer that is not what S3 answers to the request. */
export function malformed(operation: S3Operation, what: string, status?: number): S3ClientError {
  return new S3ClientError("malformed_answer", `malformed answer: ${what}`, { operation, status });
}

function isTooLarge(error: unknown): boolean {
  return error instanceof OutgoingError && error.kind === "content-too-large";
}

function checkEncoding(answer: OutgoingAnswer, operation: S3Operation): void {
  const encoding = answer.headers["content-encoding"];
  // Objects may be stored with an encoding of their own; a store must not add one.
  if (encoding === undefined || encoding === "identity" || encoding === "aws-chunked") return;
  throw malformed(operation, "it is compressed");
}
