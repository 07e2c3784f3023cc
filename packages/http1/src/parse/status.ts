// The three answers of every incremental parser in this room, and the bounds that they share.

/** What `execute` found: the unit is whole, more bytes are needed, or it was refused (and stays so). */
export const Parse = { Complete: 0, NeedsMore: 1, Refused: 2 } as const;

/** One of the values of `Parse`. */
export type ParseStatus = (typeof Parse)[keyof typeof Parse];

/** How a message's content ends (RFC 9112 §6.3). */
export const Framing = {
  /** There is no content. */
  None: 0,
  /** `contentLength` bytes follow. */
  Length: 1,
  /** The chunked coding follows. */
  Chunked: 2,
  /** The content ends with the connection (responses only). */
  UntilClose: 3,
  /** What follows is no longer HTTP: 101, or 2xx to CONNECT (responses only). */
  Tunnel: 4,
} as const;

/** One of the values of `Framing`. */
export type FramingKind = (typeof Framing)[keyof typeof Framing];

/** Bounds of a head. */
export interface HeadLimits {
  /** Most bytes of start line and fields with their line ends. Default 32 768. */
  headBytesMax?: number;
  /** Most field lines. Default 128. */
  fieldsMax?: number;
}

export const HEAD_BYTES_MAX = 32_768;
export const FIELDS_MAX = 128;
