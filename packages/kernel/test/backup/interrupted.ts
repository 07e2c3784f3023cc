// A program that hangs during a backup or restore until it is killed.
import { restoreBackup, writeBackup } from "@platform/kernel/backup";

const [command, folder = "", other = ""] = process.argv.slice(2);
const hang = (): Promise<void> => {
  process.stdout.write("halfway\n");
  return new Promise(() => void setInterval(() => undefined, 1_000));
};

if (command === "backup") {
  const options = { folder, service: "demo", version: "1.0.0", dataFormat: 1, nowMs: 0 };
  await writeBackup(options, async (target) => {
    await target.addFile("a.txt", other);
    await hang();
    return null;
  });
} else {
  const dataFormats = { oldest: 1, newest: 1 };
  await restoreBackup({ folder, target: other, service: "demo", dataFormats, check: hang });
}
