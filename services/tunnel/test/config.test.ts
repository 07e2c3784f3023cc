// The relay's configuration: the specified keys, variables, flags and defaults; YAML and JSON files.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadConfig } from "@platform/kernel/config";
import { tunnelDefinition, type ClientOptions, type RelayConfig } from "../src/config.ts";

const bin = fileURLToPath(new URL("../../../bin/platform-tunnel.js", import.meta.url));

function loadServer(args: string[], env: Record<string, string> = {}, file = ""): RelayConfig {
  const argv = ["server", ...args];
  const loaded = loadConfig(tunnelDefinition, { argv, env, readFile: () => file });
  if (loaded.kind !== "run" || loaded.command !== "server") throw new Error(JSON.stringify(loaded));
  return loaded.config;
}

function loadClient(args: string[], env: Record<string, string> = {}): ClientOptions {
  const loaded = loadConfig(tunnelDefinition, { argv: ["client", "3000", ...args], env });
  if (loaded.kind !== "run" || loaded.command !== "client") throw new Error(JSON.stringify(loaded));
  return loaded.options;
}

const SECRET = "a-secret-of-at-least-thirty-two-bytes";

test("defaults are those of the specification", () => {
  const config = loadServer([]);
  assert.equal(config.addr.port, 8443);
  assert.equal(config.domain, "localhost");
  assert.equal(config.max_ring_buffer, 100);
  assert.equal(loadClient([]).inspect_port, 4040);
});

test("the specified variables of the relay and of the client are read", () => {
  const config = loadServer([], {
    PLATFORM_TUNNEL_ADDR: "127.0.0.1:9443",
    PLATFORM_TUNNEL_DOMAIN: "tunnels.example.net",
    PLATFORM_TUNNEL_JWT_SECRET: SECRET,
    PLATFORM_TUNNEL_MAX_RING_BUFFER: "7",
    PLATFORM_TUNNEL_OTEL_ENDPOINT: "http://127.0.0.1:4318",
    PLATFORM_TUNNEL_TLS_CERT: "/cert.pem",
    PLATFORM_TUNNEL_TLS_KEY: "/key.pem",
  });
  assert.deepEqual([config.addr.host, config.addr.port], ["127.0.0.1", 9443]);
  assert.equal(config.domain, "tunnels.example.net");
  assert.equal(config.jwt_secret, SECRET);
  assert.equal(config.max_ring_buffer, 7);
  assert.match(String(config.otel_endpoint), /^http:\/\/127\.0\.0\.1:4318/);
  assert.deepEqual([config.tls_cert, config.tls_key], ["/cert.pem", "/key.pem"]);
  const relay = "wss://tunnels.example.net/ws/connect";
  const options = loadClient([], { PLATFORM_TUNNEL_RELAY: relay, PLATFORM_TUNNEL_TOKEN: "secret" });
  assert.deepEqual([options.relay, options.token], [relay, "secret"]);
});

test("YAML and JSON files mean the same", () => {
  const settings = {
    addr: ":9443",
    domain: "tunnels.example.net",
    jwt_secret: SECRET,
    max_ring_buffer: 5,
    tls_cert: "/cert.pem",
    tls_key: "/key.pem",
    otel_endpoint: "http://127.0.0.1:4318",
  };
  const yaml = Object.entries(settings).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  const fromYaml = loadServer(["--config", "relay.yaml"], {}, `# relay\n${yaml.join("\n")}\n`);
  assert.deepEqual(fromYaml, loadServer(["--config", "relay.json"], {}, JSON.stringify(settings)));
  assert.equal(fromYaml.max_ring_buffer, 5);
});

test("a fault in a YAML file is named with its line", () => {
  const argv = ["server", "--config", "relay.yaml"];
  const readFile = (): string => "domain: localhost\nmax_ring_bufer: 5\n";
  assert.throws(
    () => loadConfig(tunnelDefinition, { argv, env: {}, readFile }),
    /relay\.yaml:2.*max_ring_bufer/s,
  );
});

test("help lists the specified flags of both commands", () => {
  const help = (command: string): string =>
    spawnSync(process.execPath, [bin, command, "--help"], { encoding: "utf8" }).stdout;
  for (const flag of ["--port", "--domain"]) assert.ok(help("server").includes(flag), flag);
  const client = help("client");
  const flags = ["relay", "subdomain", "custom-domain", "token", "inspect-port", "share-auth"];
  for (const flag of [...flags, "config"]) assert.ok(client.includes(`--${flag}`), flag);
});
