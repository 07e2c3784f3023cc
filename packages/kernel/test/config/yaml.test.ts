// YAML configuration files: the same keys, groups and error positions as JSON.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { ConfigError, defineConfig, key, loadConfig } from "@platform/kernel/config";

const definition = defineConfig({
  service: "mail",
  program: "platform-mail",
  version: "1.0.0",
  summary: "Sends mail.",
  keys: {
    port: key(z.int().default(1), { description: "Port." }),
    "smtp.host": key(z.string().optional(), { description: "Relay." }),
    "smtp.port": key(z.int().max(65_535).default(587), { description: "Port of the relay." }),
    domains: key(z.array(z.string()).default([]), { description: "Domains." }),
  },
  file: { flag: "config", env: [] },
});

function load(text: string, name = "mail.yaml", env: Record<string, string> = {}) {
  const loaded = loadConfig(definition, {
    argv: ["--config", name],
    env,
    readFile: () => text,
  });
  assert.equal(loaded.kind, "run");
  return loaded;
}

function failure(text: string, name?: string): string {
  try {
    load(text, name);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.message;
  }
  return assert.fail("the file was accepted");
}

test("a YAML file has the keys of a JSON file, with groups as nested members", () => {
  const yaml =
    "port: 8094 # comment\nsmtp:\n  host: relay.example\n  port: 25\ndomains:\n  - a.example\n";
  const { config, sources } = load(yaml);
  assert.deepEqual(config, {
    port: 8094,
    "smtp.host": "relay.example",
    "smtp.port": 25,
    domains: ["a.example"],
  });
  assert.equal(sources.get("smtp.port"), "mail.yaml:4:9");
  const json = '{"smtp": {"host": "relay.example"}}';
  assert.equal(load(json, "mail.json").config["smtp.host"], "relay.example");
  assert.equal(load("").config.port, 1, "an empty file has no keys");
});

test("environment and flags of a group's member take precedence", () => {
  const { config } = load("smtp:\n  port: 25\n", "m.yml", { PLATFORM_MAIL_SMTP_PORT: "2525" });
  assert.equal(config["smtp.port"], 2525);
  const flagged = loadConfig(definition, { argv: ["--smtp-host", "a.example"], env: {} });
  assert.ok(flagged.kind === "run" && flagged.config["smtp.host"] === "a.example");
});

test("errors name the line and column", () => {
  assert.match(
    failure("smtp:\n  port: 70000\n"),
    /mail\.yaml:2:9: smtp\.port: 70000 is not allowed/,
  );
  assert.match(
    failure("smtp:\n  hots: x\n"),
    /smtp\.hots.*unknown key; did you mean "smtp\.host"/s,
  );
  assert.match(failure("port: [1\n"), /mail\.yaml:\d+:\d+/);
  assert.match(failure("smtp: 5\n"), /mail\.yaml:1:\d+: smtp/);
});

test("what readers could understand differently is rejected", () => {
  const cases: [string, RegExp][] = [
    ["port: 1\nport: 2\n", /unique/i],
    ["domains: &a [x]\nport: *a\n", /alias/i],
    ["__proto__: 1\n", /__proto__/],
    ["1: 2\n", /keys must be strings/],
    ["port: 1\n---\nport: 2\n", /document/i],
    ["port: !!js/function 'x'\n", /tag/i],
    ["\tport: 1\n", /tab|indent|plain/i],
  ];
  for (const [text, message] of cases) assert.match(failure(text), message, text);
});
