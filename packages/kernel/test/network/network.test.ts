// Addresses and networks: membership, and the client of a forwarded request.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AddressSet,
  findClientAddress,
  traceHops,
  findSubscriberNetwork,
  isLoopback,
  isNetwork,
} from "@platform/kernel/network";
import fc from "fast-check";

test("ranges contain their addresses, in the notation of either family", () => {
  const set = new AddressSet(["10.0.0.0/8", "192.0.2.7", "2001:db8::/33", "::1"]);
  const table: [string, boolean][] = [
    ["10.255.1.2", true],
    ["11.0.0.0", false],
    ["::ffff:10.1.1.1", true],
    ["::ffff:a01:101", true],
    ["192.0.2.7", true],
    ["192.0.2.8", false],
    ["2001:db8:7fff::1", true],
    ["2001:db8:8000::1", false],
    ["::1", true],
    ["::1%lo", true],
    ["::2", false],
    ["", false],
    ["10.0.0", false],
    ["unix:", false],
  ];
  for (const [address, expected] of table) assert.equal(set.has(address), expected, address);
});

test("all of 127/8 is loopback, similar texts are not", () => {
  for (const address of ["127.0.0.1", "127.255.0.9", "::1", "::FFFF:127.0.0.1", "::ffff:7f00:1"]) {
    assert.ok(isLoopback(address), address);
  }
  for (const address of [
    "128.0.0.1",
    "127.0.0.256",
    "127.1",
    "",
    "::2",
    "127.0.0.1.evil",
    "0.0.0.0",
  ]) {
    assert.ok(!isLoopback(address), address);
  }
});

test("an invalid range is rejected with its text", () => {
  for (const text of [
    "",
    "x",
    "10.0.0.0/33",
    "::/129",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "fe80::1%lo",
  ]) {
    assert.throws(() => new AddressSet([text]), { name: "RangeError" }, text);
    assert.ok(!isNetwork(text), text);
  }
  assert.ok(isNetwork("10.0.0.0/0") && isNetwork("192.0.2.1") && isNetwork("fd00::/8"));
});

test("all notations of an address are equal", () => {
  fc.assert(
    fc.property(fc.ipV6(), fc.ipV6(), (text, other) => {
      const url = new URL(`http://[${text}]/`).hostname.slice(1, -1);
      const set = new AddressSet([text]);
      assert.ok(set.has(url) && new AddressSet([url]).has(text), `${text} ${url}`);
      assert.equal(set.has(other), new URL(`http://[${other}]/`).hostname.slice(1, -1) === url);
    }),
  );
});

