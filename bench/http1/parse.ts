// Cost of parsing and writing heads in nanoseconds and heap bytes, in this process and on its runtime.
import {
  Chunk,
  ChunkedDecoder,
  HeadWriter,
  Parse,
  RequestParser,
  ResponseParser,
  compileForwardCuts,
} from "@platform/http1";
import type { BenchCase } from "../harness/case.ts";

const OPERATIONS = 200_000;

const curl = Buffer.from(
  "GET /api/v1/items/42 HTTP/1.1\r\nHost: gateway.example.org:8080\r\nUser-Agent: curl/8.14.1\r\n" +
    "Accept: */*\r\nX-Request-Id: 0123456789abcdef01\r\n\r\n",
);
const browser = Buffer.from(
  "GET /api/v1/things?page=2&limit=50 HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: Mozilla/5.0 " +
    "(X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0\r\nAccept: text/html,application/xhtml+xml," +
    "*/*;q=0.8\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n" +
    "Connection: keep-alive\r\nCookie: session=0123456789abcdef\r\nSec-Fetch-Site: none\r\n" +
    "Upgrade-Insecure-Requests: 1\r\nPriority: u=0, i\r\n\r\n",
);
const answer = Buffer.from(
  "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 20 Nov 2026 12:00:00 GMT\r\nContent-Type: " +
    "text/plain\r\nContent-Length: 100\r\nConnection: keep-alive\r\n\r\n",
);
const chunked = Buffer.from(`${`400\r\n${"x".repeat(1024)}\r\n`.repeat(16)}0\r\n\r\n`);

/** Prints its figures without saving them. */
export const parse: BenchCase = {
  name: "parse",
  title: "Heads parsed and written, without a socket",
  run: (context) => {
    for (const [name, operation] of makeOperations())
      context.say(measure(name, operation, context.rounds));
    return Promise.resolve(undefined);
  },
};

function makeOperations(): [name: string, operation: () => void][] {
  const requests = new RequestParser();
  const responses = new ResponseParser();
  const decoder = new ChunkedDecoder();
  const writer = new HeadWriter();
  const cuts = compileForwardCuts(["x-forwarded-for", "x-request-id"]);
  const parseRequest = (bytes: Buffer): void => {
    requests.reset();
    if (requests.execute(bytes, 0, bytes.length) !== Parse.Complete) throw new Error("refused");
  };
  return [
    [`request of ${curl.length} bytes (curl)`, () => parseRequest(curl)],
    [`request of ${browser.length} bytes (browser)`, () => parseRequest(browser)],
    [
      `response of ${answer.length} bytes`,
      () => {
        responses.reset();
        const status = responses.execute(answer, 0, answer.length);
        if (status !== Parse.Complete) throw new Error("refused");
      },
    ],
    [
      "chunked content of 16 KiB, skimmed",
      () => {
        decoder.reset();
        const status = decoder.skim(chunked, 0, chunked.length);
        if (status !== Chunk.Complete) throw new Error("refused");
      },
    ],
    [
      "browser request parsed and written for forwarding",
      () => {
        parseRequest(browser);
        writer.begin();
        writer.requestLine(requests, null);
        writer.copyFields(requests.fields, cuts);
        writer.field("X-Forwarded-For", "192.0.2.1");
        writer.field("X-Request-Id", "0123456789abcdef0123456789abcdef");
        writer.endHead();
      },
    ],
  ];
}

function measure(name: string, operation: () => void, rounds: number): string {
  const times: number[] = [];
  let heapBytes = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const heapBefore = process.memoryUsage().heapUsed;
    const started = process.hrtime.bigint();
    for (let index = 0; index < OPERATIONS; index++) operation();
    times.push(Number(process.hrtime.bigint() - started) / OPERATIONS);
    // A garbage collection makes the difference negative: such rounds are ignored.
    const grown = process.memoryUsage().heapUsed - heapBefore;
    if (grown >= 0) heapBytes = Math.min(heapBytes, grown / OPERATIONS);
  }
  times.sort((one, other) => one - other);
  const median = times[times.length >> 1]!.toFixed(0);
  return `  ${name}: median ${median} ns, best ${times[0]!.toFixed(0)} ns, heap ${heapBytes.toFixed(2)} bytes per operation`;
}
