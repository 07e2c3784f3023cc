// Cross-origin requests: https://docs.aws.amazon.com/AmazonS3/latest/userguide/cors.html and the Fetch standard
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, type Scene } from "../case.ts";

const ORIGIN = "https://app.example";

async function allow({ must }: Scene, ...rules: string[]): Promise<void> {
  const body = `<CORSConfiguration>${rules.map((rule) => `<CORSRule>${rule}</CORSRule>`).join("")}</CORSConfiguration>`;
  await must("PUT", "?cors", { body });
}

function preflight({ ask }: Scene, origin: string, method: string, headers?: string) {
  return ask("OPTIONS", "/key", {
    as: "nobody",
    headers: {
      origin,
      "access-control-request-method": method,
      ...(headers === undefined ? {} : { "access-control-request-headers": headers }),
    },
  });
}

const RULE = `<AllowedMethod>PUT</AllowedMethod><AllowedMethod>GET</AllowedMethod><AllowedOrigin>${ORIGIN}</AllowedOrigin><AllowedHeader>Content-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-amz-version-id</ExposeHeader><MaxAgeSeconds>90</MaxAgeSeconds>`;

export const cases = casesOf(
  "Requests of other origins",
  [
    "a preflight that fits needs no signature and is told what is allowed",
    async (scene) => {
      await allow(scene, RULE);
      const answer = await preflight(scene, ORIGIN, "PUT", "Content-Type, content-md5");
      assertEmpty(answer, 200);
      const { headers } = answer;
      assert.equal(headers["access-control-allow-origin"], ORIGIN);
      assert.match(headers["access-control-allow-methods"]!, /\bPUT\b/);
      assert.match(headers["access-control-allow-headers"]!, /content-type/);
      assert.equal(headers["access-control-max-age"], "90");
      assert.equal(headers["access-control-expose-headers"], "ETag, x-amz-version-id");
      assert.equal(headers["access-control-allow-credentials"], "true");
      assert.match(headers["vary"]!, /Origin/);
    },
  ],
  [
    "a preflight of another origin, method or header is AccessForbidden",
    async (scene) => {
      await allow(scene, RULE);
      const asked = [
        ["https://other.example", "PUT", undefined],
        [ORIGIN, "DELETE", undefined],
        [ORIGIN, "PUT", "x-custom"],
      ] as const;
      for (const [origin, method, headers] of asked) {
        const answer = await preflight(scene, origin, method, headers);
        assertError(answer, 403, "AccessForbidden");
        assert.equal(answer.headers["access-control-allow-origin"], undefined);
        assert.equal(answer.document.get("Method"), method);
      }
    },
  ],
  [
    "a preflight of a bucket without rules is AccessForbidden",
    async (scene) => assertError(await preflight(scene, ORIGIN, "GET"), 403, "AccessForbidden"),
  ],
  [
    "BadRequest for a preflight without Origin or method",
    async ({ ask }) => {
      const headers = { "access-control-request-method": "GET" };
      assertError(await ask("OPTIONS", "/key", { as: "nobody", headers }), 400, "BadRequest");
      const origin = { origin: ORIGIN };
      const answer = await ask("OPTIONS", "/key", { as: "nobody", headers: origin });
      assertError(answer, 400, "BadRequest");
    },
  ],
  [
    "a wildcard for all origins is answered as such, without credentials",
    async (scene) => {
      await allow(scene, "<AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin>");
      const { headers } = await preflight(scene, ORIGIN, "GET");
      assert.equal(headers["access-control-allow-origin"], "*");
      assert.equal(headers["access-control-allow-credentials"], undefined);
    },
  ],
  [
    "a wildcard within an origin stands for any text",
    async (scene) => {
      const origin = "<AllowedOrigin>https://*.example</AllowedOrigin>";
      await allow(scene, `<AllowedMethod>GET</AllowedMethod>${origin}`);
      assert.equal((await preflight(scene, "https://a.b.example", "GET")).status, 200);
      assert.equal((await preflight(scene, "http://a.example", "GET")).status, 403);
      assert.equal((await preflight(scene, "https://a.example.evil", "GET")).status, 403);
    },
  ],
  [
    "the first rule that fits is answered",
    async (scene) => {
      const rule = (age: number) => RULE.replace("90", String(age));
      await allow(scene, rule(1).replaceAll("GET", "HEAD"), rule(2));
      const put = await preflight(scene, ORIGIN, "PUT");
      assert.equal(put.headers["access-control-max-age"], "1");
      const get = await preflight(scene, ORIGIN, "GET");
      assert.equal(get.headers["access-control-max-age"], "2");
    },
  ],
  [
    "an answer to a page of an allowed origin may be read by it",
    async (scene) => {
      await allow(scene, RULE);
      await scene.put("key", "x");
      const { headers } = await scene.ask("GET", "/key", { headers: { origin: ORIGIN } });
      assert.equal(headers["access-control-allow-origin"], ORIGIN);
      assert.equal(headers["access-control-expose-headers"], "ETag, x-amz-version-id");
      assert.match(headers["access-control-allow-methods"]!, /GET/);
      assert.match(headers["vary"]!, /Origin/);
    },
  ],
  [
    "an error may be read, too",
    async (scene) => {
      await allow(scene, RULE);
      const answer = await scene.ask("GET", "/key", { headers: { origin: ORIGIN } });
      assertError(answer, 404, "NoSuchKey");
      assert.equal(answer.headers["access-control-allow-origin"], ORIGIN);
    },
  ],
  [
    "answers to others say nothing",
    async (scene) => {
      await allow(scene, RULE);
      await scene.put("key", "x");
      const none = await scene.ask("GET", "/key");
      assert.equal(none.headers["access-control-allow-origin"], undefined);
      const headers = { origin: "https://other.example" };
      const other = await scene.ask("GET", "/key", { headers });
      assert.equal(other.status, 200);
      assert.equal(other.headers["access-control-allow-origin"], undefined);
      const method = await scene.ask("DELETE", "/key", { headers: { origin: ORIGIN } });
      assert.equal(method.headers["access-control-allow-origin"], undefined);
    },
  ],
  [
    "a method that a request names itself, outside of a preflight, is the one that counts",
    async (scene) => {
      await allow(scene, RULE.replace("<AllowedMethod>PUT</AllowedMethod>", ""));
      const send = (named: string) =>
        scene.ask("PUT", "/key", {
          as: "nobody",
          headers: { origin: ORIGIN, "access-control-request-method": named },
        });
      const told = "access-control-allow-origin";
      assert.equal((await send("GET")).headers[told], ORIGIN);
      assert.equal((await send("PUT")).headers[told], undefined);
    },
  ],
);
