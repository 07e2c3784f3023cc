// `login-load.ts URL ACCOUNTS CONNECTIONS SECONDS`: sequential password logins on each connection, cycling through
// the accounts.
import { takePercentile } from "../harness/statistics.ts";
import { LOGIN_PASSWORD, nameAccount } from "./accounts.ts";

/** The JSON line that the load prints. */
export interface LoginSummary {
  logins: number;
  failed: number;
  perS: number;
  p50Us: number;
  p99Us: number;
}

if (import.meta.main) {
  const [url = "", accounts = "32", connections = "8", seconds = "3"] = process.argv.slice(2);
  const summary = await runLogins(url, Number(accounts), Number(connections), Number(seconds));
  console.log(JSON.stringify(summary));
}

async function runLogins(
  url: string,
  accounts: number,
  connections: number,
  seconds: number,
): Promise<LoginSummary> {
  const latenciesUs: number[] = [];
  let failed = 0;
  let turn = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  const logInAgain = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const username = nameAccount(turn % accounts);
      turn += 1;
      const sentAt = performance.now();
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username, password: LOGIN_PASSWORD }),
      });
      await answer.arrayBuffer();
      if (answer.status === 200) latenciesUs.push((performance.now() - sentAt) * 1_000);
      else failed += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, logInAgain));
  // Logins in flight at the end count with their full duration.
  const elapsedMs = performance.now() - startedAt;
  return {
    logins: latenciesUs.length,
    failed,
    perS: (latenciesUs.length * 1_000) / elapsedMs,
    p50Us: takePercentile(latenciesUs, 0.5),
    p99Us: takePercentile(latenciesUs, 0.99),
  };
}
