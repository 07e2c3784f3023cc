// The interface of guests is stable: modules that were built for the first release are never rebuilt, and work in each later one.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FieldList, HttpGuest, compileHttpModule } from "@platform/wasm/http";

const REPOSITORY = fileURLToPath(new URL("../../../../", import.meta.url));
/** `samples.test.ts` runs the samples, `tests/conformance/http-wasm` the guests. */
const FOLDERS = [
  "services/gate/test/middleware/first-release/*.wasm",
  "tests/conformance/http-wasm/guests/*.wasm",
];

test("the modules of the first release are those that were built for it", () => {
  const digests = JSON.parse(
    readFileSync(new URL("first-release/digests.json", import.meta.url), "utf8"),
  ) as Record<string, string>;
  const found = Object.fromEntries(
    globSync(FOLDERS, { cwd: REPOSITORY }).map((path) => [
      basename(path),
      createHash("sha256")
        .update(readFileSync(`${REPOSITORY}${path}`))
        .digest("hex"),
    ]),
  );
  for (const [name, digest] of Object.entries(digests)) assert.equal(found[name], digest, name);
  assert.ok(Object.keys(digests).length >= 10);
});

test("a policy that was compiled by the first release decides as it did", () => {
  const bytes = readFileSync(new URL("first-release/policy.wasm", import.meta.url));
  const guest = new HttpGuest(compileHttpModule(bytes), {
    config: Buffer.alloc(0),
    fuelPerCall: 5_000_000,
    log: () => undefined,
    isLogged: () => false,
  });
  const decide = (method: string, uri: string, fields: [string, string][] = []): string => {
    const messages = {
      method,
      uri,
      protocolVersion: "HTTP/1.1",
      sourceAddress: "",
      status: 200,
      requestFields: new FieldList(fields),
      responseFields: new FieldList(),
      readRequestBody: () => ({ bytes: Buffer.alloc(0), isLast: true }),
      readResponseBody: () => Buffer.alloc(0),
      requestBodyBytesMax: 0,
      responseBodyBytesMax: 1_000,
    };
    const verdict = guest.handleRequest(messages);
    assert.ok(!(verdict instanceof Promise));
    guest.endRequest();
    return verdict.next ? "allow" : `deny ${messages.status}`;
  };
  assert.equal(decide("GET", "/admin/x"), "deny 403");
  assert.equal(decide("HEAD", "/admin/x?y"), "deny 403");
  assert.equal(decide("POST", "/admin/x"), "allow");
  assert.equal(decide("POST", "/secret", [["X-Role", "guest"]]), "deny 403");
  assert.equal(decide("POST", "/secret", [["X-Role", "owner"]]), "allow");
});
