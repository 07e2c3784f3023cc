// The README shows the map of messages as it is.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { MESSAGE_MAP } from "../src/message/message-map.ts";

test("the README has a row for each property of a message, and no other", () => {
  const text = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, section] = text.split("\n## Messages in each protocol\n");
  const rows = section!
    .split("\n## ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
  const map = MESSAGE_MAP.map(({ property, http, kafka, mqtt, stomp }) => [
    property,
    http,
    kafka,
    mqtt,
    stomp,
  ]);
  assert.deepEqual(rows, map);
});
