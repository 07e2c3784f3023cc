// Headers of server-side encryption: SSE-S3, and SSE-C with the customer's key.
import { createHash } from "node:crypto";
import type { Bucket } from "../../model/bucket.ts";
import type { EncryptionRequest, ObjectEncryption } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { Header } from "../answer.ts";
import type { RequestFields } from "../wire/fields.ts";

const SSE = "x-amz-server-side-encryption";
const SSE_KEY_ID = "x-amz-server-side-encryption-aws-kms-key-id";
const WRITE_FIELDS = [SSE, SSE_KEY_ID, `${SSE}-context`, `${SSE}-bucket-key-enabled`];
const CUSTOMER = nameCustomerFields("x-amz-server-side-encryption-customer");
const COPY_CUSTOMER = nameCustomerFields("x-amz-copy-source-server-side-encryption-customer");

function nameCustomerFields(prefix: string) {
  return { algorithm: `${prefix}-algorithm`, key: `${prefix}-key`, keyMd5: `${prefix}-key-md5` };
}

/** The encryption that a put requests, or the bucket's default. */
export function readEncryption(
  fields: RequestFields,
  bucket: Bucket,
): EncryptionRequest | undefined {
  const customer = readCustomerKey(fields);
  const algorithm = fields.get(SSE);
  if (fields.has(SSE_KEY_ID) && algorithm?.startsWith("aws:") !== true) {
    throw new S3Error(
      "InvalidArgument",
      "Server Side Encryption with AWS KMS managed key requires HTTP header x-amz-server-side-encryption : aws:kms",
    );
  }
  if (customer !== undefined) {
    if (algorithm !== undefined) {
      throw new S3Error(
        "InvalidArgument",
        "Server Side Encryption with Customer provided key is incompatible with the encryption method specified",
      );
    }
    return { type: "SSE-C", key: customer };
  }
  if (algorithm === undefined) {
    return bucket.settings.encryption === undefined ? undefined : { type: "SSE-S3" };
  }
  if (algorithm === "AES256") return { type: "SSE-S3" };
  if (algorithm.startsWith("aws:"))
    throw new S3Error(
      "NotImplemented",
      "Encryption with a key management service is not implemented.",
    );
  throw new S3Error("InvalidEncryptionAlgorithmError");
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
  if (encryption === undefined) return [];
  if (encryption.type === "SSE-S3") return [[SSE, "AES256"]];
  return [
    ["x-amz-server-side-encryption-customer-algorithm", "AES256"],
    ["x-amz-server-side-encryption-customer-key-MD5", encryption.keyMd5],
  ];
}
