// git-annex with Haskell's S3 client, which signs the Host without its port. It includes a test of remotes.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { assertSameTree, readVersionOf, runProgram, type RealS3Client } from "./client.ts";

const GIT = "/usr/bin/git";

/** git-annex. */
export const gitAnnex: RealS3Client = {
  name: "git-annex",
  package: { registry: "Debian", name: "git-annex" },
  readVersion: () => readVersionOf(GIT, ["annex", "version", "--raw"], /(\S+)/),
  shows: "`copy` with multipart, `drop`, `get`, and `testremote`",
  async exercise(scene) {
    const { vault, bucket, tree } = scene;
    const folder = join(scene.folder, "repository");
    cpSync(tree, folder, { recursive: true });
    const git = (...args: string[]) => runProgram(scene, GIT, ["-C", folder, ...args]);
    await git("init", "--quiet");
    for (const [name, value] of [
      ["user.name", "nobody"],
      ["user.email", "nobody@localhost"],
      ["annex.security.allowed-ip-addresses", "127.0.0.1"],
    ] as const)
      await git("config", name, value);
    await git("annex", "init", "--quiet");
    const remote = `type=S3 encryption=none signature=v4 protocol=http host=127.0.0.1 port=${vault.port}`;
    const place = `requeststyle=path bucket=${bucket} partsize=6MiB`;
    const options = `${remote} ${place}`.split(" ");
    await git("annex", "initremote", "--quiet", "store", ...options);
    await git("annex", "add", "--quiet", ".");
    await git("commit", "--quiet", "--message", "files");
    await git("annex", "copy", "--quiet", "--to", "store");
    await git("annex", "drop", "--quiet");
    await git("annex", "get", "--quiet");
    await assertSameTree(scene, folder, [".git"]);
    assert.match(await git("annex", "testremote", "--fast", "store"), /All \d+ tests passed/);
  },
};
