// A process of `platform run --watch`: waits until it is needed, then loads the service and serves on the socket that all
// its successors share. Waiting processes have done what does not depend on the service, which is most of a start.
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
// The service imports it later.
import "@platform/service";
import { declared, runDeclaredService } from "@platform/service/host";
import { compileService } from "../language/compile.ts";
import { registerServiceFiles } from "../language/load-hooks.ts";

/** Message of a worker: a file whose change requires a new process, or a folder of migrations. */
export interface FileMessage {
  readonly type: "file" | "folder";
  readonly path: string;
}

const [file = ""] = process.argv.slice(2);

function report(type: FileMessage["type"], path: string): void {
  process.send?.({ type, path } satisfies FileMessage);
}

registerServiceFiles((path) => report("file", path));
prepare();
process.once("message", () => void load());

async function load(): Promise<void> {
  try {
    await import(pathToFileURL(file).href);
    for (const folder of declared.migrationFolders) report("folder", folder);
    if (declared.routes.length === 0) throw new Error(`${file} declares no route`);
    await runDeclaredService({ folder: dirname(file), isShared: true });
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  }
}

/** Runs the code that a load runs first. Invalid settings are reported by the load. */
function prepare(): void {
  compileService("server { }\nexport route GET / (req) { return req }\n", "main.service.ts");
  try {
    void declared.settings;
  } catch {
    return;
  }
}
