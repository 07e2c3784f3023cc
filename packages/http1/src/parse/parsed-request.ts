// A parsed request head: ranges of received bytes, and what they mean for the connection.
import { FieldBlock } from "./field-block.ts";
import { Known } from "./known-fields.ts";
import { Method, type MethodId, nameOfMethod } from "./methods.ts";
import { Framing, type FramingKind } from "./status.ts";

/** Stands for the absence of bytes. */
export const NO_BYTES: Buffer = Buffer.alloc(0);

/** The form of a request target (RFC 9112 §3.2). */
export const TargetForm = { Origin: 0, Absolute: 1, Authority: 2, Asterisk: 3 } as const;

export type TargetFormKind = (typeof TargetForm)[keyof typeof TargetForm];

/**
 * The result of `RequestParser`, which extends it:
 *
 * ```text
 *   GET /path?query HTTP/1.1 CRLF fields CRLF CRLF
 *   |  ||    ||    |                              |
 *   |  ||    ||    targetEnd                      headEnd
 *   |  ||    |queryStart
 *   |  ||    pathEnd
 *   |  |targetStart, pathStart
 *   |  methodEnd
 *   headStart
 * ```
 *
 * All offsets refer to `bytes`. Strings are created on demand.
 */
export class ParsedRequest {
  /** The buffer of all ranges: the caller's chunk or the collected bytes. */
  bytes: Buffer = NO_BYTES;

  /** Start of the request line in `bytes`. */
  headStart = 0;
  /** End of the head in `bytes`, after its closing CRLF. */
  headEnd = 0;
  /** `Other` until the method has been read. */
  methodId: MethodId = Method.Other;
  methodEnd = 0;
  targetForm: TargetFormKind = TargetForm.Origin;
  targetStart = 0;
  targetEnd = 0;
  /** Path of origin and absolute form; empty for `http://host`, which is forwarded as `/`. */
  pathStart = 0;
  pathEnd = 0;
  /** First byte after `?`, or -1 without a query. The query ends at `targetEnd`. */
  queryStart = -1;
  /** Authority of absolute and authority form; -1 in other forms. */
  authorityStart = -1;
  authorityEnd = -1;
  /** 1 for HTTP/1.1, 0 for HTTP/1.0. */
  minor: 0 | 1 = 1;
  readonly fields: FieldBlock;

  /** Framing of the content: None, Length or Chunked. */
  framing: FramingKind = Framing.None;
  /** Length of the content if framing is Length, otherwise 0. */
  contentLength = 0;
  /** True if the connection may be reused after this exchange (RFC 9112 §9.3). */
  keepAlive = true;
  /** True if the client waits for 100 (Continue) before it sends the content, even if that is empty. */
  expectContinue = false;
  /** True if Upgrade is present and nominated by Connection in HTTP/1.1. */
  upgrade = false;

  constructor(fieldsMax: number) {
    this.fields = new FieldBlock(fieldsMax);
  }

  /** The method; an interned string for known ones. */
  get method(): string {
    return (
      nameOfMethod(this.methodId) ?? this.bytes.toString("latin1", this.headStart, this.methodEnd)
    );
  }

  /** The request target as sent. */
  targetString(): string {
    return this.bytes.toString("latin1", this.targetStart, this.targetEnd);
  }

  /** The path as sent, without the query; `""` if it is absent or was refused before its end. */
  pathString(): string {
    return this.bytes.toString("latin1", this.pathStart, this.pathEnd);
  }

  /** The query without `?`; `undefined` if absent. */
  queryString(): string | undefined {
    if (this.queryStart === -1) return undefined;
    return this.bytes.toString("latin1", this.queryStart, this.targetEnd);
  }

  /** The requested host as sent; `undefined` in HTTP/1.0 without one. */
  hostString(): string | undefined {
    if (this.authorityStart === -1) return this.fields.get(Known.Host);
    return this.bytes.toString("latin1", this.authorityStart, this.authorityEnd);
  }

  /** Moves all ranges by `delta`, into `bytes`, which holds the same head there. */
  protected rebase(bytes: Buffer, delta: number): void {
    this.bytes = bytes;
    this.fields.rebase(bytes, delta);
    if (delta === 0) return;
    this.headStart += delta;
    this.headEnd += delta;
    this.methodEnd += delta;
    this.targetStart += delta;
    this.targetEnd += delta;
    this.pathStart += delta;
    this.pathEnd += delta;
    if (this.queryStart !== -1) this.queryStart += delta;
    if (this.authorityStart !== -1) {
      this.authorityStart += delta;
      this.authorityEnd += delta;
    }
  }
}
