// Tokens: revocation, introspection, their rights and audiences, and the keys that sign them, in one process.
import "./rfc7009.ts";
import "./rfc7662.ts";
import "./audience.ts";
import "./entitlements.ts";
import "./key-rotation.ts";
import "./adapter-contract.ts";
