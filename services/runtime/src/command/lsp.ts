// `platform lsp`: a language server for an editor, over standard input and output.
import { runServer } from "../editor/server.ts";

/** Serves until the editor exits; resolves to 1 if it ended without a shutdown. */
export function runLsp(version: string): Promise<number> {
  return runServer({ input: process.stdin, output: process.stdout, version });
}
