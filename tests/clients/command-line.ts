// Command-line clients.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readProgramVersion, runProgram } from "../stage/program.ts";
import type { RealClient } from "./client.ts";

const UPLOAD_BYTES = 1_000_000;

interface Echo {
  method: string;
  headers: Record<string, string>;
  bodyBytes: number;
  bodySha256: string;
}

const curl: RealClient = {
  name: "curl",
  side: "in front",
  debianPackage: "curl",
  readVersion: () => readProgramVersion("curl", ["--version"]),
  shows: "GET, HEAD, HTTP/1.0, upload with `Expect: 100-continue` and chunked, connection reuse",
  exercise: async ({ gateway, stage }) => {
    const file = join(stage.folder, "upload");
    const body = Buffer.alloc(UPLOAD_BYTES, "platform");
    writeFileSync(file, body);
    const bodySha256 = createHash("sha256").update(body).digest("hex");
    const url = `${gateway.url}/echo`;
    const fetchEcho = async (...args: string[]): Promise<Echo> =>
      JSON.parse(await runProgram("curl", ["-sS", "--fail", ...args, url])) as Echo;

    const expecting = await fetchEcho("-H", "Expect: 100-continue", "--data-binary", `@${file}`);
    assert.deepEqual([expecting.bodyBytes, expecting.bodySha256], [UPLOAD_BYTES, bodySha256]);
    const chunked = await fetchEcho("-T", file, "-H", "Transfer-Encoding: chunked");
    assert.deepEqual([chunked.method, chunked.bodySha256], ["PUT", bodySha256]);
    assert.equal((await fetchEcho("--http1.0")).method, "GET");
    assert.match(
      await runProgram("curl", ["-sSI", `${gateway.url}/bytes?count=5`]),
      /content-length: 5/i,
    );
    const connects = await runProgram(
      "curl",
      "-sS -o /dev/null -o /dev/null -w %{num_connects}".split(" ").concat(url, url),
    );
    assert.equal(connects, "10", "the second request opened a connection of its own");
  },
};

const wrk: RealClient = {
  name: "wrk",
  side: "in front",
  debianPackage: "wrk",
  readVersion: () => readProgramVersion("wrk", ["--version"]),
  shows: "32 keep-alive connections under load for a second without errors",
  exercise: async ({ gateway }) => {
    const output = await runProgram("wrk", ["-t1", "-c32", "-d1s", `${gateway.url}/short`]);
    assert.doesNotMatch(output, /Socket errors|Non-2xx/, output);
    assert.ok(Number(/(\d+) requests in/.exec(output)?.[1]) > 50, output);
  },
};

const h2load: RealClient = {
  name: "h2load --h1",
  side: "in front",
  debianPackage: "nghttp2-client",
  readVersion: () => readProgramVersion("h2load", ["--version"]),
  shows: "1 000 requests over 16 connections, all successful",
  exercise: async ({ gateway }) => {
    const output = await runProgram("h2load", ["--h1", "-n1000", "-c16", `${gateway.url}/short`]);
    assert.match(output, /1000 succeeded, 0 failed, 0 errored, 0 timeout/, output);
  },
};

/** Command-line clients, in the order of the table. */
export const COMMAND_LINE: readonly RealClient[] = [curl, wrk, h2load];
