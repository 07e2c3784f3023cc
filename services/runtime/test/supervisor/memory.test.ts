// Memory of the control group, read from files as the kernel writes them.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { readMemory, readMemoryKills } from "../../src/supervisor/memory.ts";
import { describeShortage } from "../../src/supervisor/service-memory.ts";

const MIB = 1024 * 1024;

function createFiles(t: TestContext, files: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "memory-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return { proc: join(root, "proc"), groups: join(root, "cgroup") };
}

const MEMINFO = { "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n" };

test("without a limit the memory is that of the machine, with what can be reclaimed", (t) => {
  const sources = createFiles(t, { ...MEMINFO, "proc/self/cgroup": "0::/\n" });
  const expected = { availableBytes: 4096 * MIB, limitBytes: undefined };
  // Node reports the first for a group without a limit.
  assert.deepEqual(readMemory({ ...sources, limitBytes: 2 ** 64 }), expected);
  assert.deepEqual(readMemory({ ...sources, limitBytes: 0 }), expected);
  assert.equal(readMemoryKills(sources), undefined);
});

const USED = `${300 * MIB}\n`;
const STAT = `anon ${200 * MIB}\ninactive_file ${80 * MIB}\nactive_file 5\n`;
const groups: [name: string, files: Record<string, string>][] = [
  [
    "version 2",
    {
      "proc/self/cgroup": "0::/system.slice/platform.service\n",
      "cgroup/system.slice/platform.service/memory.current": USED,
      "cgroup/system.slice/platform.service/memory.stat": STAT,
      "cgroup/system.slice/platform.service/memory.events": "low 0\noom 4\noom_kill 3\n",
    },
  ],
  [
    "version 2, in a container",
    {
      "proc/self/cgroup": "0::/docker/0123\n",
      "cgroup/memory.current": USED,
      "cgroup/memory.stat": STAT,
      "cgroup/memory.events": "oom_group_kill 1\noom_kill 3\n",
    },
  ],
  [
    "version 1",
    {
      "proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/0123\n0::/\n",
      "cgroup/memory/docker/0123/memory.usage_in_bytes": USED,
      "cgroup/memory/docker/0123/memory.stat": `inactive_file 1\ntotal_inactive_file ${80 * MIB}\n`,
      "cgroup/memory/docker/0123/memory.oom_control": "oom_kill_disable 0\noom_kill 3\n",
    },
  ],
];

for (const [name, files] of groups) {
  test(`a limited group: ${name}`, (t) => {
    const sources = createFiles(t, { ...MEMINFO, ...files });
    const { availableBytes, limitBytes } = readMemory({ ...sources, limitBytes: 512 * MIB });
    assert.equal(limitBytes, 512 * MIB);
    assert.equal(availableBytes, (512 - 300 + 80) * MIB);
    assert.equal(readMemoryKills(sources), 3);
  });
}

test("a shortage names what fits", () => {
  const services = [
    { name: "auth", label: "identity" },
    { name: "vault", label: "storage" },
    { name: "gate", label: "gateway" },
  ];
  const limitBytes = 256 * MIB;
  assert.equal(describeShortage(services, { availableBytes: 2048 * MIB, limitBytes }), undefined);
  const text = describeShortage(services, { availableBytes: 200 * MIB, limitBytes });
  assert.match(text!, /200\.0 MiB of the limit of 256\.0 MiB is available/);
  assert.match(
    text!,
    /identity, storage, gateway need about .* MiB.*; --only identity,storage fits$/,
  );
  const none = describeShortage(services, { availableBytes: 10 * MIB, limitBytes: undefined });
  assert.match(none!, /^memory: 10\.0 MiB is available, .*idle$/);
});
