// DNS-01 against pebble: dynamic updates of bind9, and a hook.
import assert from "node:assert/strict";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { X509Certificate } from "node:crypto";
import { type Bind, bindSkip, startBind } from "@platform/testing/bind";
import { pebbleSkip } from "@platform/testing/pebble";
import { waitFor } from "@platform/testing/wait";
import { type Edge, makeEdgeFolder, prepareEdge, readPeer, startEdge as start } from "./edge.ts";

const skip = pebbleSkip === false ? bindSkip : pebbleSkip;
const ZONE = "example.test";

interface Zone extends Edge {
  bind: Bind;
}

async function prepare(context: TestContext, lifeSeconds?: number): Promise<Zone> {
  const folder = makeEdgeFolder(context);
  const bind = await startBind(folder, [ZONE]);
  context.after(() => bind.stop());
  const life = lifeSeconds === undefined ? {} : { lifeSeconds };
  const edge = await prepareEdge(context, { folder, dnsPort: bind.port, ...life });
  return { ...edge, bind, config: { ...edge.config, workers: 1, auto_tls_domain: [`*.${ZONE}`] } };
}

/** Names and serial number of the certificate that a name gets. */
async function readCertificate(port: number, servername: string, ca: string) {
  const { raw } = await readPeer(port, servername, ca);
  const { subjectAltName = "", serialNumber } = new X509Certificate(raw);
  return { names: subjectAltName, serial: serialNumber };
}

test(
  "a wildcard is obtained and renewed by signed updates, which leave no record",
  { skip },
  async (context) => {
    const edge = await prepare(context, 8);
    const { bind } = edge;
    const dns = { type: "rfc2136", server: `127.0.0.1:${bind.port}`, zone: ZONE };
    const gate = await start(context, edge, { acme_dns: { ...dns, tsig_key: bind.tsigKey } });
    const count = () => gate.lines().filter(({ msg }) => msg === "certificate obtained").length;
    await waitFor(
      () => count() >= 1,
      () => JSON.stringify(gate.lines()),
    );
    const root = await edge.pebble.readRoot();
    const first = await readCertificate(gate.port, `shop.${ZONE}`, root);
    assert.equal(first.names, `DNS:*.${ZONE}`);
    await assert.rejects(readCertificate(gate.port, ZONE, root), /unrecognized name/i);
    await waitFor(() => count() >= 2, "the renewal");
    const second = await readCertificate(gate.port, `shop.${ZONE}`, root);
    assert.notEqual(second.serial, first.serial);
    gate.signal("SIGTERM");
    await gate.ended;
    assert.equal(bind.dig(`_acme-challenge.${ZONE}`, "TXT"), "");
    const shown = gate
      .lines()
      .map((line) => JSON.stringify(line))
      .join("");
    assert.ok(!shown.includes(bind.tsigKey.split(":")[2]!));
  },
);

test(
  "a hook sets the record, also if it prints a megabyte; one that fails is named",
  { skip },
  async (context) => {
    const edge = await prepare(context);
    const { bind, folder } = edge;
    const hook = join(folder, "hook");
    const key = bind.tsigKey.split(":");
    const write = (lines: string[]): void => {
      writeFileSync(hook, ["#!/bin/sh", ...lines, ""].join("\n"));
      chmodSync(hook, 0o755);
    };
    const update = `printf 'server 127.0.0.1 ${bind.port}\\nzone ${ZONE}\\n%s %s 60 TXT %s\\nsend\\n' "$verb" "$3" "$4" | nsupdate -y ${key.join(":")}`;
    const more = {
      acme_dns: { type: "hook", command: [hook, "first"] },
      local_addr: "127.0.0.1:0",
    };
    write(["echo 'no rights for the zone' >&2", "exit 3"]);
    const gate = await start(context, edge, more);
    const failed = await gate.waitForLine(({ msg }) => msg === "cannot obtain a certificate");
    assert.equal(failed["reason"], "dns-01: the hook ended with code 3: no rights for the zone");
    write([
      `echo "$@" "$(env | grep -v '^PATH=\\|^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD=')" >>${join(folder, "calls")}`,
      // More than the gateway keeps.
      "head -c 1000000 /dev/zero | tr '\\0' x",
      "head -c 1000000 /dev/zero | tr '\\0' x >&2",
      'verb=add; [ "$2" = cleanup ] && verb=delete',
      update,
    ]);
    // Now, instead of in a minute.
    const api = `http://127.0.0.1:${gate.ports["local"]}/api/v1/admin/certificates`;
    const renewed = await fetch(`${api}/${encodeURIComponent(`*.${ZONE}`)}/renew`, {
      method: "POST",
    });
    assert.ok(renewed.ok, `${renewed.status} ${await renewed.text()}`);
    await gate.waitForLine(({ msg }) => msg === "certificate obtained");
    await waitFor(
      () => readFileSync(join(folder, "calls"), "utf8").includes("cleanup"),
      "clean-up",
    );
    const calls = readFileSync(join(folder, "calls"), "utf8").split("\n");
    assert.match(calls[0] ?? "", /^first present _acme-challenge\.example\.test [\w-]{43} $/);
    assert.match(calls[1] ?? "", /^first cleanup _acme-challenge\.example\.test [\w-]{43} $/);
    assert.equal(bind.dig(`_acme-challenge.${ZONE}`, "TXT"), "");
  },
);
