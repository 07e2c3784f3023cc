// Authentication of Kafka clients: SASL PLAIN and SCRAM, TLS, tenants.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import * as platformatic from "@platformatic/kafka";
import { Kafka, logLevel } from "kafkajs";
import { makeCertificate } from "@platform/testing/certificates";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  apiVersions,
  metadata,
  saslAuthenticate,
  saslHandshake,
} from "../../src/kafka/protocol/messages/index.ts";
import type { KafkaClient } from "./client.ts";
import { KafkaStage } from "./stage.ts";

const users = [
  { name: "anna", password: "correct horse", tenant: "red" },
  { name: "ben,=", password: "battery staple", tenant: "blue" },
];
const plain = (user: string, password: string, identity = "") =>
  Buffer.from(`${identity}\0${user}\0${password}`);

/** Of the Debian package of that name. */
const program = "kcat";

let stage: KafkaStage;
before(async () => {
  stage = await KafkaStage.open({ users, requiresAuthentication: true });
});
after(() => stage[Symbol.asyncDispose]());

async function begin(mechanism: string): Promise<KafkaClient> {
  const client = await stage.connect();
  const { errorCode } = await client.ask(saslHandshake, 1, { mechanism });
  assert.equal(errorCode, 0);
  return client;
}

async function list(client: KafkaClient): Promise<(string | null)[]> {
  const { topics } = await client.ask(metadata, 12, { topics: null });
  return topics.map(({ name }) => name);
}

describe("before authentication", () => {
  test("only ApiVersions is answered", async () => {
    const client = await stage.connect();
    assert.equal((await client.ask(apiVersions, 0, {})).errorCode, 0);
    await assert.rejects(client.ask(metadata, 12, { topics: null }), /closed/);
    assert.equal(stage.faults.at(-1)?.kind, "unauthenticated");
  });

  test("a request pipelined with the authentication is not served", async () => {
    const client = await begin("PLAIN");
    client.send(saslAuthenticate, 2, { authBytes: plain("anna", "wrong") });
    client.send(metadata, 12, { topics: null });
    assert.ok((await client.readFrame()) !== undefined);
    assert.equal(await client.readFrame(), undefined);
  });

  test("an unknown mechanism is rejected with a list of the supported ones", async () => {
    const client = await stage.connect();
    const answer = await client.ask(saslHandshake, 1, { mechanism: "GSSAPI" });
    assert.equal(answer.errorCode, ERROR_CODES.unsupportedSaslMechanism);
    assert.deepEqual(answer.mechanisms, ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]);
  });

  test("an authentication without a handshake is rejected", async () => {
    const client = await stage.connect();
    const answer = await client.ask(saslAuthenticate, 1, { authBytes: plain("anna", "x") });
    assert.equal(answer.errorCode, ERROR_CODES.illegalSaslState);
  });
});

describe("PLAIN", () => {
  for (const version of [0, 1, 2]) {
    test(`accepts valid credentials by SaslAuthenticate ${version}`, async () => {
      const client = await begin("PLAIN");
      const answer = await client.ask(saslAuthenticate, version, {
        authBytes: plain("anna", "correct horse"),
      });
      assert.equal(answer.errorCode, 0);
      assert.deepEqual(await list(client), await list(client));
    });
  }

  const wrong: [name: string, bytes: Buffer][] = [
    ["a wrong password", plain("anna", "correct")],
    ["an unknown user", plain("carl", "correct horse")],
    ["another identity", plain("anna", "correct horse", "ben,=")],
    ["no password", plain("anna", "")],
    ["no separators", Buffer.from("anna")],
    ["too many separators", Buffer.from("\0anna\0correct horse\0")],
    ["nothing", Buffer.alloc(0)],
  ];
  for (const [name, authBytes] of wrong) {
    test(`with ${name} ends the connection after the answer`, async () => {
      const client = await begin("PLAIN");
      const answer = await client.ask(saslAuthenticate, 1, { authBytes });
      assert.equal(answer.errorCode, ERROR_CODES.saslAuthenticationFailed);
      assert.equal(await client.readFrame(), undefined);
    });
  }

  test("works with bare frames after a handshake of version 0", async () => {
    const client = await stage.connect();
    await client.ask(saslHandshake, 0, { mechanism: "PLAIN" });
    const token = plain("anna", "correct horse");
    const length = Buffer.alloc(4);
    length.writeInt32BE(token.length);
    client.sendRaw(Buffer.concat([length, token]));
    assert.equal((await client.readFrame())!.length, 0);
    assert.ok(Array.isArray(await list(client)));
  });
});

