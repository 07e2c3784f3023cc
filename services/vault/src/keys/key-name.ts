// Names of keys: ids, aliases and ARNs, also in the forms of the cloud.
import { StoreError } from "../model/store-error.ts";

/** The alias of the key that is used if none is named. It is created when it is needed. */
export const DEFAULT_ALIAS = "aws/s3";

const PARTITIONS: ReadonlySet<string> = new Set([
  "aws",
  "aws-cn",
  "aws-us-gov",
  "objstore",
  "store",
]);
const REFERENCE_CHARS_MAX = 2_048;

/** A reference to a key. */
export type KeyReference = { readonly id: string } | { readonly alias: string };

/** The ARN of a key, as answers show it. */
export function formatKeyArn(id: string): string {
  return `arn:objstore:kms:::key/${id}`;
}

/** Reads `ID`, `alias/NAME`, and ARNs of both in any region and account. Throws `KMS.NotFoundException` for other texts. */
export function parseKeyReference(text: string): KeyReference {
  const name = text.length > REFERENCE_CHARS_MAX ? "" : cutArn(text);
  if (name?.startsWith("alias/") === true && isName(name.slice(6))) return { alias: name.slice(6) };
  const isArn = name !== text;
  const id = isArn ? (name?.startsWith("key/") === true ? name.slice(4) : "") : text;
  if (/^[A-Za-z0-9-]{1,128}$/.test(id)) return { id };
  throw new StoreError("KMS.NotFoundException", `Invalid keyId '${text.slice(0, 128)}'`);
}

// The part of an ARN after the account; other texts as they are.
function cutArn(text: string): string | undefined {
  const [arn, partition = "", service, , , ...rest] = text.split(":");
  if (arn !== "arn") return text;
  return PARTITIONS.has(partition) && service === "kms" ? rest.join(":") : undefined;
}

function isName(text: string): boolean {
  return /^[A-Za-z0-9/_-]{1,250}$/.test(text);
}
