// The query of a request, in one pass over its parameters: those of a presigned signature are told apart from the others.
import { canonicalizeQuery, parseQuery, type QueryPair } from "./uri.ts";

/** Parameters of a URL that is presigned with Signature Version 4, without their prefix. */
export type PresignName =
  | "Algorithm"
  | "Content-Sha256"
  | "Credential"
  | "Date"
  | "Expires"
  | "Security-Token"
  | "SignedHeaders"
  | "Signature";

/** Those parameters, in either spelling. */
export type PresignedParameters = Partial<
  Record<PresignName, { pair: QueryPair; isRepeated: boolean }>
>;

/** True for those that a header can stand for: they are parameters of the request as well. */
const PRESIGN_NAMES: Readonly<Record<PresignName, boolean>> = {
  Algorithm: false,
  "Content-Sha256": true,
  Credential: false,
  Date: false,
  Expires: false,
  "Security-Token": true,
  SignedHeaders: false,
  Signature: false,
};
const PRESIGN_PARAMETERS: ReadonlyMap<string, { name: PresignName; isField: boolean }> = new Map(
  Object.entries(PRESIGN_NAMES).flatMap(([name, isField]) => {
    const parameter = { name: name as PresignName, isField };
    return [
      [`X-Amz-${name}`, parameter],
      [`X-Store-${name}`, parameter],
    ] as const;
  }),
);

/** Parameters that are their own canonical form: names without escapes, values with escapes of ASCII only. */
const CANONICAL =
  /^(?:[A-Za-z0-9\-._~]+=(?:[A-Za-z0-9\-._~]|%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]))*(?:&|$))*$/;

/** Query parameters by name. If a name repeats, its first value counts. */
export class RequestQuery {
  readonly pairs: readonly QueryPair[];
  /** All but those that only a signature of Version 4 uses. */
  readonly others: readonly QueryPair[];
  /** Parameters of a signature of Version 4; `undefined` if there are none. */
  readonly presigned: PresignedParameters | undefined;
  /** It has parameters of a signature of Version 2. */
  readonly isOlder: boolean;
  readonly #raw: string | undefined;
  #byName: ReadonlyMap<string, string> | undefined;

  /** `raw` is the text that the pairs were parsed from, if there is one. */
  constructor(pairs: readonly QueryPair[], raw?: string) {
    this.pairs = pairs;
    this.#raw = raw;
    let presigned: PresignedParameters | undefined;
    let isOlder = false;
    const others: QueryPair[] = [];
    for (const pair of pairs) {
      const parameter = PRESIGN_PARAMETERS.get(pair[0]);
      if (parameter === undefined) {
        isOlder ||= pair[0] === "AWSAccessKeyId" || pair[0] === "Signature";
      } else {
        presigned ??= {};
        const before = presigned[parameter.name];
        if (before === undefined) presigned[parameter.name] = { pair, isRepeated: false };
        else before.isRepeated = true;
        if (!parameter.isField) continue;
      }
      others.push(pair);
    }
    this.others = others;
    this.presigned = presigned;
    this.isOlder = isOlder;
  }

  /** True if it is the query of a presigned URL. */
  get isPresigned(): boolean {
    return this.presigned?.Signature !== undefined || this.has("AWSAccessKeyId");
  }

  /** A parameter, unless only a signature of Version 4 uses it. */
  get(name: string): string | undefined {
    if (this.others.length === 0) return undefined;
    this.#byName ??= new Map(this.others.toReversed());
    return this.#byName.get(name);
  }

  /** True if `get` returns a value. */
  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** The signed query, as `canonicalizeQuery`: mostly the text as it was sent. */
  canonicalize(skip?: string): string {
    const raw = this.#raw;
    if (raw === undefined || raw.endsWith("&") || !this.#isSorted(skip) || !CANONICAL.test(raw)) {
      return canonicalizeQuery(this.pairs, skip);
    }
    // Names have no escapes and occur once, and values no `=`.
    const from = skip === undefined ? -1 : `&${raw}`.indexOf(`&${skip}=`);
    if (from < 0) return raw;
    const next = raw.indexOf("&", from);
    if (next >= 0) return raw.slice(0, from) + raw.slice(next + 1);
    return raw.slice(0, Math.max(0, from - 1));
  }

  // By name, each of which occurs once. Clients append `skip`, the signature, to the parameters that they have signed.
  #isSorted(skip: string | undefined): boolean {
    let before = "";
    let isSkipped = false;
    for (const [name] of this.pairs) {
      if (name === skip) {
        if (isSkipped) return false;
        isSkipped = true;
        continue;
      }
      if (name <= before) return false;
      before = name;
    }
    return true;
  }
}

/** Parses a raw query. Throws InvalidURI. */
export function readQuery(raw: string): RequestQuery {
  return new RequestQuery(parseQuery(raw), raw);
}
