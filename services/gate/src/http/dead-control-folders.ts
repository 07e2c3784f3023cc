// Removes the folders of control sockets whose gateway was killed before it could do so.
import { readdir, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CONTROL_FOLDER_PREFIX,
  CONTROL_SOCKET_NAME,
  type ControlAddress,
} from "./control-server.ts";

/** Folders looked at by one start; the rest is left to the next ones. */
const FOLDERS_MAX = 64;
/** A socket refuses connections for an instant while its gateway starts: only a second refusal counts. */
const SECOND_LOOK_MS = 200;

/** Removes the dead neighbours of `own`; what cannot be examined or removed stays. */
export async function removeDeadControlFolders(own: ControlAddress): Promise<void> {
  if (process.platform === "win32") return;
  const ownFolder = dirname(own.socketPath);
  const parent = dirname(ownFolder);
  const names = (await readdir(parent)).filter((name) => name.startsWith(CONTROL_FOLDER_PREFIX));
  const folders = names.slice(0, FOLDERS_MAX).map((name) => join(parent, name));
  await Promise.all(
    folders.map(async (folder) => {
      if (folder === ownFolder || !(await isOwned(folder)) || !(await isDead(folder))) return;
      await sleep(SECOND_LOOK_MS, undefined, { ref: false });
      if (await isDead(folder)) await rm(folder, { recursive: true, force: true });
    }),
  );
}

async function isOwned(folder: string): Promise<boolean> {
  const { uid } = await stat(folder);
  return uid === process.getuid?.();
}

// A folder without a socket belongs to a gateway that is starting.
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