test("the client is the first untrusted hop from the right", () => {
  const trusted = new AddressSet(["10.0.0.0/8", "::1"]);
  const table: [string, string, string][] = [
    ["203.0.113.9", "1.1.1.1", "203.0.113.9"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
    ["10.0.0.1", "1.1.1.1, 198.51.100.1,10.2.2.2", "198.51.100.1"],
    ["10.0.0.1", "10.3.3.3, 10.2.2.2", "10.3.3.3"],
    ["10.0.0.1", "1.1.1.1, garbage, 10.2.2.2", "10.2.2.2"],
    ["10.0.0.1", "garbage", "10.0.0.1"],
    ["10.0.0.1", "198.51.100.1:1234", "198.51.100.1"],
    ["10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"],
    ["::1", "2001:db8::1", "2001:db8::1"],
    ["10.0.0.1", ",,198.51.100.1, ", "10.0.0.1"],
  ];
  for (const [peer, chain, expected] of table) {
    assert.equal(findClientAddress(peer, chain, trusted), expected, `${peer} ${chain}`);
  }
});

test("a mapped address is an IPv4 address, as it is for sockets", () => {
  const trusted = new AddressSet(["10.0.0.0/8"]);
  for (const chain of ["::ffff:192.0.2.7", "[::FFFF:192.0.2.7]:80", "192.0.2.7, ::ffff:10.0.0.9"]) {
    assert.equal(findClientAddress("10.0.0.1", chain, trusted), "192.0.2.7", chain);
  }
});

test("the network of a subscriber is an IPv4 address or a /64, however it is spelled", () => {
  const groups = [
    ["192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201"],
    ["::ffff:192.0.2.2"],
    ["2001:db8::1", "2001:0DB8:0:0:ffff::2", "2001:db8:0::9%eth0", "2001:db8:0:0:1:2:3.4.5.6"],
    ["2001:db8:0:1::1"],
    ["::1", "::2"],
    ["", ""],
  ];
  const networks = groups.map((group) => new Set(group.map(findSubscriberNetwork)));
  for (const [index, found] of networks.entries())
    assert.equal(found.size, 1, String(groups[index]));
  assert.equal(new Set(networks.flatMap((found) => [...found])).size, groups.length);
});

test("Forwarded names the client if X-Forwarded-For is absent, and is ignored otherwise", () => {
  const trusted = new AddressSet(["10.0.0.0/8"]);
  const table: [forwarded: string, expected: string][] = [
    ["for=198.51.100.1", "198.51.100.1"],
    ["For=198.51.100.1;proto=http;by=10.0.0.9", "198.51.100.1"],
    ['for="[2001:db8::1]:4711"', "2001:db8::1"],
    ["for=[2001:db8::1]", "2001:db8::1"],
    ["for=1.1.1.1, for=198.51.100.1, for=10.2.2.2", "198.51.100.1"],
    ["for=198.51.100.1 , for=unknown", "10.0.0.1"],
    ["for=198.51.100.1, for=_hidden, for=10.2.2.2", "10.2.2.2"],
    ["for=1.1.1.1;for=2.2.2.2", "10.0.0.1"],
    ["proto=https", "10.0.0.1"],
    // A client cannot hide behind what it sends itself.
    ['for=", for=198.51.100.1', "198.51.100.1"],
    ['for="1.1.1.1, for=2.2.2.2", for=198.51.100.1', "198.51.100.1"],
    ['host="a,b;c\\"d", for=198.51.100.1', "198.51.100.1"],
    [";;, for=198.51.100.1", "198.51.100.1"],
  ];
  for (const [forwarded, expected] of table) {
    assert.equal(findClientAddress("10.0.0.1", "", trusted, forwarded), expected, forwarded);
    assert.equal(findClientAddress("10.0.0.1", "192.0.2.9", trusted, forwarded), "192.0.2.9");
    assert.equal(findClientAddress("192.0.2.1", "", trusted, forwarded), "192.0.2.1");
  }
});

test("the scheme and the host are those that the proxy of the client states", () => {
  const trusted = new AddressSet(["10.0.0.0/8"]);
  const trace = (forwardedFor: string, forwarded: string, proto = "", host = "") => {
    const found = traceHops("10.0.0.1", { forwardedFor, forwarded, proto, host }, trusted);
    return [found.proto, found.host].join(" ");
  };
  assert.equal(trace("", ""), " ");
  assert.equal(trace("192.0.2.1", "", "https, http", "a, b"), "https a");
  assert.equal(trace("1.1.1.1, 192.0.2.1", "", "http, https", "x, a"), "https a");
  assert.equal(trace("", "", "wss"), "https ");
  assert.equal(trace("", "for=unknown;proto=https;host=a"), "https a");
  assert.equal(trace("", "for=1.1.1.1;proto=http, for=192.0.2.1;proto=https;host=a"), "https a");
  assert.equal(trace("192.0.2.1", "for=192.0.2.1;proto=https;host=evil"), " ", "not of the proxy");
});

test("at most 32 trusted hops are followed", () => {
  const trusted = new AddressSet(["10.0.0.0/8"]);
  const chain = (hops: number) => `198.51.100.1${", 10.0.0.2".repeat(hops)}`;
  assert.equal(findClientAddress("10.0.0.1", chain(31), trusted), "198.51.100.1");
  assert.equal(findClientAddress("10.0.0.1", chain(32), trusted), "10.0.0.2");
});
