// `argon2-loop.ts SECONDS`: argon2id with the service's concurrency, the upper bound of password logins.
import { availableParallelism } from "node:os";
import { hash, verify } from "@node-rs/argon2";
import { OWASP_COST } from "../../services/auth/src/sign-in/password-hasher.ts";

/** The JSON line that the loop prints. */
export interface Argon2Summary {
  concurrency: number;
  perS: number;
  cpuUs: number;
}

const PASSWORD = "correct horse battery staple";

if (import.meta.main) {
  console.log(JSON.stringify(await runLoop(Number(process.argv[2] ?? "3"))));
}

async function runLoop(seconds: number): Promise<Argon2Summary> {
  const concurrency = availableParallelism();
  const hashed = await hash(PASSWORD, OWASP_COST);
  const startedAt = performance.now();
  const cpu = process.cpuUsage();
  const endsAt = startedAt + seconds * 1_000;
  let count = 0;
  const verifyInTurn = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      if (!(await verify(hashed, PASSWORD))) throw new Error("the right password was refused");
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, verifyInTurn));
  const { user, system } = process.cpuUsage(cpu);
  const elapsedMs = performance.now() - startedAt;
  return { concurrency, perS: (count * 1_000) / elapsedMs, cpuUs: (user + system) / count };
}
