// Request methods as small integers and interned strings.

/** Small integers for known methods; 0 for all other valid tokens. */
export const Method = {
  Other: 0,
  GET: 1,
  HEAD: 2,
  POST: 3,
  PUT: 4,
  DELETE: 5,
  CONNECT: 6,
  OPTIONS: 7,
  TRACE: 8,
  PATCH: 9,
  PROPFIND: 10,
  PROPPATCH: 11,
  MKCOL: 12,
  COPY: 13,
  MOVE: 14,
  LOCK: 15,
  UNLOCK: 16,
  REPORT: 17,
  SEARCH: 18,
  PURGE: 19,
  PRI: 20,
} as const;

/** One of the integers in `Method`. */
export type MethodId = (typeof Method)[keyof typeof Method];

const IDEMPOTENT_METHODS: readonly MethodId[] = [
  Method.GET,
  Method.HEAD,
  Method.PUT,
  Method.DELETE,
  Method.OPTIONS,
  Method.TRACE,
];
const IDEMPOTENT = Uint8Array.from(Object.values(Method), (id) =>
  IDEMPOTENT_METHODS.includes(id) ? 1 : 0,
);

const names: string[] = Object.keys(Method);
const spelled: Uint8Array[] = names.map((name) => Buffer.from(name));
const LONGEST = 9;
const byLength: number[][] = Array.from({ length: LONGEST + 1 }, (_, length) =>
  names.flatMap((name, id) => (id !== 0 && name.length === length ? [id] : [])),
);

/** The integer of the method at `bytes[start, end)`; methods are case-sensitive (RFC 9110 §9.1). */
export function findMethod(bytes: Uint8Array, start: number, end: number): MethodId {
  const length = end - start;
  if (
    length === 3 &&
    bytes[start] === 0x47 &&
    bytes[start + 1] === 0x45 &&
    bytes[start + 2] === 0x54
  ) {
    return Method.GET;
  }
  if (length > LONGEST) return Method.Other;
  for (const id of byLength[length]!) {
    const name = spelled[id]!;
    let at = 0;
    while (at < length && bytes[start + at] === name[at]) at++;
    if (at === length) return id as MethodId;
  }
  return Method.Other;
}

/** The method's name as an interned string; `undefined` for `Method.Other`. */
export function nameOfMethod(id: MethodId): string | undefined {
  return id === Method.Other ? undefined : names[id];
}

/** True if the method is idempotent (RFC 9110 §9.2.2). */
export function isIdempotent(id: MethodId): boolean {
  return IDEMPOTENT[id] === 1;
}
