// Records of DNS challenges at bind9: set and removed, refused, and missing at a server of the zone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { bindSkip as skip, startBind } from "@platform/testing/bind";
import { DnsChallenges, type DnsSettings } from "../../src/acme/dns-challenge.ts";
import { parseTsigKey } from "../../src/config/tsig-key.ts";
import { makeFolder } from "../fixture/gate-process.ts";

const ZONE = "example.test";
const RECORD = `_acme-challenge.${ZONE}`;
const proof = { name: ZONE, keyAuthorization: "token.thumbprint" };
const log = createLogger({ service: "gate", level: "error", write: () => undefined });

test("signed updates set and remove a record; faults are named", { skip }, async (context) => {
  const bind = await startBind(makeFolder(context), [ZONE]);
  context.after(() => bind.stop());
  const server = { host: "127.0.0.1", port: bind.port };
  const create = (tsigKey: string | undefined, zone = ZONE, readNowMs = Date.now) => {
    const key = tsigKey === undefined ? undefined : parseTsigKey(tsigKey);
    const settings: DnsSettings = { type: "rfc2136", server, zone, key };
    return new DnsChallenges({ settings, log, readNowMs });
  };
  const { signal } = new AbortController();
  // The certificate of another name has its record at the same place.
  const [one, two] = [
    await create(bind.tsigKey).add(proof, signal),
    await create(bind.tsigKey).add({ ...proof, keyAuthorization: "other" }, signal),
  ];
  assert.equal(bind.dig(RECORD, "TXT").split("\n").length, 2);
  await one();
  assert.equal(bind.dig(RECORD, "TXT").split("\n").length, 1);
  await two();
  assert.equal(bind.dig(RECORD, "TXT"), "");

  const other = Buffer.from("another secret of 32 bytes......").toString("base64");
  const late = (): number => Date.now() - 3_600_000;
  const faults: [challenges: DnsChallenges, says: RegExp][] = [
    [create(`hmac-sha256:test-key:${other}`), /dns-01: .*refuses the update: BADSIG$/],
    [create(`hmac-sha256:other-key:${other}`), /dns-01: .*refuses the update: BADKEY$/],
    [create(bind.tsigKey, ZONE, late), /dns-01: .*refuses the update: BADTIME$/],
    [create(undefined), /dns-01: .*refuses the update: REFUSED$/],
    [create(bind.tsigKey, "other.test"), /is not a name of the zone other\.test$/],
  ];
  for (const [challenges, says] of faults) {
    await assert.rejects(challenges.add(proof, signal), says);
  }
  assert.equal(bind.dig(RECORD, "TXT"), "");
});

test(
  "a server of the zone without the record is waited for, and named",
  { skip },
  async (context) => {
    const bind = await startBind(makeFolder(context), [ZONE]);
    context.after(() => bind.stop());
    // Nothing answers there.
    bind.update(ZONE, `add ${ZONE} 1 NS away.${ZONE}`, `add away.${ZONE} 1 A 127.0.0.2`);
    const server = { host: "127.0.0.1", port: bind.port };
    const settings: DnsSettings = {
      type: "rfc2136",
      server,
      zone: ZONE,
      key: parseTsigKey(bind.tsigKey),
    };
    const challenges = new DnsChallenges({ settings, log, readNowMs: Date.now });
    const added = challenges.add(proof, AbortSignal.timeout(1_000));
    await assert.rejects(
      added,
      /dns-01: the record of _acme-challenge\.example\.test is not at 127\.0\.0\.2:53$/,
    );
    assert.equal(bind.dig(RECORD, "TXT"), "");
  },
);
