// Packs a checkout beside a running platform, so that the first `platform init` does not wait for it. At a low priority, and
// without effect where the checkout cannot be written.
import { accessSync, constants } from "node:fs";
import { constants as osConstants, setPriority } from "node:os";
import { INSTALLATION, isPackaged } from "./layout.ts";
import { preparePackage } from "./packed.ts";

if (!isPackaged() && isWritable()) {
  setPriority(osConstants.priority.PRIORITY_LOW);
  await preparePackage(() => undefined);
}

function isWritable(): boolean {
  try {
    accessSync(INSTALLATION, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
