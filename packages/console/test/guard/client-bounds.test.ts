// Requests in flight of a front behind a proxy: half of the limit for one client, the limit for all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlatformError } from "@platform/kernel/errors";
import { ClientBounds } from "../../src/guard/client-bounds.ts";

function admit(bounds: ClientBounds, address: string): (() => void) | number {
  try {
    return bounds.admit(address);
  } catch (error) {
    assert.equal(toPlatformError(error).headers?.["Retry-After"], "1");
    return toPlatformError(error).status;
  }
}

test("one client has half of the requests, all have the limit, and ended ones do not count", () => {
  const bounds = new ClientBounds(4);
  const end = admit(bounds, "192.0.2.1");
  assert.equal(typeof end, "function");
  assert.equal(typeof admit(bounds, "192.0.2.1"), "function");
  assert.equal(admit(bounds, "192.0.2.1"), 429);
  // The /64 of an IPv6 address belongs to one subscriber.
  assert.equal(typeof admit(bounds, "2001:db8:0:1::1"), "function");
  assert.equal(typeof admit(bounds, "2001:db8:0:1::2"), "function");
  assert.equal(admit(bounds, "2001:db8:0:1::3"), 503);
  assert.equal(admit(bounds, "192.0.2.2"), 503);
  // Both the end of a response and that of its connection are reported.
  (end as () => void)();
  (end as () => void)();
  assert.equal(typeof admit(bounds, "192.0.2.2"), "function");
  assert.equal(admit(bounds, "192.0.2.3"), 503);
});
