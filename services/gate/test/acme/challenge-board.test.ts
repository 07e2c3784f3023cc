// Pending challenges: their certificates, and what a worker refuses.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { createSecureContext } from "node:tls";
import { ChallengeBoard } from "../../src/acme/challenge-board.ts";
import { unsigned } from "../../src/acme/der.ts";

const PROOF = {
  type: "tls-alpn-01",
  name: "one.test",
  token: "token",
  keyAuthorization: "token.thumbprint",
} as const;

test("numbers have no zeros that their sign does not require", () => {
  const cases: [bytes: number[], encoded: number[]][] = [
    [[0], [2, 1, 0]],
    [
      [0, 0],
      [2, 1, 0],
    ],
    [
      [0, 0x7f, 1],
      [2, 2, 0x7f, 1],
    ],
    [
      [0, 0, 0x80],
      [2, 2, 0, 0x80],
    ],
    [
      [0x80, 0],
      [2, 3, 0, 0x80, 0],
    ],
    [[5], [2, 1, 5]],
  ];
  for (const [bytes, encoded] of cases) {
    assert.deepEqual([...unsigned(Buffer.from(bytes))], encoded, bytes.join());
  }
});

test("TLS accepts the certificate of a challenge", async () => {
  const board = new ChallengeBoard(() => Promise.resolve(), Date.now);
  await board.add(PROOF);
  const { certPem: cert, keyPem: key } = board.list().certificates["one.test"]!;
  assert.equal(new X509Certificate(cert).subjectAltName, "DNS:one.test");
  createSecureContext({ cert, key });
});

test("a challenge that a worker refuses is in no further change", async () => {
  let isRefused = true;
  const board = new ChallengeBoard(
    () => (isRefused ? Promise.reject(new Error("a worker refused it")) : Promise.resolve()),
    Date.now,
  );
  const other = { ...PROOF, type: "http-01", token: "other" } as const;
  for (const proof of [PROOF, other]) {
    await assert.rejects(board.add(proof), /a worker refused it/);
  }
  await assert.rejects(board.setOthers([PROOF, other]), /a worker refused it/);
  assert.deepEqual(board.list(), { certificates: {}, tokens: {} });
  isRefused = false;
  // The same ones of other gateways are tried again.
  await board.setOthers([PROOF, other]);
  assert.deepEqual(Object.keys(board.list().tokens), ["other"]);
  const remove = await board.add({ ...PROOF, name: "two.test" });
  assert.deepEqual(Object.keys(board.list().certificates), ["one.test", "two.test"]);
  await remove();
  assert.deepEqual(Object.keys(board.list().certificates), ["one.test"]);
});
