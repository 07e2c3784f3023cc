// Authentication of received mail where a tolerant reading would let forged mail pass: DKIM l=, SPF, ARC.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { authenticate, dkimSign } from "mailauth";
import { createAuthentication } from "../../src/inbound/authentication.ts";

type Zone = Record<string, Record<string, string[]>>;

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const KEY = privateKey.export({ type: "pkcs8", format: "pem" });
const KEY_RECORD = `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;
const HEADER =
  "From: ada@sender.example\r\nTo: a@shop.example\r\nSubject: Hi\r\nDate: Sat, 28 Nov 2026 12:00:00 +0000\r\n";
const BODY = "\r\nHello\r\n";
const SOURCE = {
  clientAddress: "192.0.2.9",
  helo: "mx.sender.example",
  sender: "ada@sender.example",
};

function createLookup(zone: Zone) {
  return async (name: string, type: string): Promise<string[][] | string[]> => {
    const values = zone[name.toLowerCase()]?.[type];
    if (values === undefined) throw Object.assign(new Error("none"), { code: "ENOTFOUND" });
    return type === "TXT" ? values.map((value) => [value]) : values;
  };
}

async function sign(mail: string, maxBodyLength?: number): Promise<string> {
  const key = { signingDomain: "sender.example", selector: "s1", privateKey: KEY };
  const limit = maxBodyLength === undefined ? {} : { maxBodyLength };
  const { signatures } = await dkimSign(mail, {
    ...key,
    canonicalization: "relaxed/relaxed",
    signatureData: [{ ...key, ...limit, algorithm: "rsa-sha256" }],
  });
  return `${signatures}${mail}`;
}

const DKIM_ZONE: Zone = {
  "s1._domainkey.sender.example": { TXT: [KEY_RECORD] },
  "_dmarc.sender.example": { TXT: ["v=DMARC1; p=reject"] },
};

test("a signature that does not cover the whole body is policy, not pass (RFC 6376 section 8.2)", async () => {
  const check = createAuthentication(createLookup(DKIM_ZONE), "mx.shop.example");
  const source = { ...SOURCE, helo: "evil.example", sender: "x@evil.example" };
  const limited = await sign(`${HEADER}${BODY}`, 7);
  const read = async (mail: string) => check(Buffer.from(mail), source);
  const whole = await read(limited);
  assert.deepEqual([whole.dkim, whole.dmarc, whole.dkimAligned], ["pass", "pass", true]);
  const appended = await read(`${limited}<h1>Pay here</h1>\r\n`);
  assert.deepEqual([appended.dkim, appended.dmarc], ["policy", "fail"]);
  assert.deepEqual([appended.dkimAligned, appended.policy], [false, "reject"]);
  assert.match(appended.headers, /^Authentication-Results: mx\.shop\.example; dkim=policy /m);
  const nothing = await read(await sign(`${HEADER}${BODY}`, 0));
  assert.deepEqual([nothing.dkim, nothing.dmarc], ["policy", "fail"]);
  // A second signature that covers everything counts.
  const twice = await read(await sign(await sign(`${HEADER}${BODY}`, 0)));
  assert.deepEqual([twice.dkim, twice.dmarc], ["pass", "pass"]);
  // Empty lines at the end are no content (RFC 6376 section 3.4.4).
  const lines = await read(`${limited}\r\n\r\n`);
  assert.equal(lines.dkim, "pass");
});

const SPF: readonly [record: string, result: string, helo?: string][] = [
  // RFC 7208 section 5.6: ip4 and ip6 have a network.
  ["v=spf1 ip6 -all", "permerror"],
  ["v=spf1 ip4 -all", "permerror"],
  ["v=spf1 ip6:2001:db8::/129 -all", "permerror"],
  // Section 4.6: a syntax error anywhere in the record is found first.
  ["v=spf1 ip4:192.0.2.9 foo", "permerror"],
  ["v=spf1 ip4:192.0.2.9 -all exp=", "permerror"],
  ["v=spf1 ip4:192.0.2.9 -all exp=a%b.example", "permerror"],
  ["v=spf1 ip4:192.0.2.9 -all exp=%{z}.example", "permerror"],
  ["v=spf1 exp=a.example exp=b.example -all", "permerror"],
  ["v=spf1 -all exp=why.sender.example", "fail"],
  // Section 7.2: c, r and t are for explanations only.
  ["v=spf1 exists:%{c}.sender.example -all", "permerror"],
  ["v=spf1 exists:%{r}.sender.example -all", "permerror"],
  ["v=spf1 a:%{t}.sender.example -all", "permerror"],
  // Sections 4.3 and 4.8: a name that a macro makes and that is no domain name matches nothing.
  ["v=spf1 exists:%{h} -all", "fail", "nodots"],
  ["v=spf1 a:%{h} -all", "fail", "[192.0.2.9]"],
  ["v=spf1 mx:%{h} -all", "fail", "my host"],
  ["v=spf1 exists:%{h} ip4:192.0.2.9 -all", "pass", ".."],
  ["v=spf1 -all exp=%{h}", "fail", "localhost"],
  ["v=spf1 foo=bar ip4:192.0.2.9 -all", "pass"],
  ["v=spf1 a/33 -all", "permerror"],
  ["v=spf1 -all:x", "permerror"],
];

for (const [record, result, helo = SOURCE.helo] of SPF) {
  test(`SPF: ${record} of ${helo} is ${result}`, async () => {
    const lookup = createLookup({ "sender.example": { TXT: [record] } });
    const check = createAuthentication(lookup, "mx.shop.example");
    const { spf, headers } = await check(Buffer.from(`${HEADER}${BODY}`), { ...SOURCE, helo });
    assert.equal(spf, result);
    assert.match(headers, new RegExp(`^Received-SPF: ${result}`));
  });
}

test("a seal with duplicate, upper-case or invalid tags fails the chain (RFC 8617 section 5.2)", async () => {
  const zone: Zone = { "s1._domainkey.list.example": { TXT: [KEY_RECORD] } };
  const lookup = createLookup(zone) as never;
  const mail = `${HEADER}${BODY}`;
  const { headers } = await authenticate(mail, {
    ip: "192.0.2.1",
    helo: "list.example",
    sender: "ada@sender.example",
    mta: "list.example",
    resolver: lookup,
    disableBimi: true,
    seal: { signingDomain: "list.example", selector: "s1", privateKey: KEY },
  });
  const check = createAuthentication(lookup, "mx.shop.example");
  const read = async (sealed: string) => (await check(Buffer.from(sealed + mail), SOURCE)).arc;
  assert.equal(await read(headers), "pass");
  assert.equal((await check(Buffer.from(mail), SOURCE)).arc, "none");
  for (const [from, to] of [
    [/^(ARC-Seal: i=1;)/m, "$1 i=1;"],
    [/^ARC-Seal: i=1/m, "ARC-Seal: I=1"],
    [/^(ARC-Seal: i=1;)/m, "$1 1x=2;"],
    [/^(ARC-Seal: i=1;)/m, "$1 =2;"],
    [/^ARC-Seal: i=1/m, "ARC-Seal: i=01x"],
    [/^ARC-Seal: i=1/m, "ARC-Seal: i=51"],
  ] as const) {
    const changed = headers.replace(from, to);
    assert.notEqual(changed, headers, to);
    assert.equal(await read(changed), "fail", to);
  }
});
