// JSON documents of subresources that S3 does not have: strict, with an entity tag for conditional changes.
import { createHash } from "node:crypto";
import { parseJson } from "@platform/kernel/config";
import type { z } from "zod";
import { S3Error } from "../model/s3-error.ts";
import type { Header, S3Answer } from "./answer.ts";
import { getBucket, type OperationContext } from "./context.ts";

/** Parses a body and validates it. Throws InvalidArgument with the place of the fault. */
export function readJsonDocument<Schema extends z.ZodType>(
  body: Buffer,
  schema: Schema,
): z.infer<Schema> {
  let value: unknown;
  try {
    ({ value } = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(body)));
  } catch (error) {
    throw new S3Error("InvalidRequest", {
      message: `The body is not a JSON document: ${error instanceof Error ? error.message : ""}`,
      cause: error,
    });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = issue!.path.map(String).join(".");
  const at = place === "" ? "" : `${place}: `;
  throw new S3Error("InvalidArgument", `${at}${issue!.message}`);
}

/** 200 with a JSON document. */
export function answerJson(document: object, headers: readonly Header[] = []): S3Answer {
  const body = JSON.stringify(document);
  return { status: 200, headers: [["Content-Type", "application/json"], ...headers], body };
}

/** The entity tag of a document, in quotes. */
export function tagDocument(document: object): string {
  const digest = createHash("sha256").update(JSON.stringify(document)).digest("hex");
  return `"${digest.slice(0, 32)}"`;
}

/**
 * The bucket that a conditional change of a document requires; undefined without a condition. Throws PreconditionFailed if the
 * document is another one.
 */
export function requireMatch(context: OperationContext, document: object | undefined) {
  const wanted = context.fields.get("if-match");
  if (wanted === undefined) return context.expectedBucket;
  if (document === undefined || (wanted !== "*" && wanted !== tagDocument(document))) {
    throw new S3Error("PreconditionFailed", { elements: [["Condition", "If-Match"]] });
  }
  return getBucket(context);
}
