// The headers of a request, with `x-store-` names folded into their `x-amz-` names.
import { S3Error } from "../../model/s3-error.ts";
import type { RequestQuery } from "./query.ts";

const STORE = "x-store-";
const AMZ = "x-amz-";

/**
 * The headers of a request, names in lower case. `get` finds either form of a name under its `x-amz-` name; `getRaw` uses
 * the name as sent, which signatures cover.
 */
export class RequestFields {
  readonly #raw = new Map<string, string>();
  /** The same table as `#raw` unless a name was folded. */
  #folded = this.#raw;
  /** The names of all `x-amz-` and `x-store-` headers as sent: each must be signed. */
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

  /** Throws InvalidRequest if both forms of a name have different values. Call it before reading headers. */
  requireConsistent(): void {
    if (this.#conflict !== undefined) throw this.#conflict;
  }

  get(name: string): string | undefined {
    return this.#folded.get(name);
  }

  /** As `get`, but `undefined` if the header is empty: older SDKs send empty settings. */
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

  /** Adds a trailer of the body, with the same folding and the same conflicts. */
  addTrailer(given: string, value: string): void {
    const name = foldName(given.toLowerCase());
    this.#separate();
    const conflict = this.#fold(name, value);
    if (conflict !== undefined) throw conflict;
  }

  /** Adds a header from the query of a presigned URL; a real header wins. */
  addParameter(given: string, value: string): void {
    const name = foldName(given);
    if (this.#folded.has(name)) return;
    this.#separate();
    this.#folded.set(name, value);
  }

  /** All headers under their folded names. */
  entries(): IterableIterator<[string, string]> {
    return this.#folded.entries();
  }

  // Added values are not headers, so signatures do not cover them as headers.
  #separate(): void {
    if (this.#folded === this.#raw) this.#folded = new Map(this.#raw);
  }

  #fold(name: string, value: string): S3Error | undefined {
    const before = this.#folded.get(name);
    this.#folded.set(name, value);
    if (before === undefined || before === value) return undefined;
    return new S3Error("InvalidRequest", {
      message: `The headers ${name} and ${STORE}${name.slice(AMZ.length)} contradict each other.`,
    });
  }
}

/**
 * The lower-case header that a parameter of a presigned URL stands for: `x-amz-` headers and those that describe a body, in
 * any case. `undefined` for other parameters, including those of the signature.
 */
export function toPresignedField(parameter: string): string | undefined {
  const name = parameter.toLowerCase();
  if (BODY_FIELDS.has(name)) return name;
  const extension = /^x-(?:amz|store)-([a-z0-9-]+)$/.exec(name)?.[1];
  return extension === undefined || SIGNATURE_NAMES.has(extension) ? undefined : name;
}

/**
 * Adds the headers in the query of a presigned URL, where SDKs put them for clients that cannot send them: they are signed
 * with it. Checksums are ignored as in S3, because SDKs presign the checksum of an empty body.
 */
export function addPresignedFields(fields: RequestFields, query: RequestQuery): void {
  if (query.others.length === 0 || !query.isPresigned) return;
  for (const [parameter, value] of query.others) {
    const name = toPresignedField(parameter);
    if (name === undefined || /^x-(?:amz|store)-(?:sdk-)?checksum-/.test(name)) continue;
    fields.addParameter(name, Buffer.from(value, "utf8").toString("latin1"));
  }
}

/** Without `Expires`, which in a URL belongs to the signature. */
const BODY_FIELDS: ReadonlySet<string> = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-md5",
  "content-type",
]);
/** Suffixes of `x-amz-` names that belong to the signature. */
const SIGNATURE_NAMES: ReadonlySet<string> = new Set([
  "algorithm",
  "credential",
  "date",
  "expires",
  "signature",
  "signedheaders",
]);

/** A header value as UTF-8; values are read as latin1, one character per byte. */
export function decodeFieldText(value: string): string {
  return Buffer.from(value, "latin1").toString("utf8");
}

/** The `x-amz-` form of a lower-case name. */
export function foldName(name: string): string {
  return name.startsWith(STORE) ? AMZ + name.slice(STORE.length) : name;
}

/** The `x-store-` form of an `x-amz-` name in answers; `undefined` for other names. */
export function toStoreName(name: string): string | undefined {
  return name.startsWith(AMZ) ? STORE + name.slice(AMZ.length) : undefined;
}
