// Types of built.js, which Node runs before it knows that it can read TypeScript.
export function findBuilt(main: string, root?: string): string | undefined;