describe("SCRAM", () => {
  for (const [mechanism, digest, bytes] of [
    ["SCRAM-SHA-256", "sha256", 32],
    ["SCRAM-SHA-512", "sha512", 64],
  ] as const) {
    const exchange = async (
      user: string,
      password: string,
      tamper = (text: string) => text,
      nonceInFront = "",
    ) => {
      const hmac = (key: Buffer, text: string) => createHmac(digest, key).update(text).digest();
      const client = await begin(mechanism);
      const bare = `n=${user},r=clientnonce`;
      const first = await client.ask(saslAuthenticate, 2, {
        authBytes: Buffer.from(`n,,${bare}`),
      });
      const serverFirst = first.authBytes.toString();
      const [, nonce, salt, rounds] = /^r=(.*),s=(.*),i=(\d+)$/.exec(serverFirst)!;
      const salted = pbkdf2Sync(
        password,
        Buffer.from(salt!, "base64"),
        Number(rounds),
        bytes,
        digest,
      );
      const clientKey = hmac(salted, "Client Key");
      const storedKey = createHash(digest).update(clientKey).digest();
      const withoutProof = `c=biws,r=${nonceInFront}${nonce}`;
      const message = `${bare},${serverFirst},${withoutProof}`;
      const signature = hmac(storedKey, message);
      const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]!));
      const final = tamper(`${withoutProof},p=${proof.toString("base64")}`);
      const answer = await client.ask(saslAuthenticate, 2, { authBytes: Buffer.from(final) });
      const verifier = `v=${hmac(hmac(salted, "Server Key"), message).toString("base64")}`;
      return { answer, client, verifier, serverFirst, salt };
    };

    test(`${mechanism} accepts valid credentials, and the server proves that it knows them`, async () => {
      const { answer, client, verifier } = await exchange("anna", "correct horse");
      assert.equal(answer.errorCode, 0);
      assert.equal(answer.authBytes.toString(), verifier);
      assert.ok(Array.isArray(await list(client)));
      const escaped = await exchange("ben=2C=3D", "battery staple");
      assert.equal(escaped.answer.errorCode, 0);
    });

    test(`${mechanism} accepts the client's nonce twice, as librdkafka before 2.6.1 sends it, and no other`, async () => {
      const same = (text: string) => text;
      const twice = await exchange("anna", "correct horse", same, "clientnonce");
      assert.equal(twice.answer.errorCode, 0);
      assert.equal(twice.answer.authBytes.toString(), twice.verifier);
      for (const other of ["clientnonceclientnonce", "servernonce", "c"]) {
        const { answer } = await exchange("anna", "correct horse", same, other);
        assert.equal(answer.errorCode, ERROR_CODES.saslAuthenticationFailed, other);
      }
    });

    test(`${mechanism} rejects a wrong password, an unknown user and a changed message in the same way`, async () => {
      const wrong = await exchange("anna", "correct");
      const unknown = await exchange("carl", "correct");
      const again = await exchange("carl", "correct");
      const changed = await exchange("anna", "correct horse", (text) => text.replace("r=c", "r=d"));
      const bound = await exchange("anna", "correct horse", (text) => text.replace("biws", "eSws"));
      for (const { answer } of [wrong, unknown, changed, bound]) {
        assert.equal(answer.errorCode, ERROR_CODES.saslAuthenticationFailed);
      }
      assert.equal(wrong.answer.errorMessage, unknown.answer.errorMessage);
      assert.equal(
        unknown.salt,
        again.salt,
        "a changing salt would reveal that the user does not exist",
      );
    });
  }
});

