// Second factors and passkeys, in one process.
import "./mfa.ts";
import "./factor-change.ts";
import "./passkeys.ts";
