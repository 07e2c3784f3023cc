// Invalid responses of upstreams, each with the expected response to the client.

/** Expected result of the client: an error of the gateway, a broken connection, or the valid part of the response. */
export type Verdict =
  | { readonly kind: "refused"; readonly status: 502 | 504; readonly code: RegExp }
  /** The error occurs after the client has received the beginning, and the response must not look complete. */
  | { readonly kind: "cut" }
  /** This status and content; the excess is discarded. */
  | { readonly kind: "passed"; readonly status: number; readonly content: string };

/** A response of the upstream. */
export interface BadAnswer {
  /** Unique. */
  readonly name: string;
  /** The bytes, as latin1. */
  readonly bytes: string;
  /** Sent after the client has received the previous part. */
  readonly later?: string;
  /** Action of the upstream after it has sent everything. */
  readonly ending: "waits" | "closes" | "resets";
  readonly verdict: Verdict;
}

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const HALF_CHUNKED = `${CHUNKED}4\r\nhalf\r\n`;
const EVIL = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";

/** All invalid responses. */
export const badAnswers: readonly BadAnswer[] = [
  ...garbage(),
  ...heads(),
  ...lengths(),
  ...silence(),
  ...early(),
  ...chunks(),
  ...excess(),
];

function garbage(): BadAnswer[] {
  return [
    invalid("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
    invalid("a TLS alert", "\x15\x03\x01\x00\x02\x02\x46"),
    invalid("zeros", "\0".repeat(4096)),
    invalid("HTTP/0.9", "<html>hello</html>"),
    invalid("a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    invalid("an empty line first", `\r\n${OK}Content-Length: 0\r\n\r\n`),
    invalid("HTTP/2 in text", "HTTP/2 200\r\ncontent-length: 0\r\n\r\n"),
    invalid("HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a version in lower case", "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("no status", "HTTP/1.1  OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a status that begins with 0", "HTTP/1.1 020 OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a status of letters", "HTTP/1.1 2xx OK\r\nContent-Length: 0\r\n\r\n"),
    invalid("a reason with a NUL", "HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n"),
    invalid("an unrequested 101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
  ];
}

function heads(): BadAnswer[] {
  const field = (line: string): string => `${OK}Content-Length: 0\r\n${line}\r\n\r\n`;
  return [
    invalid("bare LF everywhere", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
    invalid("a bare LF in a field", field("X-A: 1\nX-B: 2")),
    invalid("a bare CR in a field", field("X-A: 1\rSet-Cookie: evil=1")),
    invalid("a folded field", field("X-A: 1\r\n 2")),
    invalid("a space before the colon", field("X-A : 1")),
    invalid("a field without a name", field(": 1")),
    invalid("a field without a colon", field("X-A")),
    invalid("a NUL in a value", field("X-A: \0")),
    invalid("a name with a space", field("X A: 1")),
    invalid("a head beyond the bound", field(`X-A: ${"a".repeat(70_000)}`)),
    invalid("a head without end", `${OK}X-A: ${"a".repeat(200_000)}`),
    invalid("more fields than the bound", field("X-A: 1\r\n".repeat(5_000).trimEnd())),
    invalid("Connection that names the length", field("Connection: content-length")),
    invalid("informational answers without end", "HTTP/1.1 103 Hint\r\n\r\n".repeat(200)),
  ];
}

function lengths(): BadAnswer[] {
  const length = (lines: string, content = "hello"): string => `${OK}${lines}\r\n\r\n${content}`;
  return [
    invalid("two lengths", length("Content-Length: 5\r\nContent-Length: 6")),
    invalid("two equal lengths", length("Content-Length: 5\r\nContent-Length: 5")),
    invalid("a list of lengths", length("Content-Length: 5, 5")),
    invalid("a length with a plus", length("Content-Length: +5")),
    invalid("a length with a minus", length("Content-Length: -5")),
    invalid("a length in hexadecimal", length("Content-Length: 0x5")),
    invalid("a length with an exponent", length("Content-Length: 5e0")),
    invalid("a length of 2^64", length("Content-Length: 18446744073709551616")),
    invalid("an empty length", length("Content-Length:")),
    invalid("a length and chunked", length("Content-Length: 5\r\nTransfer-Encoding: chunked")),
    invalid("chunked and a length", length("Transfer-Encoding: chunked\r\nContent-Length: 5")),
    invalid("a length with an underscore", length("Content_Length: 5\r\nContent-Length: 9")),
    invalid("chunked twice", length("Transfer-Encoding: chunked, chunked", "0\r\n\r\n")),
    invalid("chunked before another coding", length("Transfer-Encoding: chunked, gzip")),
    invalid("a coding that was not asked for", length("Transfer-Encoding: gzip, chunked")),
    invalid("an empty coding", length("Transfer-Encoding:")),
    invalid(
      "chunked in HTTP/1.0",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    invalid("a 204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
    invalid("a 103 with a length", `HTTP/1.1 103 Hint\r\nContent-Length: 5\r\n\r\nhello${EVIL}`),
  ];
}

function silence(): BadAnswer[] {
  const late = (name: string, bytes: string): BadAnswer => ({
    name,
    bytes,
    ending: "waits",
    verdict: { kind: "refused", status: 504, code: /^upstream_timeout$/ },
  });
  return [
    late("nothing", ""),
    late("half a status line and nothing more", "HTTP/1.1 2"),
    late("half a head and nothing more", `${OK}Content-Len`),
    late("a 103 and nothing more", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
  ];
}

function early(): BadAnswer[] {
  const gone = (
    name: string,
    bytes: string,
    ending: "closes" | "resets",
    code: RegExp,
  ): BadAnswer => ({
    name,
    bytes,
    ending,
    verdict: { kind: "refused", status: 502, code },
  });
  const [absent, malformed] = [/^upstream_unreachable$/, /^upstream_invalid_response$/];
  return [
    gone("nothing, and closes", "", "closes", absent),
    gone("nothing, and resets", "", "resets", absent),
    gone("half a head, and closes", `${OK}Content-Len`, "closes", malformed),
    // A reset may destroy the data sent before it.
    gone(
      "half a head, and resets",
      `${OK}Content-Len`,
      "resets",
      /^upstream_(unreachable|invalid_response)$/,
    ),
    gone("a 103, and closes", "HTTP/1.1 103 Early Hints\r\n\r\n", "closes", malformed),
    cut("too little content, and closes", `${OK}Content-Length: 10\r\n\r\nhalf`, "", "closes"),
    cut("too little content, and resets", `${OK}Content-Length: 10\r\n\r\nhalf`, "", "resets"),
    cut("too little content, and waits", `${OK}Content-Length: 10\r\n\r\nhalf`, "", "waits"),
    cut("a head without its content, and closes", `${OK}Content-Length: 10\r\n\r\n`, "", "closes"),
    cut("no last chunk, and closes", HALF_CHUNKED, "", "closes"),
    cut("no last chunk, and resets", HALF_CHUNKED, "", "resets"),
    cut("no last chunk, and waits", HALF_CHUNKED, "", "waits"),
    cut("half a chunk, and closes", HALF_CHUNKED, "a\r\nhalf", "closes"),
    cut("half a chunk size, and closes", HALF_CHUNKED, "1", "closes"),
    cut("half a last chunk, and closes", HALF_CHUNKED, "0\r\n", "closes"),
  ];
}

function chunks(): BadAnswer[] {
  const broken: [name: string, bytes: string][] = [
    ["a chunk size of letters", "zz\r\nhello"],
    ["a chunk size with a minus", "-5\r\nhello"],
    ["a chunk size with 0x", "0x5\r\nhello"],
    ["a chunk size with a space", "5 \r\nhello"],
    ["a chunk size of 2^64", "10000000000000000\r\nhello"],
    ["an empty chunk size", "\r\nhello"],
    ["a chunk size that ends in LF", "5\nhello"],
    ["a chunk that is too long", "5\r\nhello!"],
    ["a chunk that ends in LF", "5\r\nhello\n1\r\n!"],
    ["a chunk extension with a LF", "5;a\nb\r\nhello"],
    ["chunk extensions beyond the bound", `5;${"a".repeat(5_000)}\r\nhello`],
    ["a trailer that frames", "0\r\nContent-Length: 4"],
    ["a folded trailer", "0\r\nX-A: 1\r\n 2"],
    ["trailers beyond the bound", `0\r\nX-A: ${"a".repeat(9_000)}`],
  ];
  return broken.flatMap(([name, bytes]) => [
    invalid(`${name}, with its head`, `${HALF_CHUNKED}${bytes}\r\n0\r\n\r\n`),
    cut(`${name}, behind its head`, HALF_CHUNKED, `${bytes}\r\n0\r\n\r\n`, "waits"),
  ]);
}

function excess(): BadAnswer[] {
  const more = (name: string, bytes: string, status = 200, content = ""): BadAnswer => ({
    name,
    bytes: bytes + EVIL,
    ending: "waits",
    verdict: { kind: "passed", status, content },
  });
  return [
    more("more than its length", `${OK}Content-Length: 2\r\n\r\nok`, 200, "ok"),
    more("content beside a length of 0", `${OK}Content-Length: 0\r\n\r\n`),
    more("more behind the last chunk", `${CHUNKED}2\r\nok\r\n0\r\n\r\n`, 200, "ok"),
    more("content beside a 204", "HTTP/1.1 204 No Content\r\n\r\n", 204),
    more("content beside a 304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", 304),
  ];
}

function invalid(name: string, bytes: string): BadAnswer {
  const verdict = { kind: "refused", status: 502, code: /^upstream_invalid_response$/ } as const;
  return { name, bytes, ending: "waits", verdict };
}

function cut(name: string, bytes: string, later: string, ending: BadAnswer["ending"]): BadAnswer {
  return { name, bytes, later, ending, verdict: { kind: "cut" } };
}
