// Results and limits of the incremental parsers.

/** Results of `execute`: the unit is complete, needs more bytes, or is refused (permanently). */
export const Parse = { Complete: 0, NeedsMore: 1, Refused: 2 } as const;

/** One of the values of `Parse`. */
export type ParseStatus = (typeof Parse)[keyof typeof Parse];

/** Framing of a message's content (RFC 9112 §6.3). */
export const Framing = {
  /** No content. */
  None: 0,
  /** `contentLength` bytes. */
  Length: 1,
  /** Chunked coding. */
  Chunked: 2,
  /** The content ends with the connection (responses only). */
  UntilClose: 3,
  /** The following bytes are not HTTP: 101, or 2xx to CONNECT (responses only). */
  Tunnel: 4,
} as const;

/** One of the values of `Framing`. */
export type FramingKind = (typeof Framing)[keyof typeof Framing];

/** Limits of a head. */
export interface HeadLimits {
  /** Maximum bytes of start line and fields with their line ends. Default 32 768. */
  headBytesMax?: number;
  /** Maximum number of field lines. Default 128. */
  fieldsMax?: number;
}

export const HEAD_BYTES_MAX = 32_768;
export const FIELDS_MAX = 128;
