// The verifier: tokens by an independent library (jose) or by hand, all reasons for rejection, and the issuer's keys
// over HTTP.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import * as fc from "fast-check";
import {
  exportJWK,
  exportPKCS8,
  exportSPKI,
  generateKeyPair,
  importPKCS8,
  SignJWT,
  type JWK,
  type JWTPayload,
} from "jose";
import {
  createTokenVerifier,
  hasScope,
  isWeakSecret,
  requireScope,
  type Verdict,
  type VerifierOptions,
} from "@platform/kernel/identity";
import { PlatformError } from "@platform/kernel/errors";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";

const NOW = 1_700_000_000;
const SECRET = "a secret of at least thirty-two bytes";
const ISSUER = "http://auth.test";
const AUDIENCE = "platform";
const USER = { iss: ISSUER, aud: AUDIENCE, sub: "u1", iat: NOW, exp: NOW + 900 };

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const signHs256 = (header: object, payload: object, secret: string | Buffer = SECRET): string => {
  const signed = `${encode(header)}.${encode(payload)}`;
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
};
const signSegments = (signed: string): string =>
  `${signed}.${createHmac("sha256", SECRET).update(signed).digest("base64url")}`;
/** Another encoding of the same bytes: if the length is not a multiple of 4, some bits are unused. */
const withUnusedBits = (base64url: string): string => {
  const last = base64url.length % 4;
  assert.ok(last === 2 || last === 3 || base64url.includes("."));
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return base64url.slice(0, -1) + alphabet[alphabet.indexOf(base64url.at(-1)!) + 1]!;
};
const hs256 = (payload: object): string => signHs256({ alg: "HS256", typ: "JWT" }, payload);

const makeClock = (): ManualClock => createManualClock(NOW * 1_000);
const makeHs256 = (more: Partial<VerifierOptions> = {}) =>
  createTokenVerifier({ clock: makeClock(), secret: SECRET, ...more });
const codeOf = (verdict: Verdict | Promise<Verdict>): string => {
  assert.ok(!(verdict instanceof Promise), "the verdict should be there at once");
  return verdict.kind === "refused" ? verdict.code : verdict.kind;
};

describe("static tokens", () => {
  test("each static token is the operator; other tokens are unknown", () => {
    const verifier = createTokenVerifier({ clock: makeClock(), staticTokens: ["one", "two"] });
    assert.equal(codeOf(verifier.verify("one")), "operator");
    assert.equal(codeOf(verifier.verify("two")), "operator");
    for (const token of ["", "on", "onee", "ONE", "one ", hs256(USER)]) {
      assert.equal(codeOf(verifier.verify(token)), "unknown_token", token);
    }
  });

  test("options that accept no token, and an empty secret, are rejected", () => {
    const clock = makeClock();
    assert.throws(() => createTokenVerifier({ clock }), /requires a static token/);
    assert.throws(() => createTokenVerifier({ clock, staticTokens: [""] }), /empty/);
    assert.throws(() => createTokenVerifier({ clock, secret: "" }), /empty/);
    const jwks = { url: "http://x/jwks" };
    assert.throws(() => createTokenVerifier({ clock, jwks }), /issuer and an audience/);
    assert.throws(
      () => createTokenVerifier({ clock, jwks, issuer: "i", audience: [] }),
      /audience/,
    );
  });

  test("a secret below 32 bytes is weak", () => {
    assert.ok(isWeakSecret("x".repeat(31)) && !isWeakSecret("x".repeat(32)));
  });
});

