// Malformed, smuggling and borderline requests, each with what must become of it.
import type { RefusalCode } from "../../src/parse/index.ts";

/** One payload as a client would send it, and the expected verdict on it. */
export interface CorpusEntry {
  /** Unique; the row of the ledger. */
  readonly name: string;
  /** The bytes, as latin1. */
  readonly payload: string;
  /** Status and code of the refusal, or the number of requests that are accepted. */
  readonly expected: readonly [status: number, code: RefusalCode] | number;
}

const HOST = "Host: a.example\r\n";
const POST = `POST /p HTTP/1.1\r\n${HOST}`;
const GET = `GET /p HTTP/1.1\r\n${HOST}`;
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";

/** The whole corpus. */
export const requestCorpus: readonly CorpusEntry[] = [
  ...requestLines(),
  ...targets(),
  ...hosts(),
  ...fieldLines(),
  ...lengths(),
  ...transferEncodings(),
  ...connections(),
  ...chunks(),
  ...limits(),
  ...accepted(),
];

function requestLines(): CorpusEntry[] {
  return [
    refused("http/0.9 simple request", "GET /p\r\n\r\n", 400, "version_missing"),
    refused("http/0.9 with trailing space", "GET /p \r\n\r\n", 400, "bad_version"),
    refused("version http/2.0", `GET /p HTTP/2.0\r\n${HOST}\r\n`, 505, "version_unsupported"),
    refused("version http/1.2", `GET /p HTTP/1.2\r\n${HOST}\r\n`, 505, "version_unsupported"),
    refused(
      "version http/0.9 spelled out",
      `GET /p HTTP/0.9\r\n${HOST}\r\n`,
      505,
      "version_unsupported",
    ),
    refused("version http/3.1", `GET /p HTTP/3.1\r\n${HOST}\r\n`, 505, "version_unsupported"),
    refused("version in lower case", `GET /p http/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("version half lower case", `GET /p HTTp/1.1\r\n${HOST}\r\n`, 400, "bad_version"),
    refused(
      "version with two minor digits",
      `GET /p HTTP/1.10\r\n${HOST}\r\n`,
      400,
      "bad_request_line",
    ),
    refused(
      "version with leading zero",
      `GET /p HTTP/01.1\r\n${HOST}\r\n`,
      505,
      "version_unsupported",
    ),
    refused("version without minor", `GET /p HTTP/1\r\n${HOST}\r\n`, 400, "bad_version"),
    refused(
      "version of another protocol",
      `GET /p RTSP/1.0\r\n${HOST}\r\n`,
      400,
      "bad_request_line",
    ),
    refused("http/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "http2_preface"),
    refused(
      "tls client hello",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
      400,
      "bad_request_line",
    ),
    refused("space before method", ` GET /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("two spaces after method", `GET  /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused(
      "two spaces before version",
      `GET /p  HTTP/1.1\r\n${HOST}\r\n`,
      400,
      "bad_request_line",
    ),
    refused("space after version", `GET /p HTTP/1.1 \r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("tab after method", `GET\t/p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("tab before version", `GET /p\tHTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("space inside target", `GET /p q HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("request line ends in bare lf", `GET /p HTTP/1.1\n${HOST}\r\n`, 400, "bare_lf"),
    refused("request line ends in bare cr", `GET /p HTTP/1.1\r${HOST}\r\n`, 400, "bare_cr"),
    refused("request line ends in cr cr lf", `GET /p HTTP/1.1\r\r\n${HOST}\r\n`, 400, "bare_cr"),
    refused("method with separator", `GE(T /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("method with nul", `GE\0T /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused("method with high byte", `G\xcbT /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_request_line"),
    refused(
      "method of 33 bytes",
      `${"M".repeat(33)} /p HTTP/1.1\r\n${HOST}\r\n`,
      501,
      "method_too_long",
    ),
    refused("three empty lines first", `\r\n\r\n\r\n${GET}\r\n`, 400, "leading_empty_lines"),
    refused("bare lf first", `\n${GET}\r\n`, 400, "bare_lf"),
    refused("bare cr first", `\r${GET}\r\n`, 400, "bare_cr"),
    refused(
      "response instead of request",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      400,
      "bad_request_line",
    ),
  ];
}

function targets(): CorpusEntry[] {
  const line = (target: string) => `GET ${target} HTTP/1.1\r\n${HOST}\r\n`;
  return [
    refused("target without slash", line("p"), 400, "bad_target"),
    refused("target with fragment", line("/p#f"), 400, "bad_target"),
    refused("target with nul", line("/p\0"), 400, "bad_target"),
    refused("target with del", line("/p\x7f"), 400, "bad_target"),
    refused("target with control byte", line("/p\x01q"), 400, "bad_target"),
    refused("target with high byte", line("/p\xe9"), 400, "bad_target"),
    refused("target with quote", line('/p"q'), 400, "bad_target"),
    refused("target with backslash", line("/p\\..\\q"), 400, "bad_target"),
    refused("target with angle bracket", line("/<script>"), 400, "bad_target"),
    refused("target with bare percent", line("/p%"), 400, "bad_percent"),
    refused("target with half percent", line("/p%2"), 400, "bad_percent"),
    refused("target with percent and letters", line("/p%zz"), 400, "bad_percent"),
    refused("query with control byte", line("/p?a\x0bb"), 400, "bad_target"),
    refused("asterisk without options", line("*"), 400, "bad_target"),
    refused("authority form without connect", line("a.example:80"), 400, "bad_target"),
    refused("absolute form of another scheme", line("ftp://a.example/"), 400, "bad_target"),
    refused("absolute form with one slash", line("http:/a.example/"), 400, "bad_target"),
    refused("absolute form without host", line("http:///p"), 400, "bad_host"),
    refused("absolute form with user info", line("http://u:p@a.example/"), 400, "bad_host"),
    refused("absolute form for another host", line("http://b.example/"), 400, "host_mismatch"),
    refused("absolute form with another port", line("http://a.example:81/"), 400, "host_mismatch"),
    refused("absolute form with bad percent", line("http://a.example/%x"), 400, "bad_percent"),
    refused("absolute form with brace", line("http://a.example/{p}"), 400, "bad_target"),
    refused("absolute form with backslash", line("http://a.example\\@b.example/"), 400, "bad_host"),
    refused("connect with origin form", `CONNECT /p HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_host"),
    refused("connect without port", `CONNECT a.example HTTP/1.1\r\n${HOST}\r\n`, 400, "bad_target"),
    refused(
      "connect to another host",
      `CONNECT b.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n`,
      400,
      "host_mismatch",
    ),
  ];
}

function hosts(): CorpusEntry[] {
  const host = (value: string) => `GET /p HTTP/1.1\r\nHost: ${value}\r\n\r\n`;
  return [
    refused("no host", "GET /p HTTP/1.1\r\n\r\n", 400, "host_missing"),
    refused(
      "no host but absolute form",
      "GET http://a.example/ HTTP/1.1\r\n\r\n",
      400,
      "host_missing",
    ),
    refused("two hosts", `${GET}Host: b.example\r\n\r\n`, 400, "host_repeated"),
    refused("two equal hosts", `${GET}${HOST}\r\n`, 400, "host_repeated"),
    refused(
      "two hosts in http/1.0",
      `GET /p HTTP/1.0\r\n${HOST}Host: b.example\r\n\r\n`,
      400,
      "host_repeated",
    ),
    refused(
      "host with space before colon",
      "GET /p HTTP/1.1\r\nHost : a.example\r\n\r\n",
      400,
      "space_before_colon",
    ),
    refused("empty host", host(""), 400, "bad_host"),
    refused("host list", host("a.example, b.example"), 400, "bad_host"),
    refused("host with comma", host("a.example,b.example"), 400, "bad_host"),
    refused("host with user info", host("u@a.example"), 400, "bad_host"),
    refused("host with path", host("a.example/p"), 400, "bad_host"),
    refused("host with high byte", host("\xe4.example"), 400, "bad_host"),
    refused("host with percent", host("a%2eexample"), 400, "bad_host"),
    refused("host with an empty first label", host(".internal.example"), 400, "bad_host"),
    refused("host with two dots at its end", host("internal.example.."), 400, "bad_host"),
    refused("host with an empty label", host("internal..example"), 400, "bad_host"),
    refused("host with two dots before its port", host("internal.example..:80"), 400, "bad_host"),
    refused("host of one dot", host("."), 400, "bad_host"),
    refused("host with empty port", host("a.example:"), 400, "bad_host"),
    refused("host with word as port", host("a.example:http"), 400, "bad_host"),
    refused("host with port 65536", host("a.example:65536"), 400, "bad_host"),
    refused("host with two ports", host("a.example:80:81"), 400, "bad_host"),
    refused("host with open bracket", host("[::1"), 400, "bad_host"),
    refused("host with ipv4 address in brackets", host("[192.0.2.1]"), 400, "bad_host"),
    refused("host with word of hex digits in brackets", host("[abc]"), 400, "bad_host"),
    refused("host with name in brackets", host("[a.example]"), 400, "bad_host"),
  ];
}

function fieldLines(): CorpusEntry[] {
  const field = (line: string) => `${GET}${line}\r\n\r\n`;
  return [
    refused("space before colon", field("X-A : 1"), 400, "space_before_colon"),
    refused("tab before colon", field("X-A\t: 1"), 400, "space_before_colon"),
    refused(
      "space before colon of content-length",
      `${POST}Content-Length : 5\r\n\r\nhello`,
      400,
      "space_before_colon",
    ),
    refused(
      "space before colon of transfer-encoding",
      `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
      400,
      "space_before_colon",
    ),
    refused("folded line", field("X-A: 1\r\n 2"), 400, "obs_fold"),
    refused("folded line with tab", field("X-A: 1\r\n\t2"), 400, "obs_fold"),
    refused(
      "folded transfer-encoding",
      `${POST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n`,
      400,
      "obs_fold",
    ),
    refused(
      "space before first field",
      `GET /p HTTP/1.1\r\n ${HOST}\r\n`,
      400,
      "leading_whitespace",
    ),
    refused("line of spaces", `${GET} \r\nX-A: 1\r\n\r\n`, 400, "obs_fold"),
    refused("empty field name", field(": 1"), 400, "bad_field_name"),
    refused("field without colon", field("X-A"), 400, "bad_field_name"),
    refused("field name with nul", field("X\0A: 1"), 400, "bad_field_name"),
    refused("field name with space", field("X A: 1"), 400, "space_before_colon"),
    refused("field name with high byte", field("X-\xe9: 1"), 400, "bad_field_name"),
    refused("field name with quote", field('X"A: 1'), 400, "bad_field_name"),
    refused("field name with slash", field("X/A: 1"), 400, "bad_field_name"),
    refused("field name with brackets", field("X[A]: 1"), 400, "bad_field_name"),
    refused("nul in value", field("X-A: 1\x002"), 400, "bad_field_value"),
    refused("vertical tab in value", field("X-A: 1\x0b2"), 400, "bad_field_value"),
    refused("del in value", field("X-A: 1\x7f"), 400, "bad_field_value"),
    refused("escape in value", field("X-A: \x1b[31m"), 400, "bad_field_value"),
    refused("bare cr in value", field("X-A: 1\rX-B: 2"), 400, "bare_cr"),
    refused("bare lf in value", field("X-A: 1\nX-B: 2"), 400, "bare_lf"),
    refused("bare lf before field", `GET /p HTTP/1.1\r\n\n${HOST}\r\n`, 400, "bare_lf"),
    refused("head ends in lf lf", `GET /p HTTP/1.1\r\n${HOST}X-A: 1\n\n`, 400, "bare_lf"),
    refused("head ends in crlf lf", `GET /p HTTP/1.1\r\n${HOST}\n${SMUGGLED}`, 400, "bare_lf"),
    refused("head ends in cr cr lf", `GET /p HTTP/1.1\r\n${HOST}\r\r\n`, 400, "bare_cr"),
    refused(
      "content_length with underscore",
      `${POST}Content_Length: 5\r\n\r\n`,
      400,
      "alias_of_framing_field",
    ),
    refused(
      "transfer_encoding with underscore",
      `${POST}Transfer_Encoding: chunked\r\n\r\n`,
      400,
      "alias_of_framing_field",
    ),
  ];
}

function lengths(): CorpusEntry[] {
  const length = (value: string) => `${POST}Content-Length: ${value}\r\n\r\nhello`;
  const bad = (name: string, value: string) =>
    refused(name, length(value), 400, "bad_content_length");
  return [
    bad("content-length with plus", "+5"),
    bad("content-length with minus", "-5"),
    bad("content-length minus zero", "-0"),
    bad("content-length in hex", "0x5"),
    bad("content-length with hex digit", "5a"),
    bad("content-length with inner space", "5 5"),
    bad("content-length as list", "5, 5"),
    bad("content-length as different list", "5, 6"),
    bad("content-length with trailing comma", "5,"),
    bad("content-length empty", ""),
    bad("content-length with fraction", "5.0"),
    bad("content-length with exponent", "5e0"),
    bad("content-length with underscore digit", "1_0"),
    bad("content-length quoted", '"5"'),
    bad("content-length with leading zero", "05"),
    bad("content-length 2^53", "9007199254740992"),
    bad("content-length 2^64 + 5", "18446744073709551621"),
    bad("content-length with non-ascii digit", "\xb2"),
    refused("content-length with vertical tab", length("\x0b5"), 400, "bad_field_value"),
    refused(
      "two equal content-lengths",
      `${POST}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
      400,
      "content_length_repeated",
    ),
    refused(
      "two different content-lengths",
      `${POST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n${SMUGGLED}`,
      400,
      "content_length_repeated",
    ),
    refused(
      "two content-lengths in different case",
      `${POST}content-length: 5\r\nCONTENT-LENGTH: 5\r\n\r\nhello`,
      400,
      "content_length_repeated",
    ),
  ];
}

function transferEncodings(): CorpusEntry[] {
  const coding = (value: string) => `${POST}Transfer-Encoding: ${value}\r\n\r\n0\r\n\r\n`;
  const both = (first: string, second: string) =>
    `${POST}${first}\r\n${second}\r\n\r\n0\r\n\r\n${SMUGGLED}`;
  return [
    refused(
      "cl.te",
      both("Content-Length: 5", "Transfer-Encoding: chunked"),
      400,
      "length_and_chunked",
    ),
    refused(
      "te.cl",
      both("Transfer-Encoding: chunked", "Content-Length: 5"),
      400,
      "length_and_chunked",
    ),
    refused(
      "cl.te with unknown coding",
      both("Content-Length: 5", "Transfer-Encoding: xchunked"),
      400,
      "length_and_chunked",
    ),
    refused("te identity", coding("identity"), 501, "transfer_coding_unknown"),
    refused("te gzip", coding("gzip"), 501, "transfer_coding_unknown"),
    refused("te gzip, chunked", coding("gzip, chunked"), 501, "transfer_coding_unknown"),
    refused("te chunked, gzip", coding("chunked, gzip"), 501, "transfer_coding_unknown"),
    refused("te chunked, identity", coding("chunked, identity"), 501, "transfer_coding_unknown"),
    refused("te xchunked", coding("xchunked"), 501, "transfer_coding_unknown"),
    refused("te chunked twice in a list", coding("chunked, chunked"), 400, "bad_transfer_encoding"),
    refused(
      "te chunked on two lines",
      both("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
      400,
      "bad_transfer_encoding",
    ),
    refused(
      "te chunked and identity on two lines",
      both("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
      501,
      "transfer_coding_unknown",
    ),
    refused("te with leading comma", coding(", chunked"), 400, "bad_transfer_encoding"),
    refused("te with trailing comma", coding("chunked,"), 400, "bad_transfer_encoding"),
    refused("te with parameter", coding("chunked;q=1"), 400, "bad_transfer_encoding"),
    refused("te quoted", coding('"chunked"'), 400, "bad_transfer_encoding"),
    refused("te empty", coding(""), 400, "bad_transfer_encoding"),
    refused("te with inner space", coding("chun ked"), 400, "bad_transfer_encoding"),
    refused("te with vertical tab", coding("\x0bchunked"), 400, "bad_field_value"),
    refused("te with form feed", coding("chunked\x0c"), 400, "bad_field_value"),
    refused("te with nul", coding("chunked\0"), 400, "bad_field_value"),
    refused("te with non-breaking space", coding("\xa0chunked"), 400, "bad_transfer_encoding"),
    refused(
      "te in http/1.0",
      `POST /p HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "transfer_encoding_in_1_0",
    ),
    refused(
      "te and cl in http/1.0",
      `POST /p HTTP/1.0\r\n${HOST}Connection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "transfer_encoding_in_1_0",
    ),
  ];
}

function connections(): CorpusEntry[] {
  return [
    refused(
      "connection names host",
      `${GET}Connection: host\r\n\r\n`,
      400,
      "connection_names_framing",
    ),
    refused(
      "connection names content-length",
      `${POST}Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello`,
      400,
      "connection_names_framing",
    ),
    refused(
      "connection names transfer-encoding",
      `${POST}Connection: keep-alive, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "connection_names_framing",
    ),
    refused(
      "connection with bad token",
      `${GET}Connection: close; x\r\n\r\n`,
      400,
      "bad_connection",
    ),
    refused(
      "connection names 17 fields",
      `${GET}Connection: ${Array.from({ length: 17 }, (_, index) => `x${index}`).join(", ")}\r\n\r\n`,
      400,
      "bad_connection",
    ),
  ];
}

function chunks(): CorpusEntry[] {
  const size = (name: string, text: string, code: RefusalCode = "bad_chunk_size") =>
    refused(name, `${CHUNKED}${text}\r\nhello\r\n0\r\n\r\n`, 400, code);
  return [
    size("chunk size with plus", "+5"),
    size("chunk size with minus", "-5"),
    size("chunk size with 0x", "0x5"),
    size("chunk size with leading space", " 5"),
    size("chunk size with trailing space", "5 "),
    size("chunk size with trailing tab", "5\t"),
    size("chunk size with letters", "5g"),
    size("chunk size empty", ""),
    size("chunk size of 17 digits", "00000000000000005"),
    size("chunk size 2^64 + 5", "10000000000000005"),
    size("chunk size 2^53", "20000000000000"),
    size("chunk size quoted", '"5"'),
    size("chunk size with underscore", "1_0"),
    size("chunk size with high byte", "5\xa0"),
    size("chunk size with nul", "5\0"),
    size("chunk extension without name", "5;", "bad_chunk_extension"),
    size("chunk extension with space", "5; a=b", "bad_chunk_extension"),
    size("chunk extension with bare lf", "5;a\nb", "bad_chunk_extension"),
    size("chunk extension with control byte", "5;a=\x01", "bad_chunk_extension"),
    size("chunk extension without value", "5;a=", "bad_chunk_extension"),
    size("chunk extension with open quote", '5;a="b', "bad_chunk_extension"),
    size("chunk extension with bytes behind quote", '5;a="b"c', "bad_chunk_extension"),
    size("chunk extension with two equal signs", "5;a=b=c", "bad_chunk_extension"),
    size("chunk extension of 5000 bytes", `5;${"a".repeat(5000)}`, "chunk_extensions_too_large"),
    refused("chunk size ends in bare lf", `${CHUNKED}5\nhello\r\n0\r\n\r\n`, 400, "bare_lf"),
    refused("chunk size ends in bare cr", `${CHUNKED}5\rhello\r\n0\r\n\r\n`, 400, "bare_cr"),
    refused(
      "chunk extension hides a chunk behind bare cr",
      `${CHUNKED}5;a\rb\r\nhello\r\n0\r\n\r\n`,
      400,
      "bare_cr",
    ),
    refused("chunk data too long", `${CHUNKED}5\r\nhello!\r\n0\r\n\r\n`, 400, "bad_chunk_end"),
    refused("chunk data ends in bare lf", `${CHUNKED}5\r\nhello\n0\r\n\r\n`, 400, "bad_chunk_end"),
    refused(
      "chunk data ends in cr cr",
      `${CHUNKED}5\r\nhello\r\r\n0\r\n\r\n`,
      400,
      "bad_chunk_end",
    ),
    refused("last chunk ends in bare lf", `${CHUNKED}0\n\n`, 400, "bare_lf"),
    refused("trailers end in bare lf", `${CHUNKED}0\r\n\n${SMUGGLED}`, 400, "bare_lf"),
    refused(
      "trailer with space before colon",
      `${CHUNKED}0\r\nX-A : 1\r\n\r\n`,
      400,
      "space_before_colon",
    ),
    refused("trailer folded", `${CHUNKED}0\r\nX-A: 1\r\n 2\r\n\r\n`, 400, "obs_fold"),
    refused("trailer with nul", `${CHUNKED}0\r\nX-A: \0\r\n\r\n`, 400, "bad_field_value"),
    refused(
      "trailer content-length",
      `${CHUNKED}0\r\nContent-Length: 5\r\n\r\n`,
      400,
      "forbidden_trailer",
    ),
    refused(
      "trailer transfer-encoding",
      `${CHUNKED}0\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
      "forbidden_trailer",
    ),
    refused("trailer host", `${CHUNKED}0\r\nHost: b.example\r\n\r\n`, 400, "forbidden_trailer"),
    refused(
      "trailer authorization",
      `${CHUNKED}0\r\nAuthorization: Basic eA==\r\n\r\n`,
      400,
      "forbidden_trailer",
    ),
    refused(
      "trailer forwarded for with underscore",
      `${CHUNKED}0\r\nX_Forwarded_For: 1.2.3.4\r\n\r\n`,
      400,
      "forbidden_trailer",
    ),
    refused(
      "trailers of 9000 bytes",
      `${CHUNKED}0\r\nX-A: ${"a".repeat(9000)}\r\n\r\n`,
      431,
      "trailers_too_large",
    ),
    refused(
      "trailers of 33 fields",
      `${CHUNKED}0\r\n${"X-A: 1\r\n".repeat(33)}\r\n`,
      431,
      "too_many_fields",
    ),
  ];
}

function limits(): CorpusEntry[] {
  return [
    refused(
      "target of 17000 bytes",
      `GET /${"a".repeat(17_000)} HTTP/1.1\r\n${HOST}\r\n`,
      414,
      "target_too_long",
    ),
    refused(
      "field of 40000 bytes",
      `${GET}X-A: ${"a".repeat(40_000)}\r\n\r\n`,
      431,
      "head_too_large",
    ),
    refused(
      "field name of 40000 bytes",
      `${GET}${"a".repeat(40_000)}: 1\r\n\r\n`,
      431,
      "head_too_large",
    ),
    refused("129 fields", `${GET}${"X-A: 1\r\n".repeat(128)}\r\n`, 431, "too_many_fields"),
  ];
}

function accepted(): CorpusEntry[] {
  return [
    taken("plain get", `${GET}\r\n`),
    taken("two pipelined gets", `${GET}\r\n${GET}\r\n`, 2),
    taken("one empty line first", `\r\n${GET}\r\n`),
    taken("unknown expectation", `${POST}Expect: 200-ok\r\nContent-Length: 5\r\n\r\nhello`),
    taken("empty expectation", `${POST}Expect:\r\nContent-Length: 5\r\n\r\nhello`),
    taken(
      "two expectations",
      `${POST}Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello`,
    ),
    taken("get with body", `${GET}Content-Length: 5\r\n\r\nhello`),
    taken(
      "body that looks like a request",
      `${POST}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
    ),
    taken("chunked body", `${CHUNKED}5\r\nhello\r\n0\r\n\r\n`),
    taken(
      "chunked body that looks like a request",
      `${CHUNKED}${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
    ),
    taken("chunk size with leading zeros", `${CHUNKED}0005\r\nhello\r\n0\r\n\r\n`),
    taken("last chunk of many zeros", `${CHUNKED}5\r\nhello\r\n000\r\n\r\n`),
    taken("chunk size in upper case", `${CHUNKED}A\r\nhellohello\r\n0\r\n\r\n`),
    taken("chunk extension", `${CHUNKED}5;a=b\r\nhello\r\n0\r\n\r\n`),
    taken("quoted chunk extension", `${CHUNKED}5;a="b;\\"c"\r\nhello\r\n0\r\n\r\n`),
    taken("trailer field", `${CHUNKED}5\r\nhello\r\n0\r\nX-Checksum: 1\r\n\r\n`),
    taken(
      "transfer-encoding in mixed case",
      `${POST}transfer-ENCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ),
    taken(
      "transfer-encoding with spaces around",
      `${POST}Transfer-Encoding: \t chunked \t\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
    ),
    taken("content-length with spaces around", `${POST}Content-Length: \t 5 \t\r\n\r\nhello`),
    taken("content-length zero", `${POST}Content-Length: 0\r\n\r\n`),
    taken("no space behind colon", `GET /p HTTP/1.1\r\nHost:a.example\r\n\r\n`),
    taken("empty value", `${GET}X-A:\r\n\r\n`),
    taken("high bytes in value", `${GET}X-A: \xe9\xff\r\n\r\n`),
    taken("host in upper case with port", `GET /p HTTP/1.1\r\nHOST: A.Example:8080\r\n\r\n`),
    taken("host as ipv6 address", `GET /p HTTP/1.1\r\nHost: [::1]:80\r\n\r\n`),
    taken("absolute form", `GET http://a.example/p?q HTTP/1.1\r\n${HOST}\r\n`),
    taken("percent in query", `GET /p?q=100% HTTP/1.1\r\n${HOST}\r\n`),
    taken("brackets in query", `GET /p?q[]=1&r={2} HTTP/1.1\r\n${HOST}\r\n`),
    taken("quotes and angle brackets in query", `GET /p?q={a="<b>"} HTTP/1.1\r\n${HOST}\r\n`),
    taken("unknown method", `FROB /p HTTP/1.1\r\n${HOST}\r\n`),
    taken("http/1.0 keep-alive", `GET /p HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n\r\n`),
    taken("128 fields", `${GET}${"X-A: 1\r\n".repeat(126)}\r\n`),
  ];
}

function refused(name: string, payload: string, status: number, code: RefusalCode): CorpusEntry {
  return { name, payload, expected: [status, code] };
}

function taken(name: string, payload: string, requests: number = 1): CorpusEntry {
  return { name, payload, expected: requests };
}
