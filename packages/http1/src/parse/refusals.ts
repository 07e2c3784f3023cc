// All refusals of the parsers in one table: stable code, response status, detail.

/** Reason for refusing a message. The objects are shared and frozen: compare by `code`. */
export interface Refusal {
  readonly code: RefusalCode;
  /** Response status of a server. For a refused response of an upstream it is always 502. */
  readonly status: RefusalStatus;
  /** One sentence that contains no byte of the message. */
  readonly detail: string;
}

/** Stable code of a refusal. */
export type RefusalCode = keyof typeof table;

/** Statuses of refusals. */
export type RefusalStatus = (typeof table)[RefusalCode][0];

const table = {
  bad_request_line: [400, "The request line is not METHOD SP TARGET SP VERSION CRLF."],
  bad_status_line: [502, "The status line is not VERSION SP STATUS SP REASON CRLF."],
  leading_empty_lines: [400, "Too many empty lines before the request line."],
  method_too_long: [501, "The method name is too long."],
  method_unknown: [501, "The method is not implemented."],
  target_too_long: [414, "The request target is too long."],
  bad_target: [400, "The request target is malformed."],
  bad_percent: [400, "The path contains a % without two hexadecimal digits."],
  version_missing: [400, "The request line has no version: HTTP/0.9 is not supported."],
  bad_version: [400, "The version is malformed."],
  version_unsupported: [505, "Only HTTP/1.0 and HTTP/1.1 are supported."],
  http2_preface: [505, "HTTP/2 is not spoken on this connection."],
  bare_lf: [400, "A line ends in LF without CR."],
  bare_cr: [400, "A CR is not followed by LF."],
  leading_whitespace: [400, "Whitespace before the first header field."],
  obs_fold: [400, "A header field is folded over several lines."],
  bad_field_name: [400, "A header field name is empty or has a byte that is not allowed."],
  space_before_colon: [400, "Whitespace between a header field's name and its colon."],
  bad_field_value: [400, "A header field value has a control byte."],
  too_many_fields: [431, "Too many header fields."],
  head_too_large: [431, "The header section is too large."],
  host_missing: [400, "The Host header field is missing."],
  host_repeated: [400, "More than one Host header field."],
  bad_host: [400, "The host is malformed."],
  host_mismatch: [400, "The request target and the Host header field name different hosts."],
  alias_of_framing_field: [400, "A field name imitates Host, Content-Length or Transfer-Encoding."],
  bad_content_length: [400, "Content-Length is not a plain decimal number below 2^53."],
  content_length_repeated: [400, "More than one Content-Length."],
  length_and_chunked: [400, "Both Content-Length and Transfer-Encoding."],
  bad_transfer_encoding: [400, "Transfer-Encoding is not a single, final chunked."],
  transfer_coding_unknown: [501, "The transfer coding is not implemented."],
  transfer_encoding_in_1_0: [400, "Transfer-Encoding in HTTP/1.0."],
  bad_connection: [400, "The Connection header field is malformed."],
  connection_names_framing: [400, "Connection names a field that belongs to the whole message."],
  body_not_allowed: [502, "A response that cannot have a body declares one."],
  bad_chunk_size: [400, "A chunk size is malformed or too large."],
  bad_chunk_extension: [400, "A chunk extension is malformed."],
  chunk_extensions_too_large: [400, "The chunk extensions are too large."],
  bad_chunk_end: [400, "A chunk's data is not followed by CRLF."],
  trailers_too_large: [431, "The trailer section is too large."],
  forbidden_trailer: [400, "A trailer field is not allowed in trailers."],
} as const satisfies Record<string, readonly [number, string]>;

/** The shared refusal objects by code. */
export const refusals = Object.freeze(
  Object.fromEntries(
    Object.entries(table).map(([code, [status, detail]]) => [
      code,
      Object.freeze({ code: code as RefusalCode, status, detail }),
    ]),
  ),
) as Readonly<Record<RefusalCode, Refusal>>;