describe("HS256", () => {
  test("a valid token returns its typed claims", async () => {
    const token = await new SignJWT({
      username: "ann",
      scope: "a:read  b:write",
      roles: ["admin"],
      tenant: "t",
      policy_version: 3,
      sid: "s",
      custom: [1],
    })
      .setProtectedHeader({ alg: "HS256" })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject("u1")
      .setJti("j")
      .setIssuedAt(NOW)
      .setExpirationTime(NOW + 60)
      .sign(Buffer.from(SECRET));
    const verdict = makeHs256({ issuer: ISSUER, audience: ["other", AUDIENCE] }).verify(token);
    assert.ok(!(verdict instanceof Promise) && verdict.kind === "user");
    const { all, ...claims } = verdict.claims;
    assert.deepEqual(claims, {
      iss: ISSUER,
      sub: "u1",
      aud: [AUDIENCE],
      exp: NOW + 60,
      iat: NOW,
      jti: "j",
      sid: "s",
      username: "ann",
      scope: ["a:read", "b:write"],
      roles: ["admin"],
      tenant: "t",
      policy_version: 3,
    });
    assert.deepEqual(all["custom"], [1]);
  });

  const refused: [name: string, token: string, code: string][] = [
    ["alg none without a signature", `${encode({ alg: "none" })}.${encode(USER)}.`, "malformed"],
    [
      "alg none with some signature",
      `${encode({ alg: "none" })}.${encode(USER)}.AAAA`,
      "algorithm_not_allowed",
    ],
    ["alg NONE", signHs256({ alg: "NONE" }, USER), "algorithm_not_allowed"],
    ["alg HS512", signHs256({ alg: "HS512" }, USER), "algorithm_not_allowed"],
    ["alg hs256", signHs256({ alg: "hs256" }, USER), "algorithm_not_allowed"],
    ["alg RS256 without a JWKS", signHs256({ alg: "RS256" }, USER), "algorithm_not_allowed"],
    ["no alg", signHs256({}, USER), "malformed"],
    ["alg as a list", signHs256({ alg: ["HS256"] }, USER), "malformed"],
    ["a wrong secret", signHs256({ alg: "HS256" }, USER, "another"), "bad_signature"],
    ["an empty secret", signHs256({ alg: "HS256" }, USER, ""), "bad_signature"],
    ["b64", signHs256({ alg: "HS256", b64: false }, USER), "malformed"],
    ["crit", signHs256({ alg: "HS256", crit: ["b64"], b64: false }, USER), "malformed"],
    ["no exp", hs256({ ...USER, exp: undefined }), "malformed"],
    ["exp as text", hs256({ ...USER, exp: String(NOW + 900) }), "malformed"],
    ["a long past exp", hs256({ ...USER, exp: 1 }), "expired"],
    ["scope as a number", hs256({ ...USER, scope: 7 }), "malformed"],
    ["roles as an object", hs256({ ...USER, roles: { admin: true } }), "malformed"],
    ["sub as a number", hs256({ ...USER, sub: 7 }), "malformed"],
    ["cnf", hs256({ ...USER, cnf: { jkt: "x" } }), "key_bound"],
    ["another issuer", hs256({ ...USER, iss: "http://evil" }), "wrong_issuer"],
    ["no issuer", hs256({ ...USER, iss: undefined }), "wrong_issuer"],
    ["another audience", hs256({ ...USER, aud: "other" }), "wrong_audience"],
    ["no audience", hs256({ ...USER, aud: undefined }), "wrong_audience"],
    [
      "an audience that only contains ours",
      hs256({ ...USER, aud: ["platform2", "plat"] }),
      "wrong_audience",
    ],
    ["a payload that is a list", signHs256({ alg: "HS256" }, [1]), "malformed"],
    ["two segments", "a.b", "malformed"],
    ["four segments", `${hs256(USER)}.x`, "malformed"],
    ["five segments (JWE)", "a.b.c.d.e", "malformed"],
    ["padding", `${hs256(USER)}=`, "malformed"],
    ["standard base64", hs256(USER).replace(/\.[^.]+$/, ".a+/b"), "malformed"],
    ["an impossible length", hs256(USER).replace(/\.[^.]+$/, ".AAAAA"), "malformed"],
    [
      "bytes that are no UTF-8",
      `${Buffer.from([0x7b, 0xff]).toString("base64url")}.e30.AAAA`,
      "malformed",
    ],
    ["unused bits in the signature", withUnusedBits(hs256(USER)), "malformed"],
    [
      "unused bits in a signed segment",
      signSegments(
        `${encode({ alg: "HS256", n: 1 })}.${withUnusedBits(encode({ ...USER, a: 1 }))}`,
      ),
      "malformed",
    ],
    ["an ID token's type", signHs256({ alg: "HS256", typ: "id+jwt" }, USER), "wrong_type"],
    ["a logout token", signHs256({ alg: "HS256", typ: "logout+jwt" }, USER), "wrong_type"],
    ["a DPoP proof", signHs256({ alg: "HS256", typ: "dpop+jwt" }, USER), "wrong_type"],
    ["an empty type", signHs256({ alg: "HS256", typ: "" }, USER), "wrong_type"],
    ["white space inside", hs256(USER).replace(".", ". "), "malformed"],
    ["nothing", "", "malformed"],
  ];
  for (const typ of [undefined, "JWT", "jwt", "at+jwt", "application/at+jwt", "application/jwt"]) {
    test(`the type ${typ ?? "undefined"} is accepted`, () => {
      assert.equal(codeOf(makeHs256().verify(signHs256({ alg: "HS256", typ }, USER))), "user");
    });
  }

  for (const [name, token, code] of refused) {
    test(`${name} is rejected as ${code}`, () => {
      const verifier = makeHs256({ issuer: ISSUER, audience: AUDIENCE });
      assert.equal(codeOf(verifier.verify(token)), code);
    });
  }

  test("times are checked with the allowed clock skew, to the second", () => {
    const clock = makeClock();
    const verifier = makeHs256({ clock, leewaySeconds: 10 });
    const at = (payload: object): string => codeOf(verifier.verify(hs256(payload)));
    assert.equal(at({ exp: NOW - 9 }), "user");
    assert.equal(at({ exp: NOW - 10 }), "expired");
    assert.equal(at({ exp: NOW + 60, nbf: NOW + 10 }), "user");
    assert.equal(at({ exp: NOW + 60, nbf: NOW + 11 }), "not_yet_valid");
  });

  test("a token beyond the maximum length is not parsed", () => {
    const token = hs256({ ...USER, fill: "x".repeat(400) });
    assert.equal(codeOf(makeHs256({ tokenBytesMax: token.length }).verify(token)), "user");
    assert.equal(codeOf(makeHs256({ tokenBytesMax: token.length - 1 }).verify(token)), "too_large");
  });

  test("a token with any changed character is rejected", () => {
    const verifier = makeHs256();
    const token = hs256(USER);
    fc.assert(
      fc.property(
        fc.nat(token.length - 1),
        fc.constantFrom(..."ABab09_-.=".split("")),
        (index, character) => {
          const changed = token.slice(0, index) + character + token.slice(index + 1);
          const verdict = verifier.verify(changed);
          assert.ok(!(verdict instanceof Promise));
          assert.equal(verdict.kind, changed === token ? "user" : "refused");
        },
      ),
    );
  });

  test("arbitrary texts are rejected without an exception", () => {
    const verifier = makeHs256();
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
        assert.notEqual(codeOf(verifier.verify(`${a}.${b}.${c}`)), "user");
      }),
    );
  });

  test("a cached token expires, and revocation is checked at each use", () => {
    const clock = makeClock();
    const revoked = new Set<string>();
    let asked = 0;
    const verifier = makeHs256({
      clock,
      leewaySeconds: 0,
      isRevoked: (claims) => {
        asked += 1;
        return revoked.has(claims.sub ?? "");
      },
    });
    const token = hs256(USER);
    assert.equal(codeOf(verifier.verify(token)), "user");
    assert.equal(codeOf(verifier.verify(token)), "user");
    revoked.add("u1");
    assert.equal(codeOf(verifier.verify(token)), "revoked");
    revoked.clear();
    assert.equal(codeOf(verifier.verify(token)), "user");
    assert.equal(asked, 4);
    clock.advance(900_000);
    assert.equal(codeOf(verifier.verify(token)), "expired");
  });

  test("tokens are still verified with a full cache, and without one", () => {
    const verifier = makeHs256({ cacheMax: 2 });
    const tokens = ["a", "b", "c"].map((sub) => hs256({ ...USER, sub }));
    for (const token of [...tokens, ...tokens])
      assert.equal(codeOf(verifier.verify(token)), "user");
    const none = makeHs256({ cacheMax: 0 });
    assert.equal(codeOf(none.verify(tokens[0]!)), "user");
  });
});

