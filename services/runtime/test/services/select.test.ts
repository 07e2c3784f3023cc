// The selection of services by `--only`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SERVICES, selectServices } from "../../src/services/index.ts";

function select(...only: string[]): string[] {
  return selectServices(only).map(({ name }) => name);
}

test("services are selected by short name or product name, in start order", () => {
  assert.deepEqual(select("storage", "auth"), ["auth", "vault"]);
  assert.deepEqual(select("vault", "identity", "identity"), ["auth", "vault"]);
  assert.deepEqual(select("messaging"), ["pulse"]);
});

test("the gateway starts with its sample upstream", () => {
  assert.deepEqual(select("gateway"), ["hello", "gate"]);
  assert.deepEqual(select("gate"), ["hello", "gate"]);
});

test("an empty list selects all services", () => {
  assert.deepEqual(
    select(),
    SERVICES.map(({ name }) => name),
  );
});