test("tenants only see their own topics", async () => {
  const clients = await Promise.all(
    users.map(async ({ name, password }) => {
      const client = await begin("PLAIN");
      await client.ask(saslAuthenticate, 2, { authBytes: plain(name, password) });
      return client;
    }),
  );
  await clients[0]!.ask(metadata, 12, { topics: [{ name: "shared-name" }] });
  assert.deepEqual(await list(clients[0]!), ["shared-name"]);
  assert.deepEqual(await list(clients[1]!), []);
  const topicId = (await clients[0]!.ask(metadata, 12, { topics: null })).topics[0]!.topicId;
  const byId = await clients[1]!.ask(metadata, 12, { topics: [{ name: null, topicId }] });
  assert.equal(byId.topics[0]!.errorCode, ERROR_CODES.unknownTopicId);
  assert.ok(stage.broker.topics.find("red", "shared-name"));
});

describe("real clients", () => {
  for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-512"]) {
    const isMissing = spawnSync(program, ["-V"]).status !== 0;
    const skip = isMissing ? "the Debian package kcat is not installed" : false;
    test(`kcat (librdkafka) authenticates by ${mechanism}`, { skip }, async () => {
      const settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "anna",
        "sasl.password": "correct horse",
      };
      const options = Object.entries(settings).flatMap(([name, value]) => [
        "-X",
        `${name}=${value}`,
      ]);
      const args = ["-b", `127.0.0.1:${stage.port}`, "-L", "-J", "-m", "30", ...options];
      const { stdout } = await promisify(execFile)(program, args, { timeout: 60_000 });
      assert.equal(JSON.parse(stdout).brokers.length, 1);
    });
  }

  for (const mechanism of ["plain", "scram-sha-256", "scram-sha-512"] as const) {
    test(`kafkajs authenticates by ${mechanism}`, async () => {
      const sasl = { mechanism, username: "anna", password: "correct horse" };
      const brokers = [`127.0.0.1:${stage.port}`];
      const kafka = new Kafka({ brokers, sasl: sasl as never, logLevel: logLevel.NOTHING });
      const admin = kafka.admin();
      await admin.connect();
      await admin.createTopics({ topics: [{ topic: `of-${mechanism}` }] });
      assert.ok((await admin.listTopics()).includes(`of-${mechanism}`));
      await admin.disconnect();
    });
  }

  test("@platformatic/kafka authenticates by SCRAM-SHA-512", async () => {
    const admin = new platformatic.Admin({
      clientId: "test",
      bootstrapBrokers: [`127.0.0.1:${stage.port}`],
      sasl: { mechanism: "SCRAM-SHA-512", username: "anna", password: "correct horse" },
    });
    await admin.createTopics({ topics: ["of-platformatic"] });
    assert.ok((await admin.listTopics()).includes("of-platformatic"));
    await admin.close();
  });
});

test("TLS connections use the same protocol", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pulse-tls-"));
  const { key, cert } = makeCertificate(folder, "localhost", { names: "IP:127.0.0.1" });
  const tls = { key: readFileSync(key), cert: readFileSync(cert) };
  await using secure = await KafkaStage.open({ tls });
  const client = await secure.connect({ ca: tls.cert });
  const { topics } = await client.ask(metadata, 12, { topics: [{ name: "one" }] });
  assert.equal(topics[0]!.errorCode, 0);
  const unencrypted = await secure.connect();
  unencrypted.send(metadata, 12, { topics: null });
  assert.ok(
    [undefined, 0].includes((await unencrypted.readFrame().catch(() => undefined))?.length),
  );
  rmSync(folder, { recursive: true });
});
