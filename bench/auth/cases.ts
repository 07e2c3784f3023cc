// All cases of the identity service, in the order of the report.
import type { BenchCase } from "../harness/case.ts";
import { documents } from "./cases/documents.ts";
import { introspection } from "./cases/introspection.ts";
import { login } from "./cases/login.ts";
import { tokens } from "./cases/tokens.ts";

export const AUTH_CASES: readonly BenchCase[] = [tokens, introspection, documents, login];
