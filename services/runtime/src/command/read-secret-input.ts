// Reads a secret from the standard input: arguments are visible to other users of the machine.

const BYTES_MAX = 4_096;

/** The first line of the standard input. */
export async function readSecretInput(): Promise<string> {
  let text = "";
  process.stdin.setEncoding("utf8");
  for await (const chunk of process.stdin) {
    text += String(chunk);
    if (text.includes("\n") || text.length > BYTES_MAX) break;
  }
  const [line = ""] = text.split(/\r?\n/, 1);
  if (line === "" || line.length > BYTES_MAX)
    throw new Error("expected a password of one line on the standard input");
  return line;
}
