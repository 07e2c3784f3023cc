// OpenSSH: a private sshd without privileges, and `ssh -R`.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion, findProgram } from "../../../tests/stage/program.ts";
import { startPinned, type PinnedProcess } from "../../harness/process.ts";
import type { Tunnel, TunnelSetup } from "./tunnel.ts";

interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** The usual way to a service behind a firewall: one TCP connection per public connection, encrypted. */
export const ssh: Tunnel = {
  name: "ssh -R",
  isOurs: false,
  explainAbsence: () =>
    findProgram("sshd") === undefined || findProgram("ssh") === undefined
      ? "openssh-server is not installed; run tools/install-peers tunnel"
      : undefined,
  readVersion: () => askVersion(findProgram("ssh") ?? "ssh", ["-V"]),
  open: async (setup) => {
    const account = chooseAccount();
    const sshdPort = await findFreePort();
    const port = await findFreePort();
    const server = await startServer(setup, account, sshdPort);
    const client = startClient(setup, account, sshdPort, port);
    await awaitPort(client, port);
    return { port, host: `127.0.0.1:${port}`, pids: [server.pid, client.pid] };
  },
};

// Root's sshd needs a system folder and switches users for each session; without privileges it needs neither.
function chooseAccount(): Account {
  const { username, uid, gid } = userInfo();
  if (uid !== 0) return { name: username, uid, gid };
  const ask = (option: string): number =>
    Number(spawnSync("id", [option, "nobody"], { encoding: "utf8" }).stdout);
  return { name: "nobody", uid: ask("-u"), gid: ask("-g") };
}

async function startServer(
  { folder, cores, workspace }: TunnelSetup,
  account: Account,
  port: number,
): Promise<PinnedProcess> {
  const own = join(folder, "sshd");
  mkdirSync(own, { recursive: true });
  for (const name of ["host_key", "client_key"]) makeKey(join(folder, name));
  copyFileSync(join(folder, "host_key"), join(own, "host_key"));
  copyFileSync(join(folder, "client_key.pub"), join(own, "authorized_keys"));
  // Without PAM, an sshd that cannot read the shadow passwords takes all accounts for locked.
  const config = `Port ${port}
ListenAddress 127.0.0.1
HostKey ${own}/host_key
AuthorizedKeysFile ${own}/authorized_keys
PidFile none
StrictModes no
UsePAM yes
PasswordAuthentication no
AllowTcpForwarding remote
LogLevel ERROR
`;
  writeFileSync(join(own, "config"), config);
  const drop: string[] = [];
  if (userInfo().uid === 0) {
    for (const path of [workspace.folder, folder]) chmodSync(path, 0o711);
    chownSync(own, account.uid, account.gid);
    for (const name of readdirSync(own)) chownSync(join(own, name), account.uid, account.gid);
    drop.push("setpriv", `--reuid=${account.uid}`, `--regid=${account.gid}`, "--clear-groups");
  }
  const [command, ...args] = [...drop, findProgram("sshd") ?? "sshd"];
  const server = workspace.keep(
    startPinned({
      name: "sshd",
      command,
      args: [...args, "-D", "-e", "-f", join(own, "config")],
      cores,
    }),
  );
  await awaitPort(server, port);
  return server;
}

function makeKey(path: string): void {
  const run = spawnSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path]);
  if (run.status !== 0) throw new Error(`ssh-keygen failed: ${String(run.stderr)}`);
}

function startClient(
  { folder, cores, localPort, workspace }: TunnelSetup,
  account: Account,
  sshdPort: number,
  port: number,
): PinnedProcess {
  const options = [
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "IdentitiesOnly=yes",
    "ExitOnForwardFailure=yes",
    "LogLevel=ERROR",
  ];
  return workspace.keep(
    startPinned({
      name: "ssh",
      command: "ssh",
      args: [
        "-N",
        "-F",
        "none",
        "-i",
        join(folder, "client_key"),
        "-p",
        String(sshdPort),
        ...options.flatMap((option) => ["-o", option]),
        "-R",
        `127.0.0.1:${port}:127.0.0.1:${localPort}`,
        `${account.name}@127.0.0.1`,
      ],
      cores,
    }),
  );
}
