// Headers of server-side encryption: SSE-S3, SSE-KMS with a named key, and SSE-C with the customer's key.
// Source: "Using server-side encryption with AWS KMS keys (SSE-KMS)".
import { createHash } from "node:crypto";
import type { Bucket } from "../../model/bucket.ts";
import type { EncryptionRequest, ObjectEncryption } from "../../model/object.ts";
import { formatKeyArn } from "../../keys/key-name.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { Header } from "../answer.ts";
import { checkKeyUse } from "../authorization.ts";
import type { OperationContext } from "../context.ts";
import type { RequestFields } from "../wire/fields.ts";

const SSE = "x-amz-server-side-encryption";
const SSE_KEY_ID = `${SSE}-aws-kms-key-id`;
const SSE_CONTEXT = `${SSE}-context`;
const SSE_BUCKET_KEY = `${SSE}-bucket-key-enabled`;
const WRITE_FIELDS = [SSE, SSE_KEY_ID, SSE_CONTEXT, SSE_BUCKET_KEY];
const CONTEXT_CHARS_MAX = 8_192;
const CUSTOMER = nameCustomerFields("x-amz-server-side-encryption-customer");
const COPY_CUSTOMER = nameCustomerFields("x-amz-copy-source-server-side-encryption-customer");

function nameCustomerFields(prefix: string) {
  return { algorithm: `${prefix}-algorithm`, key: `${prefix}-key`, keyMd5: `${prefix}-key-md5` };
}

/**
 * The encryption that a request for a new object asks for, or the default of its bucket. Throws AccessDenied for keys that the
 * caller may not use.
 */
export function readEncryption(
  context: OperationContext,
  fields: RequestFields,
  bucket: Bucket,
): EncryptionRequest | undefined {
  const customer = readCustomerKey(fields);
  const algorithm = fields.get(SSE);
  refuseKeyFields(fields, algorithm);
  if (customer !== undefined) {
    if (algorithm !== undefined) {
      throw new S3Error(
        "InvalidArgument",
        "Server Side Encryption with Customer provided key is incompatible with the encryption method specified",
      );
    }
    return { type: "SSE-C", key: customer };
  }
  const request =
    algorithm === undefined
      ? context.api.store.keys.chooseDefault(bucket.settings.encryption)
      : readAlgorithm(context, fields, algorithm, bucket);
  if (request?.type !== "SSE-KMS") return request;
  checkKeyUse(context, "kms:GenerateDataKey")(request.keyId);
  const bucketKey = readSwitch(fields);
  if (bucketKey === undefined) return request;
  const { bucketKey: _, ...rest } = request;
  return bucketKey ? { ...rest, bucketKey } : rest;
}

// Fields of a named key without the algorithm would be ignored.
function refuseKeyFields(fields: RequestFields, algorithm: string | undefined): void {
  if (algorithm?.startsWith("aws:") === true) return;
  if (!fields.has(SSE_KEY_ID) && !fields.has(SSE_CONTEXT)) return;
  throw new S3Error(
    "InvalidArgument",
    "Server Side Encryption with AWS KMS managed key requires HTTP header x-amz-server-side-encryption : aws:kms",
  );
}

function readAlgorithm(
  { api }: OperationContext,
  fields: RequestFields,
  algorithm: string,
  { settings }: Bucket,
): EncryptionRequest {
  switch (algorithm) {
    case "AES256":
      return { type: "SSE-S3" };
    case "aws:kms": {
      const keyId = api.store.keys.requireKey(fields.getFilled(SSE_KEY_ID));
      const context = readContext(fields.get(SSE_CONTEXT));
      return {
        type: "SSE-KMS",
        keyId,
        ...(context === undefined ? {} : { context }),
        ...(settings.encryption?.bucketKeyEnabled === true ? { bucketKey: true } : {}),
      };
    }
    case "aws:kms:dsse":
    case "aws:fsx":
      throw new S3Error("NotImplemented", `Encryption with ${algorithm} is not implemented.`);
    default:
      throw new S3Error("InvalidEncryptionAlgorithmError");
  }
}

// In canonical form: it is authenticated, and compared by copies.
function readContext(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const refuse = (): S3Error =>
    new S3Error(
      "InvalidArgument",
      "The header 'x-amz-server-side-encryption-context' shall be Base64-encoded UTF-8 string holding JSON which represents a string-string map",
    );
  if (text.length > CONTEXT_CHARS_MAX || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw refuse();
  let value: unknown;
  try {
    value = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "base64")),
    );
  } catch {
    throw refuse();
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw refuse();
  const entries = Object.entries(value);
  if (entries.some(([, one]) => typeof one !== "string")) throw refuse();
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return sorted.length === 0 ? undefined : JSON.stringify(Object.fromEntries(sorted));
}

