// Keys of stored responses: route, address and target of a request, its caller, and the fields that select a variant.
//
//   route LF scheme and port LF host LF target [LF caller LF] [NUL names LF (value LF)…]
//
// NUL occurs in no target and in no field value: what a client sends in one part cannot look like another part.
import type { RequestHead } from "@platform/http1";
import { CACHE_KEY_BYTES_MAX, type CacheKey } from "../shared-state/index.ts";
import type { GateExchange } from "../exchange/exchange.ts";

const SEPARATOR = 0x0a;
const VARIANT = 0x00;
/** Stands for a field that the request does not have: no value contains this byte. */
const ABSENT = "\u0001";

/** Builds keys in one scratch buffer: a key is valid until the next one is built. */
export class CacheKeys {
  readonly #scratch = Buffer.alloc(CACHE_KEY_BYTES_MAX + 1);
  readonly #seed: number;
  #length = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** The key of a request; `undefined` if it is too long. `scope` is the caller whose responses are kept apart. */
  build(exchange: GateExchange, routeKey: string, scope: string): CacheKey | undefined {
    const { head, userData, forwardPath } = exchange;
    const { forwarding } = userData;
    this.#length = 0;
    this.#text(routeKey);
    this.#text(forwarding.origin);
    const resourceAt = this.#length;
    this.#text(forwarding.host.toLowerCase());
    if (forwardPath === null) this.#bytes(head.bytes, head.pathStart, head.targetEnd);
    else {
      this.#bytes(Buffer.from(forwardPath, "latin1"), 0, forwardPath.length);
      if (head.queryStart !== -1) this.#bytes(head.bytes, head.queryStart - 1, head.targetEnd);
    }
    // Without the route and the scheme: an unsafe request may pass another route for its method.
    const resource = this.#hash(this.#seed, resourceAt);
    if (scope !== "") {
      this.#byte(SEPARATOR);
      this.#text(scope);
    }
    return this.#finish(resource);
  }

  /** The key of the variant that these fields of the request select; `undefined` if it is too long. */
  select(key: CacheKey, head: RequestHead, names: string): CacheKey | undefined {
    this.#length = 0;
    this.#bytes(key.bytes, 0, key.bytes.length);
    this.#byte(VARIANT);
    this.#text(names);
    for (const name of names.split(",")) {
      const value = readSelecting(head, name);
      this.#text(name === "accept-encoding" ? value.toLowerCase().replaceAll(/\s/g, "") : value);
    }
    return this.#finish(key.resourceHash);
  }

  #finish(resourceHash: number): CacheKey | undefined {
    if (this.#length > CACHE_KEY_BYTES_MAX) return undefined;
    return {
      bytes: this.#scratch.subarray(0, this.#length),
      hashA: this.#hash(this.#seed),
      hashB: this.#hash(~this.#seed),
      resourceHash,
    };
  }

  #text(text: string): void {
    const space = CACHE_KEY_BYTES_MAX - this.#length;
    if (text.length < space) this.#scratch.write(text, this.#length, "latin1");
    this.#length += text.length;
    this.#byte(SEPARATOR);
  }

  #byte(byte: number): void {
    this.#scratch[Math.min(this.#length++, CACHE_KEY_BYTES_MAX)] = byte;
  }

  #bytes(bytes: Buffer, start: number, end: number): void {
    const size = end - start;
    if (this.#length + size <= CACHE_KEY_BYTES_MAX) {
      bytes.copy(this.#scratch, this.#length, start, end);
    }
    this.#length += size;
  }

  // FNV-1a with a final mix; equal hashes only cost a comparison.
  #hash(seed: number, start = 0): number {
    const bytes = this.#scratch;
    const end = Math.min(this.#length, CACHE_KEY_BYTES_MAX);
    let hash = seed ^ 0x811c9dc5;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) | 0;
  }
}

/**
 * The joined values of a field as the upstream receives it: without lines that Connection names, which end here, and with
 * those whose name has underscores, which some upstreams take for hyphens.
 */
function readSelecting({ fields }: RequestHead, name: string): string {
  const wanted = name.replaceAll("_", "-");
  let joined = ABSENT;
  for (let index = 0; index < fields.count; index++) {
    if (fields.nameEnd(index) - fields.nameStart(index) !== wanted.length) continue;
    if (fields.name(index).toLowerCase().replaceAll("_", "-") !== wanted) continue;
    if (fields.isNominated(index)) continue;
    joined = joined === ABSENT ? fields.value(index) : `${joined}, ${fields.value(index)}`;
  }
  return joined;
}

/** The path in a key that {@link CacheKeys} has built, without the query. */
export function readPathOfKey(key: Buffer): string {
  const [, , , target = ""] = key.toString("latin1").split("\n", 4);
  const end = target.search(/[?\0]/);
  return end === -1 ? target : target.slice(0, end);
}

/** True if the value of Cache-Tag contains this tag; tags are separated by commas or spaces. */
export function isTaggedWith(tags: string, tag: string): boolean {
  return tags.split(/[\s,]+/).includes(tag);
}
