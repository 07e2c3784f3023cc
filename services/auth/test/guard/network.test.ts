// Networks that attempts are counted by.
import assert from "node:assert/strict";
import { test } from "node:test";
import { networkOf, subscriberOf } from "../../src/guard/network.ts";

test("a network is the /24 of an IPv4 address, the /64 of an IPv6 address, or other text unchanged", () => {
  const table: Record<string, string> = {
    "192.0.2.7": "192.0.2.0/24",
    "192.0.2.255": "192.0.2.0/24",
    "192.0.20.7": "192.0.20.0/24",
    unknown: "unknown",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:0DB8:0001:0002::1": "2001:db8:1:2::/64",
    "2001:db8::": "2001:db8:0:0::/64",
    "2001:db8::1:2:3:4:5": "2001:db8:0:1::/64",
    "::1": "0:0:0:0::/64",
    "fe80::1%eth0": "fe80:0:0:0::/64",
    "64:ff9b::192.0.2.7": "64:ff9b:0:0::/64",
  };
  for (const [address, network] of Object.entries(table)) {
    assert.equal(networkOf(address), network, address);
    if (!network.endsWith("/24")) assert.equal(subscriberOf(address), network, address);
  }
  assert.equal(subscriberOf("192.0.2.7"), "192.0.2.7");
});
