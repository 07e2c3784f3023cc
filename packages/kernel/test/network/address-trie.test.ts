// The trie of networks against the set that compares every network.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AddressSet, AddressTrie, buildAddressTrie } from "../../src/network/index.ts";

function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test("the trie contains the addresses of its networks and no others", () => {
  const random = makeRandom(7);
  const byte = (): number => Math.floor(random() * 4);
  const group = (): string => Math.floor(random() * 3).toString(16);
  const networks = Array.from({ length: 300 }, () => {
    if (random() < 0.5) {
      return `10.${byte()}.${byte()}.${byte()}/${9 + Math.floor(random() * 24)}`;
    }
    return `2001:db8:${group()}:${group()}::${group()}/${33 + Math.floor(random() * 96)}`;
  });
  for (let size = 1; size <= networks.length; size = size * 2 + 1) {
    const few = networks.slice(0, size);
    const set = new AddressSet(few);
    const trie = new AddressTrie(buildAddressTrie(few));
    for (let round = 0; round < 2_000; round++) {
      const address =
        round % 2 === 0
          ? `10.${byte()}.${byte()}.${byte()}`
          : `2001:db8:${group()}:${group()}::${group()}`;
      assert.equal(trie.has(address), set.has(address), `${address} in ${few.join(" ")}`);
    }
  }
});

test("IPv4-mapped addresses equal their IPv4 addresses, which no network of IPv6 contains", () => {
  const trie = new AddressTrie(buildAddressTrie(["192.0.2.0/24"]));
  assert.ok(trie.has("::ffff:192.0.2.9") && !trie.has("::ffff:192.0.3.9"));
  const mixed = ["::/0", "::/64", "0.0.0.0/1", "10.1.0.0/16", "::ffff:200.0.0.0/104"];
  for (const networks of [mixed, mixed.toReversed()]) {
    const trie = new AddressTrie(buildAddressTrie(networks));
    const set = new AddressSet(networks);
    for (const [address, expected] of [
      ["2001:db8::1", true],
      ["::", true],
      ["::1:0:0", true],
      ["10.1.2.3", true],
      ["127.0.0.1", true],
      ["192.0.2.9", false],
      ["::ffff:192.0.2.9", false],
      ["200.1.2.3", true],
      ["no address", false],
    ] as const) {
      assert.equal(trie.has(address), expected, `${address} in ${networks.join(" ")}`);
      assert.equal(set.has(address), expected, `${address} in the set ${networks.join(" ")}`);
    }
  }
  const all = new AddressTrie(buildAddressTrie(["::/0"]));
  assert.ok(!all.has("192.0.2.9") && all.has("2001:db8::1") && !all.has("no address"));
  const both = new AddressTrie(buildAddressTrie(["::/0", "0.0.0.0/0"]));
  assert.ok(both.has("192.0.2.9") && both.has("2001:db8::1"));
  const none = new AddressTrie(buildAddressTrie([]));
  assert.ok(!none.has("192.0.2.9") && !none.has("::"));
});

test("an invalid network is named", () => {
  assert.throws(() => buildAddressTrie(["10.0.0.0/8", "10.0.0.0/33"]), /"10\.0\.0\.0\/33"/);
});

test("a hundred thousand networks occupy at most 64 bytes each", () => {
  const networks = Array.from(
    { length: 100_000 },
    (_, index) => `${11 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}.0/24`,
  );
  const buffer = buildAddressTrie(networks);
  assert.ok(buffer.byteLength <= 100_000 * 64 + 32, String(buffer.byteLength));
  const trie = new AddressTrie(buffer);
  assert.ok(trie.has("11.7.9.200") && trie.has("12.134.159.1") && !trie.has("12.134.160.1"));
});
