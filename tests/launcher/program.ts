// The program of the test's bin: prints its runtime and input, then follows its arguments.

/** Called by the launcher. */
export async function main(): Promise<void> {
  const [task = "", ...args] = process.argv.slice(2);
  const runtime = process.versions["bun"] === undefined ? "node" : "bun";
  const major = Number.parseInt(process.versions.node, 10);
  if (task === "env") args[0] = process.env[args[0] ?? ""] ?? "";
  // Registered before the first line, after which the test sends signals.
  if (task === "wait") waitForSignal();
  console.log(JSON.stringify({ runtime, major, pid: process.pid, args }));
  switch (task) {
    case "exit":
      process.exit(Number(args[0]));
      break;
    case "abort":
      process.kill(process.pid, "SIGKILL");
      break;
    case "wait":
      break;
    case "echo":
      for await (const chunk of process.stdin) process.stdout.write(chunk as Buffer);
      break;
    default:
      process.exitCode = 3;
  }
}

function waitForSignal(): void {
  process.on("SIGTERM", () => {
    console.log(JSON.stringify({ signal: "SIGTERM" }));
    process.exit(42);
  });
  process.on("disconnect", () => process.exit(0));
  setInterval(() => undefined, 1000);
}