function readSwitch(fields: RequestFields): boolean | undefined {
  const text = fields.get(SSE_BUCKET_KEY)?.toLowerCase();
  if (text === undefined || text === "true" || text === "false") return text && text === "true";
  throw new S3Error("InvalidArgument", {
    message: "The value of x-amz-server-side-encryption-bucket-key-enabled must be true or false.",
    elements: [
      ["ArgumentName", SSE_BUCKET_KEY],
      ["ArgumentValue", text.slice(0, 64)],
    ],
  });
}

/** Reads have no encryption headers: throws InvalidArgument for headers of writes. */
export function refuseWriteEncryption(fields: RequestFields): void {
  const name = WRITE_FIELDS.find((field) => fields.has(field));
  if (name === undefined) return;
  throw new S3Error("InvalidArgument", {
    message: `${name} header is not supported for this operation.`,
    elements: [
      ["ArgumentName", name],
      ["ArgumentValue", (fields.get(name) ?? "").slice(0, 256)],
    ],
  });
}

/** The customer's key of a request; `undefined` without one. Throws InvalidArgument for an incomplete or wrong key. */
export function readCustomerKey(fields: RequestFields, isSource = false): Buffer | undefined {
  const names = isSource ? COPY_CUSTOMER : CUSTOMER;
  const algorithm = fields.get(names.algorithm);
  const text = fields.get(names.key);
  const md5 = fields.get(names.keyMd5);
  if (algorithm === undefined && text === undefined && md5 === undefined) return undefined;
  if (algorithm !== "AES256") {
    throw new S3Error(
      algorithm === undefined ? "InvalidArgument" : "InvalidEncryptionAlgorithmError",
      "Requests specifying Server Side Encryption with Customer provided keys must provide a valid encryption algorithm.",
    );
  }
  if (text === undefined) {
    throw new S3Error(
      "InvalidArgument",
      "Requests specifying Server Side Encryption with Customer provided keys must provide an appropriate secret key.",
    );
  }
  if (md5 === undefined) {
    throw new S3Error(
      "InvalidArgument",
      "Requests specifying Server Side Encryption with Customer provided keys must provide the client calculated MD5 of the secret key.",
    );
  }
  const key = Buffer.from(text, "base64");
  if (key.length !== 32) {
    throw new S3Error("InvalidArgument", "The secret key was invalid for the specified algorithm.");
  }
  if (createHash("md5").update(key).digest("base64") !== md5) {
    throw new S3Error(
      "InvalidArgument",
      "The calculated MD5 hash of the key did not match the hash that was provided.",
    );
  }
  return key;
}

/** The customer's key as an encryption request to the store. */
export function readPartEncryption(
  fields: RequestFields,
): Extract<EncryptionRequest, { type: "SSE-C" }> | undefined {
  const key = readCustomerKey(fields);
  return key === undefined ? undefined : { type: "SSE-C", key };
}

/** The encryption headers of an answer. */
export function getEncryptionHeaders(encryption: ObjectEncryption | undefined): Header[] {
  switch (encryption?.type) {
    case undefined:
      return [];
    case "SSE-S3":
      return [[SSE, "AES256"]];
    case "SSE-KMS":
      return [
        [SSE, "aws:kms"],
        [SSE_KEY_ID, formatKeyArn(encryption.keyId)],
        ...(encryption.bucketKey === true ? [[SSE_BUCKET_KEY, "true"] as const] : []),
      ];
    case "SSE-C":
      return [
        ["x-amz-server-side-encryption-customer-algorithm", "AES256"],
        ["x-amz-server-side-encryption-customer-key-MD5", encryption.keyMd5],
      ];
    default:
      return encryption satisfies never;
  }
}

/** The encryption headers of the answer to a write of a whole object, which shows the encryption context. */
export function getNewEncryptionHeaders(encryption: ObjectEncryption | undefined): Header[] {
  const headers = getEncryptionHeaders(encryption);
  if (encryption?.type !== "SSE-KMS" || encryption.context === undefined) return headers;
  return [...headers, [SSE_CONTEXT, Buffer.from(encryption.context).toString("base64")]];
}
