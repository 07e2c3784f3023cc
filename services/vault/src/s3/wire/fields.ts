// A request's field section with the `x-store-` names folded into the `x-amz-` names that they stand for.
import { S3Error } from "../../model/s3-error.ts";

const STORE = "x-store-";
const AMZ = "x-amz-";

/**
 * Fields of one request, names in lower case. `get` answers under the `x-amz-` name whichever of the two came;
 * `getRaw` answers under the name as it was sent, which is what signatures cover.
 */
export class RequestFields {
  readonly #raw = new Map<string, string>();
  /** The same table as `#raw` as long as no name stands for another. */
  #folded = this.#raw;
  /** The names of all `x-amz-` and `x-store-` fields as they were sent: each must be signed. */
  readonly extensionNames: string[] = [];

  #conflict: S3Error | undefined;

  constructor(pairs: Iterable<readonly [name: string, value: string]>) {
    let hasAlias = false;
    for (const [given, value] of pairs) {
      const name = given.toLowerCase();
      const before = this.#raw.get(name);
      this.#raw.set(name, before === undefined ? value : `${before},${value}`);
      if (before !== undefined) continue;
      const isAlias = name.startsWith(STORE);
      hasAlias ||= isAlias;
      if (isAlias || name.startsWith(AMZ)) this.extensionNames.push(name);
    }
    if (!hasAlias) return;
    this.#folded = new Map();
    for (const [name, value] of this.#raw) {
      this.#conflict = this.#fold(foldName(name), value) ?? this.#conflict;
    }
  }

  /** Throws InvalidRequest where a name came in both spellings with different values: call it before anything is read. */
  requireConsistent(): void {
    if (this.#conflict !== undefined) throw this.#conflict;
  }

  get(name: string): string | undefined {
    return this.#folded.get(name);
  }

  /** As `get`, but undefined where the field is empty: older SDKs send settings that were left empty. */
  getFilled(name: string): string | undefined {
    const value = this.#folded.get(name);
    return value === "" ? undefined : value;
  }

  has(name: string): boolean {
    return this.#folded.has(name);
  }

  getRaw(name: string): string | undefined {
    return this.#raw.get(name);
  }

  /** Adds a trailer of the body; the same folding, the same conflict. */
  addTrailer(given: string, value: string): void {
    const name = foldName(given.toLowerCase());
    this.#separate();
    const conflict = this.#fold(name, value);
    if (conflict !== undefined) throw conflict;
  }

  /** Adds a field that a presigned URL brings in its query; one that was sent as a field counts more. */
  addParameter(given: string, value: string): void {
    const name = foldName(given);
    if (this.#folded.has(name)) return;
    this.#separate();
    this.#folded.set(name, value);
  }

  /** All fields under their folded names. */
  entries(): IterableIterator<[string, string]> {
    return this.#folded.entries();
  }

  // What is added was not sent as a field: signatures do not cover it as one.
  #separate(): void {
    if (this.#folded === this.#raw) this.#folded = new Map(this.#raw);
  }

  #fold(name: string, value: string): S3Error | undefined {
    const before = this.#folded.get(name);
    this.#folded.set(name, value);
    if (before === undefined || before === value) return undefined;
    return new S3Error("InvalidRequest", {
      message: `The fields ${name} and ${STORE}${name.slice(AMZ.length)} contradict each other.`,
    });
  }
}

/** A query, decoded. */
type Query = readonly (readonly [name: string, value: string])[];

/** Whether a query is that of a presigned URL. */
export function isPresigned(query: Query): boolean {
  return query.some(([name]) => SIGNATURE_PARAMETERS.has(name));
}

/**
 * The field that a parameter of a presigned URL stands for, lower case: `x-amz-` fields and those that describe a body,
 * in any case of letters. Undefined for other parameters, those of the signature among them.
 */
export function toPresignedField(parameter: string): string | undefined {
  const name = parameter.toLowerCase();
  if (BODY_FIELDS.has(name)) return name;
  const extension = /^x-(?:amz|store)-([a-z0-9-]+)$/.exec(name)?.[1];
  return extension === undefined || SIGNATURE_NAMES.has(extension) ? undefined : name;
}

/**
 * Takes fields that a presigned URL brings in its query, as SDKs put them there for clients that cannot send them: they
 * are signed with it. Checksums are not taken, as S3 does not: SDKs presign that of an empty body.
 */
export function addPresignedFields(fields: RequestFields, query: Query): void {
  if (!isPresigned(query)) return;
  for (const [parameter, value] of query) {
    const name = toPresignedField(parameter);
    if (name === undefined || /^x-(?:amz|store)-(?:sdk-)?checksum-/.test(name)) continue;
    fields.addParameter(name, Buffer.from(value, "utf8").toString("latin1"));
  }
}

const SIGNATURE_PARAMETERS: ReadonlySet<string> = new Set([
  "AWSAccessKeyId",
  "X-Amz-Signature",
  "X-Store-Signature",
]);
/** `Expires` is not among them: in a URL it is the signature's. */
const BODY_FIELDS: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-md5",
  "content-type",
]);
/** What follows `x-amz-` in the names that are the signature's own. */
const SIGNATURE_NAMES: ReadonlySet<string> = new Set([
  "algorithm",
  "credential",
  "date",
  "expires",
  "signature",
  "signedheaders",
]);

/** A field's value as UTF-8; values are read as latin1, a character for each byte. */
export function decodeFieldText(value: string): string {
  return Buffer.from(value, "latin1").toString("utf8");
}

/** The `x-amz-` name of a field's lower-case name. */
export function foldName(name: string): string {
  return name.startsWith(STORE) ? AMZ + name.slice(STORE.length) : name;
}

/** The `x-store-` name that stands beside an `x-amz-` name in answers; undefined for other names. */
export function toStoreName(name: string): string | undefined {
  return name.startsWith(AMZ) ? STORE + name.slice(AMZ.length) : undefined;
}
