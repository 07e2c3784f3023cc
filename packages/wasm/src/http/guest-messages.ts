// The interface between a guest and the server whose request it handles.
import type { FieldList } from "./field-list.ts";

/** The request and the response that a guest handles. The host owns the object; a guest uses it during its calls only. */
export interface GuestMessages {
  /** The method. The guest sets a token. */
  method: string;
  /** Path and query, never empty. The guest sets any printable text; the host throws a `GuestError` if it is not usable. */
  uri: string;
  /** `HTTP/1.1`. */
  readonly protocolVersion: string;
  /** Address and port of the client. */
  readonly sourceAddress: string;
  /** Status of the response. The guest sets 200 to 599. */
  status: number;
  /** Opened when the guest first reads or changes a field. */
  readonly requestFields: FieldList;
  readonly responseFields: FieldList;
  /**
   * The next part of the body, for `read_body`: of `bytesMin` bytes or more, or up to its end. Not called again after the
   * last one. A rejection ends the guest.
   */
  readRequestBody(bytesMin: number): BodyPart | Promise<BodyPart>;
  /** The whole body that the guest has asked to buffer; empty if it has not. */
  readResponseBody(): Uint8Array;
  /** Maximum number of bytes that the guest may write. */
  readonly requestBodyBytesMax: number;
  readonly responseBodyBytesMax: number;
}

/** A part of a body. The guest reads the bytes later. */
export interface BodyPart {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

/** Environment of the instances of a guest. */
export interface GuestEnvironment {
  /** Result of `get_config`. */
  readonly config: Uint8Array;
  /** Units of fuel of a call. */
  readonly fuelPerCall: number;
  /** A line that the guest has written, of at most 4 KiB. Level as in {@link LogLevel}. Must not throw. */
  log(level: number, text: string): void;
  /** True if lines of this level are written. */
  isLogged(level: number): boolean;
}

/** Result of `handle_request`. */
export interface GuestVerdict {
  /** The request continues; otherwise the guest has answered it with status, response fields and response body. */
  readonly next: boolean;
  /** Passed to `handle_response`. */
  readonly context: number;
}