interface Issuer {
  url: string;
  fetches: () => number;
  keys: JWK[];
  respond: { status: number; body?: string; hangs?: boolean; location?: string };
}

async function startIssuer(context: TestContext, keys: JWK[]): Promise<Issuer> {
  let fetches = 0;
  const issuer: Issuer = { url: "", fetches: () => fetches, keys, respond: { status: 200 } };
  const server = createServer((_request, response) => {
    fetches += 1;
    const { status, body, hangs, location } = issuer.respond;
    if (hangs === true) return;
    if (location !== undefined) response.setHeader("Location", location);
    response.writeHead(status).end(body ?? JSON.stringify({ keys: issuer.keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`;
  return issuer;
}

const rsa = await generateKeyPair("RS256", { extractable: true });
const other = await generateKeyPair("RS256", { extractable: true });
const ec = await generateKeyPair("ES256", { extractable: true });
const rsaJwk = { ...(await exportJWK(rsa.publicKey)), kid: "r1", use: "sig", alg: "RS256" };
const otherJwk = { ...(await exportJWK(other.publicKey)), kid: "r2", use: "sig" };
const ecJwk = { ...(await exportJWK(ec.publicKey)), kid: "e1" };

const sign = (
  key: CryptoKey,
  header: { alg: string; kid?: string; typ?: string },
  payload: JWTPayload = USER,
): Promise<string> =>
  new SignJWT(payload).setProtectedHeader({ typ: "at+jwt", ...header }).sign(key);

describe("tokens of a key set", () => {
  const make = (
    url: string,
    clock: ManualClock,
    more: Partial<VerifierOptions> = {},
    jwks: object = {},
  ) =>
    createTokenVerifier({
      clock,
      jwks: { url, ...jwks },
      issuer: ISSUER,
      audience: AUDIENCE,
      ...more,
    });

  test("valid tokens of both algorithms are accepted, synchronously after the first fetch", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk, ecJwk]);
    const verifier = make(issuer.url, makeClock());
    const first = verifier.verify(await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }));
    assert.ok(first instanceof Promise);
    assert.equal((await first).kind, "user");
    assert.equal(
      codeOf(verifier.verify(await sign(ec.privateKey, { alg: "ES256", kid: "e1" }))),
      "user",
    );
    assert.equal(codeOf(verifier.verify(await sign(ec.privateKey, { alg: "ES256" }))), "user");
    assert.equal(issuer.fetches(), 1);
  });

  test("keys fetched in advance verify tokens while the issuer is unavailable", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk]);
    issuer.respond = { status: 503 };
    const errors: unknown[] = [];
    const onError = (error: unknown) => void errors.push(error);
    const verifier = make(issuer.url, makeClock(), {}, { prefetch: true, onError });
    await waitFor(() => issuer.fetches() === 1);
    issuer.respond = { status: 200 };
    await waitFor(() => issuer.fetches() === 2);
    issuer.respond = { status: 503 };
    const token = await sign(rsa.privateKey, { alg: "RS256", kid: "r1" });
    assert.equal(codeOf(await verifier.verify(token)), "user");
    assert.equal(codeOf(verifier.verify(token)), "user");
    assert.equal(issuer.fetches(), 2);
    assert.deepEqual(errors, [], "the first failure is that of no token");
  });

  test("concurrent tokens cause one fetch", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk]);
    const verifier = make(issuer.url, makeClock());
    const tokens = await Promise.all(
      ["a", "b", "c"].map((sub) =>
        sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, sub }),
      ),
    );
    const verdicts = await Promise.all(tokens.map(async (token) => verifier.verify(token)));
    assert.deepEqual(
      verdicts.map((verdict) => verdict.kind),
      ["user", "user", "user"],
    );
    assert.equal(issuer.fetches(), 1);
  });

  test("tokens that the keys may not be used for are rejected", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk, ecJwk]);
    const verifier = make(issuer.url, makeClock(), { secret: SECRET });
    await verifier.verify(await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }));
    const pem = await exportSPKI(rsa.publicKey);
    const modulus = Buffer.from(rsaJwk.n!, "base64url");
    const at = { typ: "at+jwt" };
    const cases: [name: string, token: string, code: string][] = [
      [
        "HS256 with the RSA key's PEM as secret",
        signHs256({ ...at, alg: "HS256", kid: "r1" }, USER, pem),
        "bad_signature",
      ],
      [
        "HS256 with the modulus as secret",
        signHs256({ ...at, alg: "HS256", kid: "r1" }, USER, modulus),
        "bad_signature",
      ],
      [
        "ES256 with an RSA key's id",
        await sign(ec.privateKey, { alg: "ES256", kid: "r1" }),
        "unknown_key",
      ],
      [
        "another key under a known id",
        await sign(other.privateKey, { alg: "RS256", kid: "r1" }),
        "bad_signature",
      ],
      [
        "an RSA-PSS signature",
        await sign((await generateKeyPair("PS256")).privateKey, { alg: "PS256", kid: "r1" }),
        "unknown_key",
      ],
      [
        "an unknown key id",
        await sign(rsa.privateKey, { alg: "RS256", kid: "../../dev/null" }),
        "unknown_key",
      ],
      [
        "a key id named like a member of objects",
        await sign(rsa.privateKey, { alg: "RS256", kid: "__proto__" }),
        "unknown_key",
      ],
      [
        "a key id beyond its bound",
        await sign(rsa.privateKey, { alg: "RS256", kid: "k".repeat(300) }),
        "malformed",
      ],
      [
        "an ID token",
        await sign(rsa.privateKey, { alg: "RS256", kid: "r1", typ: "JWT" }),
        "wrong_type",
      ],
      [
        "another audience",
        await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, aud: "x" }),
        "wrong_audience",
      ],
      [
        "another issuer",
        await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, iss: "x" }),
        "wrong_issuer",
      ],
      [
        "a DPoP-bound token",
        await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, cnf: { jkt: "x" } }),
        "key_bound",
      ],
      [
        "an expired one",
        await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, exp: NOW - 31 }),
        "expired",
      ],
    ];
    const verified = ["wrong_type", "wrong_audience", "wrong_issuer", "key_bound", "expired"];
    for (const [name, token, code] of cases) {
      const verdict = await verifier.verify(token);
      assert.equal(codeOf(verdict), code, name);
      assert.ok(verdict.kind === "refused");
      // The caller learns a reason only with a signature of the issuer; the log always.
      assert.equal(verdict.detail !== "The token is not valid.", verified.includes(code), name);
      assert.notEqual(verdict.reason, "The token is not valid.", name);
    }
    const embedded = await new SignJWT(USER)
      .setProtectedHeader({ alg: "RS256", typ: "at+jwt", jwk: otherJwk, jku: issuer.url })
      .sign(other.privateKey);
    assert.equal(codeOf(await verifier.verify(embedded)), "bad_signature", "keys inside the token");
    const der = (await sign(ec.privateKey, { alg: "ES256", kid: "e1" })).replace(
      /\.[^.]+$/,
      `.${"A".repeat(94)}`,
    );
    assert.equal(
      codeOf(await verifier.verify(der)),
      "bad_signature",
      "an ES256 signature of another length",
    );
  });

  test("keys for other uses, of other types or too short are skipped", async (context) => {
    const short = { kty: "RSA", n: "u".repeat(171), e: "AQAB", kid: "short" };
    const long = { kty: "RSA", n: "u".repeat(2_731), e: "AQAB", kid: "long" };
    const issuer = await startIssuer(context, [
      { kty: "oct", k: encode(SECRET), kid: "o" },
      { ...rsaJwk, kid: "enc", use: "enc" },
      { ...rsaJwk, kid: "ps", alg: "PS256" },
      { ...rsaJwk, kid: "ops", key_ops: ["encrypt"] },
      short,
      long,
      null as unknown as JWK,
      ecJwk,
    ]);
    const verifier = make(issuer.url, makeClock());
    for (const kid of ["enc", "ps", "ops", "short", "long", "o"]) {
      const verdict = await verifier.verify(await sign(rsa.privateKey, { alg: "RS256", kid }));
      assert.equal(codeOf(verdict), "unknown_key", kid);
    }
    assert.equal(
      codeOf(verifier.verify(await sign(ec.privateKey, { alg: "ES256", kid: "e1" }))),
      "user",
    );
  });

  test("each algorithm is accepted with the key that is for exactly this one", async (context) => {
    const algorithms = [
      "RS256",
      "RS384",
      "RS512",
      "PS256",
      "PS384",
      "PS512",
      "ES256",
      "ES384",
      "ES512",
      "EdDSA",
    ];
    const pairs = await Promise.all(
      algorithms.map((alg) => generateKeyPair(alg, { extractable: true })),
    );
    const jwks = await Promise.all(
      pairs.map(async ({ publicKey }, index) => {
        const alg = algorithms[index]!;
        // A curve says it all; of RSA keys, those without `alg` are for RS256.
        const named = /^(?:[RP]S)/.test(alg) && alg !== "RS256" ? { alg } : {};
        return { ...(await exportJWK(publicKey)), kid: `k-${alg}`, ...named };
      }),
    );
    const issuer = await startIssuer(context, jwks);
    const verifier = make(issuer.url, makeClock());
    for (const [index, alg] of algorithms.entries()) {
      const key = pairs[index]!.privateKey;
      const token = await sign(key, { alg, kid: `k-${alg}` });
      assert.equal(codeOf(await verifier.verify(token)), "user", alg);
      assert.equal(
        codeOf(await verifier.verify(await sign(key, { alg }))),
        "user",
        `${alg} without kid`,
      );
      const [head, body, signature = ""] = token.split(".");
      const bytes = Buffer.from(signature, "base64url");
      bytes[bytes.length - 1]! ^= 1;
      const forged = `${head}.${body}.${bytes.toString("base64url")}`;
      assert.equal(codeOf(await verifier.verify(forged)), "bad_signature", alg);
      const short = `${head}.${body}.${bytes.subarray(1).toString("base64url")}`;
      assert.equal(codeOf(await verifier.verify(short)), "bad_signature", alg);
      for (const other of algorithms) {
        if (other === alg) continue;
        const swapped = await sign(key, { alg, kid: `k-${other}` });
        assert.equal(codeOf(await verifier.verify(swapped)), "unknown_key", `${alg} for ${other}`);
        // The signature of one algorithm under the name of another, with the key of the name.
        const renamed = `${encode({ alg: other, typ: "at+jwt", kid: `k-${other}` })}.${body}.${signature}`;
        assert.equal(codeOf(await verifier.verify(renamed)), "bad_signature", `${alg} as ${other}`);
      }
    }
  });

  test("one RSA key is for one algorithm, whatever the token says", async (context) => {
    const jwk = await exportJWK(rsa.publicKey);
    const issuer = await startIssuer(context, [
      { ...jwk, kid: "ps", alg: "PS256" },
      { ...jwk, kid: "none" },
      { ...jwk, kid: "es", alg: "ES256" },
      { ...jwk, kid: "oct", alg: "HS256" },
      { ...jwk, kid: "rsa-oaep", alg: "RSA-OAEP" },
      { ...jwk, kid: "e1", alg: "RS512", e: "AQ" },
      { ...(await exportJWK(ec.publicKey)), kid: "ec", alg: "ES384" },
    ]);
    const verifier = make(issuer.url, makeClock());
    const pem = await exportPKCS8(rsa.privateKey);
    const accepted: string[] = [];
    for (const alg of ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]) {
      const key = await importPKCS8(pem, alg);
      for (const kid of ["ps", "none", "es", "oct", "rsa-oaep", "e1"]) {
        const verdict = await verifier.verify(await sign(key, { alg, kid }));
        if (codeOf(verdict) === "user") accepted.push(`${alg} ${kid}`);
        else assert.equal(codeOf(verdict), "unknown_key");
      }
    }
    assert.deepEqual(accepted, ["RS256 none", "PS256 ps"]);
    const pss = await importPKCS8(await exportPKCS8(ec.privateKey), "ES256");
    assert.equal(
      codeOf(await verifier.verify(await sign(pss, { alg: "ES256", kid: "ec" }))),
      "unknown_key",
    );
  });

  test("a new key is fetched when its id is first used, at most every 10 s", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk]);
    const clock = makeClock();
    const verifier = make(issuer.url, clock);
    const fresh = await sign(other.privateKey, { alg: "RS256", kid: "r2" });
    assert.equal(codeOf(await verifier.verify(fresh)), "unknown_key");
    issuer.keys = [rsaJwk, otherJwk];
    clock.advance(9_999);
    assert.equal(codeOf(verifier.verify(fresh)), "unknown_key");
    assert.equal(issuer.fetches(), 1);
    clock.advance(1);
    assert.equal((await verifier.verify(fresh)).kind, "user");
    assert.equal(issuer.fetches(), 2);
  });

  test("a new key is fetched again soon after a failure, and less often after each further one", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk]);
    const clock = makeClock();
    const verifier = make(issuer.url, clock);
    const fresh = await sign(other.privateKey, { alg: "RS256", kid: "r2" });
    assert.equal(codeOf(await verifier.verify(fresh)), "unknown_key");
    issuer.keys = [rsaJwk, otherJwk];
    issuer.respond = { status: 503 };
    let fetches = 1;
    for (const waitMs of [10_000, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
      clock.advance(waitMs - 1);
      assert.equal(codeOf(await verifier.verify(fresh)), "unknown_key");
      assert.equal(issuer.fetches(), fetches);
      clock.advance(1);
      assert.equal(codeOf(await verifier.verify(fresh)), "unknown_key");
      assert.equal(issuer.fetches(), ++fetches);
    }
    issuer.respond = { status: 200 };
    clock.advance(10_000);
    assert.equal((await verifier.verify(fresh)).kind, "user");
  });

  test("tokens of a removed key are evicted from the cache", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk, otherJwk]);
    const clock = makeClock();
    const verifier = make(issuer.url, clock);
    const token = await sign(other.privateKey, { alg: "RS256", kid: "r2" });
    assert.equal((await verifier.verify(token)).kind, "user");
    issuer.keys = [rsaJwk];
    clock.advance(10_000);
    await verifier.verify(await sign(rsa.privateKey, { alg: "RS256", kid: "unknown" }));
    assert.equal(codeOf(verifier.verify(token)), "unknown_key");
  });

  test("keys are kept while the issuer is down, and refetched in the background", async (context) => {
    const issuer = await startIssuer(context, [rsaJwk]);
    const clock = makeClock();
    const errors: unknown[] = [];
    const jwks = { refreshMs: 60_000, onError: (error: unknown) => void errors.push(error) };
    const verifier = make(issuer.url, clock, {}, jwks);
    assert.equal(
      (await verifier.verify(await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }))).kind,
      "user",
    );
    issuer.respond = { status: 500 };
    clock.advance(60_000);
    const later = await sign(rsa.privateKey, { alg: "RS256", kid: "r1" }, { ...USER, sub: "u2" });
    assert.equal(codeOf(verifier.verify(later)), "user");
    const deadline = performance.now() + 20_000;
    while (errors.length === 0 && performance.now() < deadline) await new Promise(setImmediate);
    assert.match(String(errors[0]), /status 500/);
    assert.equal(issuer.fetches(), 2);
  });

  const broken: [name: string, respond: Issuer["respond"]][] = [
    ["an error", { status: 503 }],
    ["no JSON", { status: 200, body: "<html>" }],
    ["no key set", { status: 200, body: "{}" }],
    ["no usable key", { status: 200, body: '{"keys":[]}' }],
    ["too much", { status: 200, body: `{"keys":[],"fill":"${"x".repeat(2_000)}"}` }],
    ["nothing in time", { status: 200, hangs: true }],
    ["a redirect", { status: 302, location: "/elsewhere" }],
  ];
  for (const [name, respond] of broken) {
    test(`an issuer that responds with ${name} makes keys unavailable until it recovers`, async (context) => {
      const issuer = await startIssuer(context, [rsaJwk]);
      issuer.respond = respond;
      const clock = makeClock();
      const timeoutMs = respond.hangs === true ? 2_000 : 30_000;
      const verifier = make(issuer.url, clock, {}, { timeoutMs, answerBytesMax: 1_000 });
      const token = await sign(rsa.privateKey, { alg: "RS256", kid: "r1" });
      assert.equal(codeOf(await verifier.verify(token)), "keys_unavailable");
      assert.equal(codeOf(verifier.verify(token)), "keys_unavailable");
      issuer.respond = { status: 200 };
      clock.advance(1_000);
      assert.equal((await verifier.verify(token)).kind, "user");
    });
  }
});

describe("profiles of tokens", () => {
  const workload = { sub: "spiffe://prod.test/api", aud: ["gateway"], exp: NOW + 300 };
  const svid = (payload: JWTPayload, typ?: string) =>
    new SignJWT(payload)
      .setProtectedHeader({ alg: "ES256", kid: "e1", ...(typ === undefined ? {} : { typ }) })
      .sign(ec.privateKey);
  const accepts = async (url: string, more: Partial<VerifierOptions>, token: string) =>
    codeOf(await createTokenVerifier({ clock: makeClock(), jwks: { url }, ...more }).verify(token));

  test("unbound accepts tokens of any issuer, audience and type that the key set signed", async (context) => {
    const { url } = await startIssuer(context, [rsaJwk, ecJwk]);
    const unbound = { profile: { kind: "unbound" } } as const;
    const plain = await sign(
      rsa.privateKey,
      { alg: "RS256", kid: "r1", typ: "JWT" },
      { exp: NOW + 9 },
    );
    assert.equal(await accepts(url, unbound, plain), "user");
    const foreign = await sign(other.privateKey, { alg: "RS256", kid: "r1" });
    assert.equal(await accepts(url, unbound, foreign), "bad_signature");
    assert.equal(await accepts(url, unbound, hs256(USER)), "algorithm_not_allowed");
    const bound = { ...unbound, audience: "gateway" };
    assert.equal(await accepts(url, bound, plain), "wrong_audience");
  });

  test("jwt-svid accepts workloads of the trust domain only, for its audience", async (context) => {
    const { url } = await startIssuer(context, [{ ...ecJwk, use: "jwt-svid" }]);
    const profile = { kind: "jwt-svid", trustDomain: "prod.test" } as const;
    const options = { profile, audience: "gateway" };
    assert.equal(await accepts(url, options, await svid(workload)), "user");
    assert.equal(await accepts(url, options, await svid(workload, "JOSE")), "user");
    assert.equal(await accepts(url, options, await svid(workload, "at+jwt")), "wrong_type");
    const others = [
      "spiffe://prod.test.evil/api",
      "spiffe://prod.test",
      "spiffe://prod.test/",
      "spiffe://prod.test//api",
      "spiffe://prod.test/api/",
      "spiffe://prod.test/./api",
      "spiffe://prod.test/a/../api",
      "spiffe://prod.test/..",
      "spiffe://prod.test/api?x",
      "spiffe://prod.test/api#x",
      "spiffe://prod.test/a%2fb",
      `spiffe://prod.test/${"a".repeat(2_048)}`,
      "api",
    ];
    for (const path of ["a/b", "..a/.b", "a..", "A-1_x.y"]) {
      const token = await svid({ ...workload, sub: `spiffe://prod.test/${path}` });
      assert.equal(await accepts(url, options, token), "user", path);
    }
    for (const sub of others) {
      const token = await svid({ ...workload, sub });
      assert.equal(await accepts(url, options, token), "wrong_trust_domain", sub);
    }
    const elsewhere = await svid({ ...workload, aud: "billing" });
    assert.equal(await accepts(url, options, elsewhere), "wrong_audience");
    const nobody = await svid({ aud: "gateway", exp: NOW + 300 });
    assert.equal(await accepts(url, options, nobody), "wrong_trust_domain");
  });

  test("jwt-svid accepts the algorithms of its specification, which has no EdDSA", async (context) => {
    const options = {
      profile: { kind: "jwt-svid", trustDomain: "prod.test" },
      audience: "gateway",
    } as const;
    for (const [alg, code] of [
      ["ES384", "user"],
      ["EdDSA", "algorithm_not_allowed"],
    ] as const) {
      const { publicKey, privateKey } = await generateKeyPair(alg);
      const jwk = { ...(await exportJWK(publicKey)), kid: "k", use: "jwt-svid" };
      const { url } = await startIssuer(context, [jwk]);
      const token = await new SignJWT(workload)
        .setProtectedHeader({ alg, kid: "k" })
        .sign(privateKey);
      assert.equal(await accepts(url, options, token), code);
    }
  });

  test("a verifier of workloads requires an audience", () => {
    const profile = { kind: "jwt-svid", trustDomain: "prod.test" } as const;
    const make = () =>
      createTokenVerifier({ clock: makeClock(), jwks: { url: "http://x" }, profile });
    assert.throws(make, /require an audience/);
  });
});

describe("access of callers", () => {
  const user = {
    kind: "user",
    claims: { exp: 1, scope: ["gate:admin"], roles: ["admin", "ops"], all: {} },
  } as const;
  const throwsCode = (work: () => void, code: string): void =>
    assert.throws(work, (error) => error instanceof PlatformError && error.code === code);

  test("a scope grants access, a role does not; the operator has access to everything", () => {
    assert.ok(hasScope(user, "gate:admin"));
    assert.ok(hasScope(user, "gate:read", "gate:admin"));
    for (const scope of ["gate", "gate:read", "admin", "ops", "*:*"])
      assert.ok(!hasScope(user, scope), scope);
    const administrator = { ...user, claims: { ...user.claims, scope: ["*:*"], roles: [] } };
    assert.ok(hasScope(administrator, "gate:admin"));
    assert.ok(hasScope({ kind: "operator" }, "x"));
    assert.ok(!hasScope({ kind: "anonymous" }, "x"));
  });

  test("a missing scope is 403 and named, an anonymous caller is 401", () => {
    requireScope(user, "gate:admin");
    throwsCode(() => requireScope(user, "admin"), "forbidden");
    throwsCode(() => requireScope({ kind: "anonymous" }, "x"), "unauthorized");
    try {
      requireScope(user, "x:y");
      assert.fail("expected a 403");
    } catch (error) {
      assert.ok(error instanceof PlatformError);
      assert.equal(
        error.headers["WWW-Authenticate"],
        'Bearer error="insufficient_scope", scope="x:y"',
      );
    }
  });
});
