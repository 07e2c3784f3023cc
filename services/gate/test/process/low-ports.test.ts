// A start without the right to listen on ports below 1024.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runtimes, spawnGate } from "../fixture/gate-process.ts";

const SETPRIV = ["--bounding-set=-net_bind_service", "--inh-caps=-net_bind_service"];
const skip = findReason();

function findReason(): string | false {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "requires root on Linux";
  const start = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
  if (start <= 443) return "this system lets everybody listen on port 443";
  return spawnSync("setpriv", [...SETPRIV, "true"]).status === 0 ? false : "requires setpriv";
}

test("exit code 2, with the three ways to allow it", { skip }, async (context) => {
  const gate = spawnGate(context, {
    runtime: runtimes[0]!,
    wrapper: ["setpriv", ...SETPRIV],
    config: { addr: "127.0.0.1:443" },
  });
  const { code, stdout, stderr } = await gate.ended;
  assert.equal(code, 2, stdout);
  assert.match(
    stderr + stdout,
    /may not listen on port 443; allow it by setcap cap_net_bind_service=\+ep .*AmbientCapabilities=CAP_NET_BIND_SERVICE.*another port with --addr or PLATFORM_GATE_ADDR/,
  );
});
