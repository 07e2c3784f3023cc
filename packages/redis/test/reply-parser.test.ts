// Replies of Redis, however the network cuts them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ReplyParser } from "../src/reply-parser.ts";

const REPLIES = Buffer.from(
  "+OK\r\n:-42\r\n$5\r\nh\u00e9\r\n\r\n$-1\r\n*3\r\n:1\r\n$0\r\n\r\n*1\r\n+x\r\n-ERR no\r\n",
);
const EXPECTED = ["OK", -42, "h\u00e9\r\n", null, [1, "", ["x"]], "ERR no"];

test("replies arrive byte by byte as they arrive at once", () => {
  const whole = new ReplyParser().read(REPLIES);
  const parser = new ReplyParser();
  const single = [...REPLIES].flatMap((byte) => parser.read(Buffer.from([byte])));
  for (const replies of [whole, single]) {
    const shown = replies.map((reply) => (reply instanceof Error ? reply.message : reply));
    assert.deepEqual(shown, EXPECTED);
  }
  assert.ok(whole.at(-1) instanceof Error, "an error reply is an Error");
});

test("a reply that is too long or has too many elements is refused", () => {
  const parser = new ReplyParser();
  const piece = Buffer.alloc(1_048_576, "x");
  assert.deepEqual(parser.read(Buffer.from("$3000000\r\n")), []);
  assert.throws(() => parser.read(Buffer.concat([piece, piece])), /too long/);
  assert.throws(() => new ReplyParser().read(Buffer.from("*65537\r\n")), /too many/);
  assert.throws(() => new ReplyParser().read(Buffer.from("?what\r\n")), /unknown kind/);
});
