// Limits of keys, tags and metadata.
import { StoreError } from "../model/store-error.ts";
import type { ObjectAttributes } from "../model/object.ts";

/** Size limit of one put or one part. */
const BODY_BYTES_MAX = 5 * 1024 ** 3;

const KEY_BYTES_MAX = 1024;
const TAGS_MAX = 10;
const TAG_KEY_CHARACTERS_MAX = 128;
const TAG_VALUE_CHARACTERS_MAX = 256;
const METADATA_BYTES_MAX = 8 * 1024;

/** Throws `KeyTooLongError` or `InvalidArgument`. */
export function requireKey(key: string): void {
  if (key.length === 0 || !key.isWellFormed()) {
    throw new StoreError("InvalidArgument", "An object key must be text of at least one character");
  }
  // A UTF-16 unit has at least one byte and at most three bytes.
  if (key.length * 3 > KEY_BYTES_MAX && Buffer.byteLength(key) > KEY_BYTES_MAX) {
    throw new StoreError("KeyTooLongError", "Your key is too long", { key: key.slice(0, 64) });
  }
}

/** Throws `EntityTooLarge` or `InvalidArgument`. */
export function requireContentLength(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    throw new StoreError("InvalidArgument", "The length of a body is a number of bytes from 0 on");
  }
  if (bytes > BODY_BYTES_MAX) {
    throw new StoreError("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
  }
}

/** Throws `InvalidTag`. */
export function requireTags(tags: Readonly<Record<string, string>>): void {
  const entries = Object.entries(tags);
  if (entries.length > TAGS_MAX) {
    throw new StoreError("InvalidTag", `Object tags cannot be greater than ${TAGS_MAX}`);
  }
  for (const [name, value] of entries) {
    const fits =
      name.length > 0 &&
      name.length <= TAG_KEY_CHARACTERS_MAX &&
      value.length <= TAG_VALUE_CHARACTERS_MAX;
    if (!fits) throw new StoreError("InvalidTag", "A tag's key or value is empty or too long");
  }
}

/** Validates the attributes of a new object. Throws the S3 error of the first violation. */
export function requireAttributes(attributes: ObjectAttributes): void {
  if (attributes.tags !== undefined) requireTags(attributes.tags);
  if (attributes.metadata === undefined) return;
  let bytes = 0;
  for (const [name, value] of Object.entries(attributes.metadata)) {
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > METADATA_BYTES_MAX) {
    throw new StoreError(
      "InvalidArgument",
      "Your metadata headers exceed the maximum allowed size",
    );
  }
}
