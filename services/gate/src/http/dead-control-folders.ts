// Removes the control socket folders of gateways that were killed.
import { readdir, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CONTROL_FOLDER_PREFIX,
  CONTROL_SOCKET_NAME,
  type ControlAddress,
} from "./control-server.ts";

/** Maximum number of folders to check per start. */
const FOLDERS_MAX = 64;
/** Delay of a second check, because a starting gateway briefly refuses connections. */
const SECOND_CHECK_MS = 200;

/** Removes stale folders next to `own`; skips those that cannot be checked or removed. */
export async function removeDeadControlFolders(own: ControlAddress): Promise<void> {
  if (process.platform === "win32") return;
  const ownFolder = dirname(own.socketPath);
  const parent = dirname(ownFolder);
  const names = (await readdir(parent)).filter((name) => name.startsWith(CONTROL_FOLDER_PREFIX));
  const folders = names.slice(0, FOLDERS_MAX).map((name) => join(parent, name));
  await Promise.all(
    folders.map(async (folder) => {
      if (folder === ownFolder || !(await isOwned(folder)) || !(await isDead(folder))) return;
      await sleep(SECOND_CHECK_MS, undefined, { ref: false });
      if (await isDead(folder)) await rm(folder, { recursive: true, force: true });
    }),
  );
}

async function isOwned(folder: string): Promise<boolean> {
  const { uid } = await stat(folder);
  return uid === process.getuid?.();
}

// A folder without a socket belongs to a starting gateway.
function isDead(folder: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path: join(folder, CONTROL_SOCKET_NAME) });
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}
