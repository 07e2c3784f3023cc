// Names in routes of users: only addresses of networks that the configuration allows are used.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createEngine, type UpstreamAddress } from "@platform/http1";
import { LIMITS_DEFAULT } from "../../src/shared-state/index.ts";
import { createCheckedLookup } from "../../src/upstream/checked-lookup.ts";
import { PoolRegistry } from "../../src/upstream/pool-registry.ts";
import { Resolver } from "../../src/upstream/resolver.ts";

const METADATA = "169.254.169.254";

test("a pool uses only the addresses of a name that the route may reach", async (context) => {
  const engine = createEngine();
  const resolver = new Resolver({
    lookup: () =>
      Promise.resolve([METADATA, "10.0.0.1", "1.1.1.1"].map((address) => ({ address }))),
    intervalMs: 10_000,
    timeoutMs: 1_000,
    onFailure: () => undefined,
  });
  const pools = new PoolRegistry(engine, resolver);
  context.after(() => {
    pools.close();
    resolver.close();
    engine.close();
  });
  const listHosts = async (networks: readonly string[] | undefined): Promise<string[]> => {
    const held = pools.acquire({
      url: "http://name.test",
      tls: undefined,
      connectMs: 1_000,
      limits: LIMITS_DEFAULT,
      networks,
    });
    let hosts: string[] = [];
    held.pool.setAddresses = (addresses: readonly UpstreamAddress[]) => {
      hosts = addresses.map((address) => ("host" in address ? address.host : ""));
    };
    await resolver.refresh();
    await held.ready;
    held.release(0);
    return hosts;
  };
  assert.deepEqual(await listHosts(undefined), [METADATA, "10.0.0.1", "1.1.1.1"]);
  assert.deepEqual(await listHosts(["10.0.0.0/8"]), ["10.0.0.1", "1.1.1.1"]);
  assert.deepEqual(await listHosts([]), ["1.1.1.1"]);
});

test("a name with an address outside of the networks is not resolved", async () => {
  const resolve = (networks: readonly string[]): Promise<string> =>
    new Promise((done) => {
      createCheckedLookup(networks)("localhost", { all: false }, (error, address) =>
        done(error === null ? (address as string) : error.message),
      );
    });
  assert.match(await resolve([]), /localhost: the address is not allowed/);
  assert.match(await resolve(["127.0.0.0/8", "::1"]), /^(?:127\.0\.0\.1|::1)$/);
});
