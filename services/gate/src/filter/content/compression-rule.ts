// Decides whether a response is compressed, and changes its head accordingly (RFC 9110 section 8.4).
import { Known, type RequestHead, type ResponseDraft } from "@platform/http1";
import { chooseCoding, type ContentCoding } from "@platform/kernel/content";
import type { CompressionSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

/** Fields that describe the bytes of the content, which compression changes. */
const OF_THE_BYTES = new Set([
  "accept-ranges",
  "content-digest",
  "content-md5",
  "digest",
  "repr-digest",
]);

/** The compression of one response. */
export interface Compression {
  readonly coding: ContentCoding;
  /** Gives the memory of the compressor back. */
  readonly release: () => void;
}

/** The rule of a route. */
export class CompressionRule {
  readonly #codings: readonly ContentCoding[];
  readonly #sizeBytesMin: number;
  readonly #parts: StepParts;
  readonly #exact = new Set<string>();
  /** Media types that end in `*`, without it. */
  readonly #starts: string[] = [];

  constructor({ codings, types, sizeBytesMin }: CompressionSpec, parts: StepParts) {
    this.#codings = codings;
    this.#sizeBytesMin = sizeBytesMin;
    this.#parts = parts;
    for (const type of types) {
      if (type.endsWith("*")) this.#starts.push(type.slice(0, -1));
      else this.#exact.add(type);
    }
  }

  /**
   * Changes the head of a response that is to be compressed. Returns how its content is compressed; undefined if it is not,
   * or has no content.
   */
  apply(fields: RequestHead["fields"], draft: ResponseDraft): Compression | undefined {
    if (draft.status === 304) this.#describeUnchanged(fields, draft);
    if (!this.#isCompressible(draft)) return undefined;
    addVary(draft);
    if (forbidsTransform(fields.get(Known.CacheControl))) return undefined;
    const coding = chooseCoding(fields.get(Known.AcceptEncoding), this.#codings);
    if (coding === "identity") return undefined;
    // The response to HEAD has the fields of that to GET; the size of its content is not known.
    if (!draft.hasContent) {
      encode(draft, coding);
      return undefined;
    }
    const release = this.#parts.compression.claim(coding);
    if (release === undefined) {
      this.#parts.block.addCounter("compressionSkipped", 1);
      return undefined;
    }
    encode(draft, coding);
    return { coding, release };
  }

  /**
   * A 304 has the fields that the 200 would have (RFC 9110 section 15.4.5). It rarely tells the type of the content: the
   * tag that the client has says whether that was compressed.
   */
  #describeUnchanged(fields: RequestHead["fields"], draft: ResponseDraft): void {
    const type = findField(draft, "content-type");
    if (type !== undefined && !this.#isListed(type)) return;
    if (forbidsTransform(findField(draft, "cache-control"))) return;
    addVary(draft);
    if (forbidsTransform(fields.get(Known.CacheControl))) return;
    if (chooseCoding(fields.get(Known.AcceptEncoding), this.#codings) === "identity") return;
    const known = fields.get(Known.IfNoneMatch) ?? "";
    draft.headers = draft.headers.map(([name, value]): [string, string] => {
      const isStrong = name.toLowerCase() === "etag" && value.startsWith('"');
      const hasStrong = known.replaceAll(/W\/"[^"]*"/g, "").includes(value);
      return isStrong && !hasStrong ? [name, `W/${value}`] : [name, value];
    });
  }

  #isListed(type: string): boolean {
    const [name = ""] = type.toLowerCase().split(";");
    const trimmed = name.trim();
    return this.#exact.has(trimmed) || this.#starts.some((start) => trimmed.startsWith(start));
  }

  #isCompressible(draft: ResponseDraft): boolean {
    const { status, contentLength } = draft;
    if (status === 204 || status === 206 || status === 304) return false;
    if (contentLength >= 0 && contentLength < this.#sizeBytesMin) return false;
    const coding = findField(draft, "content-encoding");
    if (coding !== undefined && coding.toLowerCase() !== "identity") return false;
    if (findField(draft, "content-range") !== undefined) return false;
    if (forbidsTransform(findField(draft, "cache-control"))) return false;
    return this.#isListed(findField(draft, "content-type") ?? "");
  }
}

function encode(draft: ResponseDraft, coding: ContentCoding): void {
  draft.contentLength = -1;
  draft.headers = draft.headers.flatMap(([name, value]): [string, string][] => {
    const lower = name.toLowerCase();
    if (lower === "content-encoding" || OF_THE_BYTES.has(lower)) return [];
    // The bytes differ from those that the strong tag identifies.
    if (lower === "etag" && !value.startsWith("W/")) return [[name, `W/${value}`]];
    return [[name, value]];
  });
  draft.headers.push(["Content-Encoding", coding]);
}

function addVary(draft: ResponseDraft): void {
  const vary = (findField(draft, "vary") ?? "").toLowerCase().split(",");
  const names = vary.map((name) => name.trim());
  if (!names.includes("*") && !names.includes("accept-encoding")) {
    draft.headers.push(["Vary", "Accept-Encoding"]);
  }
}

function forbidsTransform(cacheControl: string | undefined): boolean {
  return cacheControl !== undefined && /(?:^|[\s,])no-transform(?:$|[\s,])/i.test(cacheControl);
}

/** The values of a field, joined. */
function findField({ headers }: ResponseDraft, wanted: string): string | undefined {
  let joined: string | undefined;
  for (const [name, value] of headers) {
    if (name.toLowerCase() !== wanted) continue;
    joined = joined === undefined ? value : `${joined}, ${value}`;
  }
  return joined;
}
