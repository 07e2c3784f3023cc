// Accounts for the login benchmark.

/** The password of all accounts. */
export const LOGIN_PASSWORD = "correct horse battery staple";

/** The name of an account, counted from 0. */
export function nameAccount(index: number): string {
  return `bench-${index}`;
}

/** Registers the accounts. */
export async function registerAccounts(origin: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const answer = await fetch(`${origin}/api/v1/auth/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: nameAccount(index), password: LOGIN_PASSWORD }),
    });
    const text = await answer.text();
    if (answer.status !== 201) throw new Error(`register: ${answer.status} ${text}`);
  }
}
